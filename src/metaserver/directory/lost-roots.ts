// Roots that a node's disk and backup have lost: only an operator replaces them by empty ones (D19).
import { GroveError } from "#base/errors.ts";
import { setting } from "#metaserver/sql/settings.ts";
import { get, type Plan, run } from "#metaserver/sql/sql-plan.ts";
import type { GivenUpRoot } from "./directory.ts";
import type { NodeCaller } from "./node-caller.ts";
import { type Moment, newUlid } from "./node-commands.ts";

/** A setting, since a new table would shut out every MetaServer and console of the version before. */
const PREFIX = "root_given_up:";

interface HeldRow {
  readonly fs_id: string;
  readonly held: bigint;
  readonly assigned_ms: bigint;
}

/** True when a restored node may ask for a root that it has lost. */
export function mayBeLost(caller: NodeCaller): boolean {
  return caller.restoredAtMs !== undefined;
}

/**
 * For the node on which a root lives: the id of the new, empty root when an operator gave the old one up
 * after the restore; else undefined. Throws ROOT_LOST for a root from before the restore that the node lacks.
 */
export function* replaceLostRoot(now: Moment, owner: string, caller: NodeCaller): Plan<string | undefined> {
  const { restoredAtMs } = caller;
  const row = yield* heldRow(owner);
  if (restoredAtMs === undefined || row === undefined || row.held === 0n) return undefined;
  if (row.assigned_ms > BigInt(Math.trunc(restoredAtMs))) return undefined;
  const givenUpAtMs = Number(yield* setting(PREFIX + owner));
  // A root given up before this restore was another loss.
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

/** Gives up a user's root that a restore has lost. Nothing changes for a root that its node has. */
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
