// Nodes whose roots the store may lack: new roots wait for their lists, so no user gets a second one (D19).
import { GroveError } from "#base/errors.ts";
import { HEARTBEAT_INTERVAL_MS, NODES_MAX } from "#base/limits.ts";
import { all, get, type Plan, rowsOfMarks, run } from "#metaserver/sql/sql-plan.ts";

/** Ids of nodes whose roots are not all in the store. */
export interface MissingLists {
  /** New roots wait until these have listed theirs. */
  readonly awaited: readonly string[];
  /** An operator has given these up. */
  readonly givenUp: readonly string[];
}

/** Nodes that a refusal names one by one. */
const NAMED_MAX = 5;

/** All of them, by id. */
export function* missingLists(): Plan<MissingLists> {
  const rows = yield* all<{ fs_id: string; given_up: bigint }>(
    "SELECT fs_id, given_up FROM unlisted_nodes LIMIT ?",
    2 * NODES_MAX,
  );
  // Databases sort text by rules of their own.
  const ids = (givenUp: bigint): string[] =>
    rows.flatMap((row) => (row.given_up === givenUp ? [row.fs_id] : [])).toSorted();
  return { awaited: ids(0n), givenUp: ids(1n) };
}

/** Adds nodes whose lists are missing. Known or given-up nodes stay as they are. */
export function* awaitNodes(fsIds: readonly string[]): Plan<void> {
  const rows = yield* all<{ fs_id: string }>("SELECT fs_id FROM nodes");
  const known = new Set(rows.map((row) => row.fs_id));
  const some = fsIds.filter((fsId) => !known.has(fsId)).slice(0, NODES_MAX);
  if (some.length === 0) return;
  yield* run(
    `INSERT INTO unlisted_nodes (fs_id, given_up) VALUES ${rowsOfMarks(some.length, 2)} ON CONFLICT (fs_id) DO NOTHING`,
    ...some.flatMap((fsId) => [fsId, 0]),
  );
}

/** Marks all nodes: the store is an older copy, and any of them may have roots that it lacks. */
export function* awaitAllLists(): Plan<void> {
  yield* run(
    `INSERT INTO unlisted_nodes (fs_id, given_up) SELECT n.fs_id, 0 FROM nodes n WHERE n.fs_id <> ''
     ON CONFLICT (fs_id) DO NOTHING`,
  );
}

/** The first page of a node's list has come: the rest will follow, even from a given-up node. */
export function* awaitRestOfList(fsId: string): Plan<void> {
  yield* run(
    "INSERT INTO unlisted_nodes (fs_id, given_up) VALUES (?, 0) ON CONFLICT (fs_id) DO UPDATE SET given_up = 0",
    fsId,
  );
}

/** The store has the node's whole list. */
export function* listComplete(fsId: string): Plan<void> {
  yield* run("DELETE FROM unlisted_nodes WHERE fs_id = ?", fsId);
}

/** Gives a node up; false for an unknown one. */
export function* giveUpList(fsId: string): Plan<boolean> {
  const row = yield* get<{ known: bigint }>(
    `SELECT (SELECT COUNT(*) FROM nodes n WHERE n.fs_id = ?) + (SELECT COUNT(*) FROM unlisted_nodes u WHERE u.fs_id = ?) AS known`,
    fsId,
    fsId,
  );
  if (row === undefined || row.known === 0n) return false;
  yield* run(
    "INSERT INTO unlisted_nodes (fs_id, given_up) VALUES (?, 1) ON CONFLICT (fs_id) DO UPDATE SET given_up = 1",
    fsId,
  );
  return true;
}

/** Throws STARTING while a root that is new here may be one that a node has not listed yet. */
export function* requireAllLists(): Plan<void> {
  const { awaited } = yield* missingLists();
  if (awaited.length === 0) return;
  const named = awaited.slice(0, NAMED_MAX).join(", ");
  const more = awaited.length > NAMED_MAX ? ` and ${awaited.length - NAMED_MAX} more` : "";
  throw new GroveError(
    "STARTING",
    `new users wait until these nodes have listed the roots that they hold: ${named}${more}; the operator ends the wait for one that does ` +
      "not come back with 'grove node lost ID'",
    {
      metadata: {
        nodes: awaited.slice(0, NAMED_MAX).join(","),
        retry_after_ms: String(HEARTBEAT_INTERVAL_MS),
      },
    },
  );
}
