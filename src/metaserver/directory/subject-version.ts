// The version of the last rebinding of an address, which every heartbeat's answer carries (D21).
import { get, type Plan } from "#metaserver/sql/sql-plan.ts";

/** The version of the last rebinding; 0 when there is none. */
export function* newestSubject(): Plan<bigint> {
  const row = yield* get<{ newest: bigint | null }>("SELECT MAX(version) AS newest FROM subjects");
  return row?.newest ?? 0n;
}
