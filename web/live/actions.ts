// Actions as the pages ask for them, run them and read what comes of them.
import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import type { z } from "zod";
import type {
  ActionPreset,
  ActionRecord,
  actionHistoryReply,
  actionQueued,
  outputEntry,
  outputReply,
} from "#webapi/action-record.ts";
import { ApiProblem, call } from "./api.ts";
import { queryClient } from "./query-client.ts";

/** One piece of output. */
export type OutputEntry = z.infer<typeof outputEntry>;

/** What the composer makes; the console checks it. */
export interface Wish {
  readonly action: string;
  readonly nodes: readonly string[] | "all";
  readonly [field: string]: unknown;
}

const HISTORY_KEY = ["actions"] as const;
const RUNNING: ReadonlySet<string> = new Set(["queued", "locking", "running", "handed_over"]);
const WATCH_MS = 1_000;
const IDLE_MS = 15_000;
const OUTPUT_PAGE = 500;
/** As much output as a page holds; what came before is in the download. */
const OUTPUT_KEPT = 20_000;

/** True until an action has ended. */
export function isRunning(record: Pick<ActionRecord, "state">): boolean {
  return RUNNING.has(record.state);
}

/** GET /api/actions/presets. */
export function usePresets(): {
  readonly presets: readonly ActionPreset[] | undefined;
  readonly error: Error | null;
} {
  const query = useQuery({
    queryKey: ["presets"],
    queryFn: ({ signal }) => call<ActionPreset[]>("/api/actions/presets", { signal }),
    staleTime: 60_000,
  });
  return { presets: query.data, error: query.error };
}

/** GET /api/actions/history, the newest first. */
export function useActionHistory(): {
  readonly records: readonly ActionRecord[] | undefined;
  readonly error: Error | null;
} {
  const query = useQuery({
    queryKey: HISTORY_KEY,
    queryFn: ({ signal }) => call<z.infer<typeof actionHistoryReply>>("/api/actions/history", { signal }),
    refetchInterval: ({ state }) => (state.data?.records.some(isRunning) === true ? WATCH_MS : IDLE_MS),
  });
  return { records: query.data?.records, error: query.error };
}

/** GET /api/actions/{id}, read again until it has ended. */
export function useAction(id: string): {
  readonly record: ActionRecord | undefined;
  readonly error: Error | null;
} {
  const query = useQuery({
    queryKey: ["action", id],
    queryFn: ({ signal }) => call<ActionRecord>(`/api/actions/${encodeURIComponent(id)}`, { signal }),
    refetchInterval: ({ state }) => (state.data === undefined || isRunning(state.data) ? WATCH_MS : false),
  });
  return { record: query.data, error: query.error };
}

/** What would run, word for word per node, without running it. Throws ApiProblem. */
export function tryOut(wish: Wish): Promise<ActionRecord> {
  return call<ActionRecord>("/api/actions/execute", { method: "POST", body: { ...wish, dry_run: true } });
}

/** Starts an action and gives its id. The key makes a second click, or a second try after a lost answer, the same action. Throws ApiProblem. */
export async function run(wish: Wish, key: string): Promise<string> {
  const { id } = await call<z.infer<typeof actionQueued>>("/api/actions/run", {
    method: "POST",
    body: { ...wish, idempotency_key: key },
  });
  await queryClient.invalidateQueries({ queryKey: HISTORY_KEY });
  return id;
}

/** Ends a running action. Throws ApiProblem. */
export async function cancel(id: string): Promise<void> {
  await call(`/api/actions/${encodeURIComponent(id)}/cancel`, { method: "POST" });
  await queryClient.invalidateQueries({ queryKey: ["action", id] });
}

/** The output of an action as it comes; after a lost connection or a reload it goes on where it was. */
export function useOutput(id: string): {
  readonly entries: readonly OutputEntry[];
  readonly isComplete: boolean;
  readonly error: string | undefined;
} {
  const [state, setState] = useState<{
    entries: readonly OutputEntry[];
    isComplete: boolean;
    error: string | undefined;
  }>({
    entries: [],
    isComplete: false,
    error: undefined,
  });
  useEffect(() => {
    const stop = new AbortController();
    void follow(id, stop.signal, setState);
    return () => stop.abort();
  }, [id]);
  return state;
}

type Update = (
  change: (before: { entries: readonly OutputEntry[]; isComplete: boolean; error: string | undefined }) => {
    entries: readonly OutputEntry[];
    isComplete: boolean;
    error: string | undefined;
  },
) => void;

async function follow(id: string, signal: AbortSignal, update: Update): Promise<void> {
  let afterSeq = 0;
  update(() => ({ entries: [], isComplete: false, error: undefined }));
  while (!signal.aborted) {
    try {
      const search = `after_seq=${afterSeq}&limit=${OUTPUT_PAGE}`;
      const page = await call<z.infer<typeof outputReply>>(
        `/api/actions/${encodeURIComponent(id)}/output?${search}`,
        { signal },
      );
      afterSeq = page.entries.at(-1)?.seq ?? afterSeq;
      const isComplete = page.complete && page.entries.length < OUTPUT_PAGE;
      update((before) => ({
        entries:
          page.entries.length === 0
            ? before.entries
            : [...before.entries, ...page.entries].slice(-OUTPUT_KEPT),
        isComplete,
        error: undefined,
      }));
      if (isComplete) return;
      if (page.entries.length < OUTPUT_PAGE) await pause(WATCH_MS, signal);
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof ApiProblem && error.status >= 400 && error.status < 500) {
        return update((before) => ({ ...before, isComplete: true, error: error.message }));
      }
      update((before) => ({ ...before, error: "The console does not answer; trying again." }));
      await pause(3 * WATCH_MS, signal);
    }
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
