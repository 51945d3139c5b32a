// How far operators' words on whose the addresses are have come, which every heartbeat tells (D21).
import { get, type Plan } from "./sql-plan.ts";

/** The version of what an operator has said last; 0 where none has said anything. */
export function* newestSubject(): Plan<bigint> {
  const row = yield* get<{ newest: bigint | null }>("SELECT MAX(version) AS newest FROM subjects");
  return row?.newest ?? 0n;
}
