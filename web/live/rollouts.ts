// Plans, starts, follows, cancels and reverts rollouts.
import { useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import type { z } from "zod";
import type { RolloutRecord, rolloutRequest, rolloutsReply } from "#wire/webapi/rollout.ts";
import { call } from "./api.ts";
import { queryClient } from "./query-client.ts";
import { followTopic } from "./topic-socket.ts";

/** The composer's request; the console fills in defaults. */
export type RequestedRollout = z.input<typeof rolloutRequest>;

const LIST_KEY = ["rollouts"] as const;
const BUSY_MS = 3_000;
const IDLE_MS = 20_000;
/** Poll interval; the socket has the changes in between. */
const RECORD_MS = 10_000;

/** GET /api/rollouts, newest first. */
export function useRollouts(): {
  readonly rollouts: readonly RolloutRecord[] | undefined;
  readonly error: Error | null;
} {
  const query = useQuery({
    queryKey: LIST_KEY,
    queryFn: ({ signal }) => call<z.infer<typeof rolloutsReply>>("/api/rollouts", { signal }),
    refetchInterval: ({ state }) =>
      state.data?.rollouts.some((rollout) => rollout.state === "running") === true ? BUSY_MS : IDLE_MS,
  });
  return { rollouts: query.data?.rollouts, error: query.error };
}

/** One rollout, kept up to date by the socket. */
export function useRollout(id: string): {
  readonly rollout: RolloutRecord | undefined;
  readonly error: Error | null;
} {
  const query = useQuery({
    queryKey: ["rollout", id],
    queryFn: ({ signal }) => call<RolloutRecord>(pathOf(id), { signal }),
    refetchInterval: ({ state }) => (state.data?.state === "running" ? RECORD_MS : false),
  });
  useEffect(
    () =>
      followTopic({
        request: () => ({ type: "subscribe", rollout_id: id }),
        onMessage: ({ type, data }) => {
          if (type === "rollout.state") keep(data as RolloutRecord);
        },
      }),
    [id],
  );
  return { rollout: query.data, error: query.error };
}

/** Replaces a record only by a newer state. */
function keep(record: RolloutRecord): void {
  queryClient.setQueryData<RolloutRecord>(["rollout", record.id], (known) =>
    known !== undefined && known.seq > record.seq ? known : record,
  );
}

/** The plan per node, without running it. Throws ApiProblem. */
export function planRollout(requested: RequestedRollout): Promise<RolloutRecord> {
  return call<RolloutRecord>("/api/rollouts", { method: "POST", body: { ...requested, dry_run: true } });
}

/** Starts one. With the key a second click means the same rollout. Throws ApiProblem. */
export function startRollout(requested: RequestedRollout, key: string): Promise<RolloutRecord> {
  return begun("/api/rollouts", { ...requested, idempotency_key: key });
}

/** The plan of going back. Throws ApiProblem. */
export function planBack(id: string): Promise<RolloutRecord> {
  return call<RolloutRecord>(`${pathOf(id)}/back`, { method: "POST", body: { dry_run: true } });
}

/** Brings the rollout's changed nodes to their commits before it. Throws ApiProblem. */
export function goBack(id: string): Promise<RolloutRecord> {
  return begun(`${pathOf(id)}/back`, {});
}

/** Cancels one. Throws ApiProblem. */
export async function cancelRollout(id: string): Promise<void> {
  keep(await call<RolloutRecord>(`${pathOf(id)}/cancel`, { method: "POST" }));
}

async function begun(path: string, body: object): Promise<RolloutRecord> {
  const record = await call<RolloutRecord>(path, { method: "POST", body });
  keep(record);
  await queryClient.invalidateQueries({ queryKey: LIST_KEY });
  return record;
}

function pathOf(id: string): string {
  return `/api/rollouts/${encodeURIComponent(id)}`;
}
