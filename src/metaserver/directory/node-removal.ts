// Removes a node from the metadata store for good; a node with roots only when they are given up (D19).
import { GroveError } from "#base/errors.ts";
import { all, get, getLocked, type Plan, run } from "#metaserver/sql/sql-plan.ts";
import type { NodeRemoval } from "./directory.ts";
import { setDrained } from "./drained-nodes.ts";
import { giveUpList } from "./missing-lists.ts";
import { type Moment, noteEngine } from "./node-commands.ts";
import type { NodeRow } from "./node-row.ts";
import { setPlacementPause } from "./placement-pauses.ts";
import { noteRemoved } from "./removed-nodes.ts";
import { leaveMoves } from "./root-move-rows.ts";
import { forgetRootSizes } from "./root-sizes.ts";
import { removeSshNode } from "./ssh-node-commands.ts";
import { forgetStaged } from "./staged-pages.ts";

/** Owners that the refusal names for a node that still holds roots. */
const OWNERS_LISTED = 100;

/** Removes a node whose roots are given up. Throws BAD_ARGUMENT for a live one or one with unlisted roots. */
export function* removeNode(now: Moment, fsId: string, abandonedRoots = 0): Plan<NodeRemoval> {
  const node = yield* getLocked<Pick<NodeRow, "fs_id" | "last_seen_ms" | "holder_key" | "first_key">>(
    "SELECT fs_id, last_seen_ms, holder_key, first_key FROM nodes WHERE fs_id = ?",
    fsId,
  );
  if (node === undefined)
    return { outcome: "unknown", rootCount: 0, owners: [], ssh: yield* removeSshNode(fsId) };
  if (now.isLive(node)) {
    throw new GroveError(
      "BAD_ARGUMENT",
      `${fsId} is running, or was until less than 30 s ago: stop it, wait, and remove it then`,
    );
  }
  yield* requireListed(fsId);
  // A root that was only placed has no files yet: its user is placed elsewhere at the next sign-in.
  const held = yield* get<{ count: bigint }>(
    "SELECT COUNT(*) AS count FROM roots WHERE fs_id = ? AND held > 0",
    fsId,
  );
  const rootCount = Number(held?.count ?? 0n);
  const owners = yield* ownersOf(fsId);
  if (rootCount !== abandonedRoots) return { outcome: "holds_roots", rootCount, owners, ssh: false };
  // MetaServers that remember it must not wait for its list.
  yield* giveUpList(fsId);
  yield* run("DELETE FROM grants WHERE owner IN (SELECT r.owner FROM roots r WHERE r.fs_id = ?)", fsId);
  yield* run("DELETE FROM roots WHERE fs_id = ?", fsId);
  yield* forgetStaged(fsId);
  yield* setPlacementPause(now, fsId, undefined);
  yield* setDrained(now, fsId, false);
  yield* noteEngine(fsId, false);
  yield* forgetRootSizes(fsId);
  yield* leaveMoves(now, fsId);
  yield* noteRemoved(fsId, [node.holder_key, node.first_key]);
  yield* run("DELETE FROM nodes WHERE fs_id = ?", fsId);
  return { outcome: "removed", rootCount, owners, ssh: yield* removeSshNode(fsId) };
}

function* requireListed(fsId: string): Plan<void> {
  const unlisted = yield* get<{ count: bigint }>(
    "SELECT COUNT(*) AS count FROM unlisted_nodes WHERE fs_id = ? AND given_up = 0",
    fsId,
  );
  if (unlisted === undefined || unlisted.count === 0n) return;
  throw new GroveError(
    "BAD_ARGUMENT",
    `${fsId} has not listed its roots since the metadata store was lost or restored: start it once, or say that it does not come back ` +
      `(grove node lost ${fsId})`,
  );
}

function* ownersOf(fsId: string): Plan<string[]> {
  const rows = yield* all<{ owner: string }>(
    "SELECT owner FROM roots WHERE fs_id = ? AND held > 0 ORDER BY owner LIMIT ?",
    fsId,
    OWNERS_LISTED,
  );
  // Databases sort text by rules of their own.
  return rows.map(({ owner }) => owner).toSorted();
}
