// Nodes that get no new roots for a while because an operator works on them, as plans (D11, D19).
import { GroveError } from "#base/errors.ts";
import { NODES_MAX } from "#base/limits.ts";
import { dropSetting, putSetting } from "#metaserver/sql/settings.ts";
import { all, type Plan } from "#metaserver/sql/sql-plan.ts";
import type { Moment } from "./node-commands.ts";
import type { PlacementCandidate } from "./placement.ts";

/** A setting, since a new table would shut out every MetaServer and console of the version before. */
const PREFIX = "placement_paused:";

/** Ends of the current pauses, in unix milliseconds, by node. */
export function* placementPauses(now: Pick<Moment, "wallMs">): Plan<ReadonlyMap<string, number>> {
  const rows = yield* all<{ key: string; value: string }>(
    "SELECT key, value FROM settings WHERE key LIKE ? ORDER BY key LIMIT ?",
    `${PREFIX}%`,
    NODES_MAX,
  );
  const pauses = rows.map(({ key, value }) => [key.slice(PREFIX.length), Number(value)] as const);
  return new Map(pauses.filter(([, untilMs]) => untilMs > now.wallMs));
}

/** Pauses a node until a moment, or ends its pause. */
export function* setPlacementPause(
  now: Pick<Moment, "wallMs">,
  fsId: string,
  untilWallMs: number | undefined,
): Plan<void> {
  if (untilWallMs === undefined || untilWallMs <= now.wallMs) {
    yield* dropSetting(PREFIX + fsId);
    return;
  }
  yield* putSetting(PREFIX + fsId, String(Math.trunc(untilWallMs)));
}

/** The refusal when no node takes a new root, with those that would without their pause. */
export function nobodyTakesRoots(
  nodes: readonly PlacementCandidate[],
  pauses: ReadonlyMap<string, number>,
): GroveError {
  const paused = nodes.filter(({ fsId, live, draining }) => live && !draining && pauses.has(fsId));
  if (paused.length === 0) {
    return new GroveError("NODE_DRAINING", "new users wait: no FileServer that takes new roots is running", {
      metadata: { new_users: "wait" },
    });
  }
  const until = Math.min(...paused.map(({ fsId }) => pauses.get(fsId) ?? 0));
  return new GroveError(
    "NODE_DRAINING",
    `new users wait: every FileServer that is running is in maintenance, one of them until ${new Date(until).toISOString().slice(0, 16)}Z`,
    {
      metadata: {
        maintenance: paused
          .map(({ fsId }) => fsId)
          .join(",")
          .slice(0, 200),
      },
    },
  );
}
