// Time of a store in PostgreSQL: by the clock of the database.
import { NODE_LEASE_MS } from "#base/limits.ts";
import type { Moment } from "./node-commands.ts";

/** Time by the database's clock alone: a set clock, or another server's, stretches no lease by much. */
export function momentOf(wallMs: number): Moment {
  return {
    wallMs,
    isLive: ({ last_seen_ms }) => Math.abs(wallMs - Number(last_seen_ms)) < NODE_LEASE_MS,
    // The rows hold everything.
    renew: () => undefined,
    placementWaitMs: (sinceMs) =>
      Math.abs(wallMs - sinceMs) < NODE_LEASE_MS
        ? Math.min(sinceMs + NODE_LEASE_MS - wallMs, NODE_LEASE_MS)
        : 0,
    holdPlacement: () => undefined,
  };
}
