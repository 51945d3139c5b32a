// The draft of an action: fields, nodes, strategy and idempotency key, starting from the address.
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { useLocation, useSearchParams } from "wouter";
import type { ActionRecord } from "#wire/webapi/action-record.ts";
import { type RequestedAction, run, tryOut } from "./actions.ts";

/** The composer's fields; each kind of action uses some of them. */
export interface Draft {
  readonly action: ActionRecord["action"];
  readonly nodes: readonly string[];
  readonly fields: Readonly<Record<string, string | number>>;
  readonly mode: "parallel" | "rolling";
}

/** Default fields of each kind. */
export const FIRST_FIELDS: Readonly<Record<ActionRecord["action"], Draft["fields"]>> = {
  pull: { branch: "main" },
  build: { make_target: "build" },
  restart: { target_service: "fileserver" },
  reboot: {},
  apt: { apt_mode: "update_upgrade" },
  logs: { service: "fileserver", lines: 200 },
  custom: { command: "", timeout_seconds: 60 },
};

/** The draft of an address: "?do=restart&node=n1&node=n2", with defaults for the rest. It does not run. */
export function draftFrom(search: URLSearchParams): Draft {
  const wanted = search.get("do") ?? "";
  const action = (Object.hasOwn(FIRST_FIELDS, wanted) ? wanted : "restart") as Draft["action"];
  const nodes = [...new Set(search.getAll("node"))].filter((id) => id !== "");
  return { action, nodes, fields: FIRST_FIELDS[action], mode: "rolling" };
}

/** Kinds that interrupt a node's service: the next node waits until the last one is healthy. */
const GATED: ReadonlySet<Draft["action"]> = new Set(["restart", "reboot", "apt"]);
const GATE_SECONDS = 60;

function strategyOf({ action, nodes, mode }: Draft): object {
  if (nodes.length < 2) return {};
  if (mode === "parallel") return { strategy: { mode } };
  const gate = GATED.has(action) ? { health_gate_seconds: GATE_SECONDS } : {};
  return { strategy: { mode, max_parallel: 1, stop_on_failure: true, ...gate } };
}

/** A new idempotency key; plain HTTP pages lack crypto.randomUUID. */
export function newKey(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))]
    .map((byte) => byte.toString(16).padStart(2, "0"))
    .join("");
}

/** State and functions of the composer. */
export interface Composer {
  readonly draft: Draft;
  /** Changes the draft, which discards an earlier dry run. */
  readonly change: (next: Partial<Draft>) => void;
  readonly showWhatWillRun: () => void;
  readonly isTrying: boolean;
  readonly trial: ActionRecord | undefined;
  readonly run: () => void;
  readonly isStarting: boolean;
  readonly refusals: readonly string[];
}

/** Keeps a draft, plans and starts it; then opens the action's page. */
export function useComposer(): Composer {
  const [search] = useSearchParams();
  const [draft, setDraft] = useState(() => draftFrom(search));
  // Repeated sends of one draft run once.
  const [key, setKey] = useState(newKey);
  const [, navigate] = useLocation();
  const request: RequestedAction = {
    action: draft.action,
    nodes: draft.nodes,
    ...draft.fields,
    ...strategyOf(draft),
  };
  const trial = useMutation({ mutationFn: () => tryOut(request) });
  const start = useMutation({
    mutationFn: () => run(request, key),
    onSuccess: (id) => navigate(`/actions/${encodeURIComponent(id)}`),
  });
  return {
    draft,
    change: (next) => {
      setDraft({ ...draft, ...next });
      setKey(newKey());
      trial.reset();
      start.reset();
    },
    showWhatWillRun: () => trial.mutate(),
    isTrying: trial.isPending,
    trial: trial.data,
    run: () => start.mutate(),
    isStarting: start.isPending,
    refusals: [trial.error, start.error].flatMap((error) => (error === null ? [] : [error.message])),
  };
}
