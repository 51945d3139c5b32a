// Roots that a node held and lost with its disk: what was restored of it lacks them, and nobody is given an empty one without a word (D19).
import { GroveError } from "#base/errors.ts";
import type { GivenUpRoot, NodeCaller } from "./directory.ts";
import { type Moment, newUlid, setting } from "./node-commands.ts";
import { get, type Plan, run } from "./sql-plan.ts";

/** Beside the settings: a table of its own would shut out every MetaServer and console of the version before. */
const PREFIX = "root_given_up:";

interface HeldRow {
  readonly fs_id: string;
  readonly held: bigint;
  readonly assigned_ms: bigint;
}

/** True when a node that was restored may ask for a root which it has lost. */
export function mayBeLost(caller: NodeCaller): boolean {
  return caller.restoredAtMs !== undefined;
}

/**
 * Asked for by the node that the root is on: the id of the new, empty root where an operator has given the old one up since the restore; undefined
 * where nothing is lost. Throws ROOT_LOST for one that the node held before it was restored, and lacks.
 */
export function* replaceLostRoot(now: Moment, owner: string, caller: NodeCaller): Plan<string | undefined> {
  const { restoredAtMs } = caller;
  const row = yield* heldRow(owner);
  if (restoredAtMs === undefined || row === undefined || row.held === 0n) return undefined;
  if (row.assigned_ms > BigInt(Math.trunc(restoredAtMs))) return undefined;
  const givenUpAtMs = Number(yield* setting(PREFIX + owner));
  // What was given up before this restore was another loss.
  if (!(givenUpAtMs >= restoredAtMs)) {
    throw new GroveError(
      "ROOT_LOST",
      `the root of ${owner} was on ${caller.fsId} before that was restored from a backup, which lacks it; an operator must give it up before ` +
        "there is an empty one (grove node lost-root)",
    );
  }
  const rootId = newUlid(now);
  yield* run("DELETE FROM grants WHERE owner = ?", owner);
  yield* run(
    "UPDATE roots SET root_id = ?, version = 0, assigned_ms = ? WHERE owner = ?",
    rootId,
    now.wallMs,
    owner,
  );
  yield* run("DELETE FROM settings WHERE key = ?", PREFIX + owner);
  return rootId;
}

/** An operator says that what a restore has lost of a user stays lost. Nothing changes for a root that its node has. */
export function* giveUpRoot(now: Pick<Moment, "wallMs">, owner: string): Plan<GivenUpRoot | undefined> {
  const row = yield* heldRow(owner);
  if (row === undefined || row.held === 0n) return undefined;
  yield* run(
    "INSERT INTO settings (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
    PREFIX + owner,
    String(Math.trunc(now.wallMs)),
  );
  return { fsId: row.fs_id };
}

function* heldRow(owner: string): Plan<HeldRow | undefined> {
  return yield* get<HeldRow>("SELECT fs_id, held, assigned_ms FROM roots WHERE owner = ?", owner);
}
