// An action as it is being put together: what, where, how, and the key by which it runs only once. It begins as the address says.
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { useLocation, useSearchParams } from "wouter";
import type { ActionRecord } from "#wire/webapi/action-record.ts";
import { run, tryOut, type Wish } from "./actions.ts";

/** The fields of the composer; each kind of action takes its own of them. */
export interface Draft {
  readonly action: ActionRecord["action"];
  readonly nodes: readonly string[];
  readonly fields: Readonly<Record<string, string | number>>;
  readonly mode: "parallel" | "rolling";
}

/** What the fields of each kind hold at first. */
export const FIRST_FIELDS: Readonly<Record<ActionRecord["action"], Draft["fields"]>> = {
  pull: { branch: "main" },
  build: { make_target: "build" },
  restart: { target_service: "fileserver" },
  reboot: {},
  apt: { apt_mode: "update_upgrade" },
  logs: { service: "fileserver", lines: 200 },
  custom: { command: "", timeout_seconds: 60 },
};

/** The draft that an address names: "?do=restart&node=n1&node=n2"; what it does not name is as usual. Nothing runs by it. */
export function draftFrom(search: URLSearchParams): Draft {
  const wanted = search.get("do") ?? "";
  const action = (Object.hasOwn(FIRST_FIELDS, wanted) ? wanted : "restart") as Draft["action"];
  const nodes = [...new Set(search.getAll("node"))].filter((id) => id !== "");
  return { action, nodes, fields: FIRST_FIELDS[action], mode: "rolling" };
}

/** Kinds that take a node's service away for a moment: the next node's turn comes when the last one is healthy again. */
const GATED: ReadonlySet<Draft["action"]> = new Set(["restart", "reboot", "apt"]);
const GATE_SECONDS = 60;

function strategyOf({ action, nodes, mode }: Draft): object {
  if (nodes.length < 2) return {};
  if (mode === "parallel") return { strategy: { mode } };
  const gate = GATED.has(action) ? { health_gate_seconds: GATE_SECONDS } : {};
  return { strategy: { mode, max_parallel: 1, stop_on_failure: true, ...gate } };
}

/** A key of one's own for one thing to run: crypto.randomUUID is not there for pages that came over plain HTTP. */
export function newKey(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))]
    .map((byte) => byte.toString(16).padStart(2, "0"))
    .join("");
}

/** What the composer shows and does. */
export interface Composer {
  readonly draft: Draft;
  /** Changes something; what was tried out before no longer counts. */
  readonly change: (next: Partial<Draft>) => void;
  readonly showWhatWillRun: () => void;
  readonly isTrying: boolean;
  readonly trial: ActionRecord | undefined;
  readonly run: () => void;
  readonly isStarting: boolean;
  readonly refusals: readonly string[];
}

/** Keeps a draft, tries it out and runs it; once it runs, its own page is shown. */
export function useComposer(): Composer {
  const [search] = useSearchParams();
  const [draft, setDraft] = useState(() => draftFrom(search));
  // However often one draft is sent, it runs once.
  const [key, setKey] = useState(newKey);
  const [, navigate] = useLocation();
  const wish: Wish = {
    action: draft.action,
    nodes: draft.nodes,
    ...draft.fields,
    ...strategyOf(draft),
  };
  const trial = useMutation({ mutationFn: () => tryOut(wish) });
  const start = useMutation({
    mutationFn: () => run(wish, key),
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
