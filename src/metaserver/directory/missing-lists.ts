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
/** `given_up` of a node that is asked for its list while new users do not wait for it. */
const ASKED = 2;

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

/** True for a node that is waited for, or was given up: `given_up` as its row has it, null for none. */
export function isListAwaited(givenUp: bigint | null): boolean {
  return givenUp !== null && givenUp !== BigInt(ASKED);
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
     ON CONFLICT (fs_id) DO UPDATE SET given_up = 0 WHERE unlisted_nodes.given_up = ?`,
    ASKED,
  );
}

/** Asks a node for its whole list in the answer to each of its heartbeats, until that has come. */
export function* askForList(fsId: string): Plan<void> {
  yield* run(
    `INSERT INTO unlisted_nodes (fs_id, given_up) SELECT n.fs_id, ? FROM nodes n WHERE n.fs_id = ?
     ON CONFLICT (fs_id) DO NOTHING`,
    ASKED,
    fsId,
  );
}

/** Has the nodes list their roots again to which any was refused: another node was thought to have it, and has not. */
function* askRefusedNodes(fsId: string): Plan<void> {
  yield* run(
    `INSERT INTO unlisted_nodes (fs_id, given_up) SELECT n.fs_id, ? FROM nodes n WHERE n.fs_id <> ? AND n.roots_refused > 0
     ON CONFLICT (fs_id) DO NOTHING`,
    ASKED,
    fsId,
  );
}

/** The first page of a node's list has come: the rest will follow, even from a given-up node. */
export function* awaitRestOfList(fsId: string): Plan<void> {
  yield* run(
    "INSERT INTO unlisted_nodes (fs_id, given_up) VALUES (?, 0) ON CONFLICT (fs_id) DO UPDATE SET given_up = 0",
    fsId,
  );
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
  requireNone((yield* missingLists()).awaited);
}

/** The same for a root that its node did not list: who is asked again and was refused roots may have it. */
export function* requireAskedLists(): Plan<void> {
  const rows = yield* all<{ fs_id: string }>(
    `SELECT u.fs_id FROM unlisted_nodes u WHERE u.given_up = 0 OR (u.given_up = ? AND EXISTS
       (SELECT 1 FROM nodes n WHERE n.fs_id = u.fs_id AND n.roots_refused > 0)) LIMIT ?`,
    ASKED,
    2 * NODES_MAX,
  );
  requireNone(rows.map((row) => row.fs_id).toSorted());
}

function requireNone(awaited: readonly string[]): void {
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

// Roots that an older copy places on a node which does not list them: they are with the node that does.

/** `held` of a root that its node was asked for and did not list; 0 is placed, 1 held. */
export const NOT_LISTED = 2n;
/** `held` while its node's list is taken over, within that transaction. */
const ASKED_FOR = 3n;

/** What a list was asked for: for nothing, for news of some roots, or for all of them. */
export type ListAsked = "all" | "no" | "some";

/** Before a list is taken over: where all are asked for, each root of the node that it lacks is to be noted. */
export function* beginList(fsId: string): Plan<ListAsked> {
  const row = yield* get<{ given_up: bigint }>("SELECT given_up FROM unlisted_nodes WHERE fs_id = ?", fsId);
  if (row === undefined) return "no";
  if (row.given_up === BigInt(ASKED)) return "some";
  yield* run("UPDATE roots SET held = ? WHERE fs_id = ? AND held = 1", ASKED_FOR, fsId);
  return "all";
}

/**
 * Afterwards: the store has the node's whole list, unless it was asked for meanwhile. Notes the roots that it
 * lacks, and has the nodes list theirs again to which any was refused.
 */
export function* endList(fsId: string, asked: ListAsked, nowWallMs: number): Plan<void> {
  if (asked === "no") return;
  if (asked === "some") {
    // All may be asked for since this began.
    yield* run("DELETE FROM unlisted_nodes WHERE fs_id = ? AND given_up = ?", fsId, ASKED);
    return;
  }
  yield* run("DELETE FROM unlisted_nodes WHERE fs_id = ?", fsId);
  const missing = yield* run(
    "UPDATE roots SET held = ?, assigned_ms = ? WHERE fs_id = ? AND held = ?",
    NOT_LISTED,
    Math.trunc(nowWallMs),
    fsId,
    ASKED_FOR,
  );
  if (missing > 0) yield* askRefusedNodes(fsId);
}

/** Confirms roots that a list has and that are recorded as they are. */
export function* confirmListed(owners: readonly string[]): Plan<void> {
  if (owners.length === 0) return;
  yield* run(
    `UPDATE roots SET held = 1 WHERE owner IN (${owners.map(() => "?").join(", ")}) AND held > 1`,
    ...owners,
  );
}
