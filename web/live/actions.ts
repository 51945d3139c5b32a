// Plans, starts, follows and cancels actions.
import { useQuery } from "@tanstack/react-query";
import type { z } from "zod";
import type {
  ActionPreset,
  ActionRecord,
  actionHistoryReply,
  actionQueued,
  outputEntry,
} from "#wire/webapi/action-record.ts";
import { call } from "./api.ts";
import { queryClient } from "./query-client.ts";

/** One piece of output. */
export type OutputEntry = z.infer<typeof outputEntry>;

/** The composer's request; the console validates it. */
export interface RequestedAction {
  readonly action: string;
  readonly nodes: readonly string[] | "all";
  readonly [field: string]: unknown;
}

const HISTORY_KEY = ["actions"] as const;
const RUNNING: ReadonlySet<string> = new Set(["queued", "locking", "running", "handed_over"]);
const WATCH_MS = 1_000;
const IDLE_MS = 15_000;
/** Poll interval for missed changes; normally they arrive with the output. */
const RECORD_MS = 5_000;

/** True for an action without an end. */
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

/** GET /api/actions/history, newest first. */
export function useActionHistory(): {
  readonly records: readonly ActionRecord[] | undefined;
  readonly error: Error | null;
} {
  const query = useQuery({
    queryKey: HISTORY_KEY,
    queryFn: ({ signal }) =>
      call<z.infer<typeof actionHistoryReply>>("/api/actions/history?order=newest", { signal }),
    refetchInterval: ({ state }) => (state.data?.records.some(isRunning) === true ? WATCH_MS : IDLE_MS),
  });
  return { records: query.data?.records, error: query.error };
}

/** GET /api/actions/{id}, polled until its end; the output stream has each change in between. */
export function useAction(id: string): {
  readonly record: ActionRecord | undefined;
  readonly error: Error | null;
} {
  const query = useQuery({
    queryKey: ["action", id],
    queryFn: ({ signal }) => call<ActionRecord>(`/api/actions/${encodeURIComponent(id)}`, { signal }),
    refetchInterval: ({ state }) => (state.data === undefined || isRunning(state.data) ? RECORD_MS : false),
  });
  return { record: query.data, error: query.error };
}

/** The exact commands per node, without running them. Throws ApiProblem. */
export function tryOut(requested: RequestedAction): Promise<ActionRecord> {
  return call<ActionRecord>("/api/actions/execute", {
    method: "POST",
    body: { ...requested, dry_run: true },
  });
}

/**
 * Starts an action and returns its id. With the key a second click, or a retry, means the same action. Throws
 * ApiProblem.
 */
export async function run(requested: RequestedAction, key: string): Promise<string> {
  const { id } = await call<z.infer<typeof actionQueued>>("/api/actions/run", {
    method: "POST",
    body: { ...requested, idempotency_key: key },
  });
  await queryClient.invalidateQueries({ queryKey: HISTORY_KEY });
  return id;
}

/** Cancels a running action. Throws ApiProblem. */
export async function cancel(id: string): Promise<void> {
  await call(`/api/actions/${encodeURIComponent(id)}/cancel`, { method: "POST" });
  await queryClient.invalidateQueries({ queryKey: ["action", id] });
}
