// An action as it is being put together: what, where, how, and the key by which it runs only once.
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { useLocation } from "wouter";
import type { ActionRecord } from "#webapi/action-record.ts";
import { run, tryOut, type Wish } from "./actions.ts";

/** The fields of the composer; each kind of action takes its own of them. */
export interface Draft {
  readonly action: ActionRecord["action"];
  readonly nodes: readonly string[];
  readonly fields: Readonly<Record<string, string | number>>;
  readonly mode: "parallel" | "rolling";
}

const FIRST: Draft = {
  action: "restart",
  nodes: [],
  fields: { target_service: "fileserver" },
  mode: "rolling",
};
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
  const [draft, setDraft] = useState(FIRST);
  // However often one draft is sent, it runs once.
  const [key, setKey] = useState(() => crypto.randomUUID());
  const [, navigate] = useLocation();
  const wish: Wish = {
    action: draft.action,
    nodes: draft.nodes,
    ...draft.fields,
    ...(draft.nodes.length < 2 ? {} : { strategy: { mode: draft.mode, stop_on_failure: true } }),
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
      setKey(crypto.randomUUID());
      trial.reset();
    },
    showWhatWillRun: () => trial.mutate(),
    isTrying: trial.isPending,
    trial: trial.data,
    run: () => start.mutate(),
    isStarting: start.isPending,
    refusals: [trial.error, start.error].flatMap((error) => (error === null ? [] : [error.message])),
  };
}
