// Nodes that get no new roots since they are to be emptied, until an operator says otherwise (D27).
import { GroveError } from "#base/errors.ts";
import { NODES_MAX } from "#base/limits.ts";
import { addSetting, dropSetting } from "#metaserver/sql/settings.ts";
import { all, get, type Plan, run } from "#metaserver/sql/sql-plan.ts";
import type { Moment } from "./node-commands.ts";

/** A setting, since a new table would shut out every MetaServer and console of the version before. */
const PREFIX = "node_drained:";

/** Ids of the drained nodes. */
export function* drainedNodes(_now?: Moment): Plan<string[]> {
  const rows = yield* all<{ key: string }>(
    "SELECT key FROM settings WHERE key LIKE ? ORDER BY key LIMIT ?",
    `${PREFIX}%`,
    NODES_MAX,
  );
  return rows.map(({ key }) => key.slice(PREFIX.length)).toSorted();
}

/** Drains a node, or takes that back. Throws BAD_ARGUMENT for an unknown one. */
export function* setDrained(now: Pick<Moment, "wallMs">, fsId: string, isDrained: boolean): Plan<void> {
  if (!isDrained) {
    yield* dropSetting(PREFIX + fsId);
    return;
  }
  const node = yield* get<{ fs_id: string }>("SELECT fs_id FROM nodes WHERE fs_id = ?", fsId);
  if (node === undefined) throw new GroveError("BAD_ARGUMENT", `no FileServer has registered as ${fsId}`);
  yield* addSetting(PREFIX + fsId, String(Math.trunc(now.wallMs)));
  // Roots that were placed and never made have no files: their users are placed anew.
  yield* run("DELETE FROM roots WHERE fs_id = ? AND held = 0", fsId);
}
