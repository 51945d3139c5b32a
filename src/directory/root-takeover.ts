// Takes over what a registering node says of its roots, without ever overwriting what the store knows better (D19).
import type { HeldRoot, NodeRegistration, RootConflict } from "./directory.ts";
import type { SqlSession } from "./sql-session.ts";

interface RecordedRoot {
  readonly root_id: string;
  readonly fs_id: string;
  readonly held: bigint;
  readonly version: bigint;
}

/**
 * Records the roots and grants of a node. A root that the store lacks is added, which is how a lost store is rebuilt; one that it has
 * placed elsewhere yields only while nobody holds it there; every other difference is a conflict, and the store's word stays.
 */
export function registerRoots(
  registration: NodeRegistration,
  session: SqlSession,
  nowWallMs: number,
): RootConflict[] {
  const conflicts: RootConflict[] = [];
  for (const held of registration.roots) {
    const recorded = session.get(
      "SELECT root_id, fs_id, held, version FROM roots WHERE owner = ?",
      held.owner,
    ) as RecordedRoot | undefined;
    const isSame = recorded?.root_id === held.rootId && recorded.fs_id === registration.fsId;
    if (recorded !== undefined && !isSame && recorded.held === 1n) {
      conflicts.push({
        owner: held.owner,
        heldRootId: held.rootId,
        recordedRootId: recorded.root_id,
        recordedFsId: recorded.fs_id,
      });
      continue;
    }
    const isNews = !isSame || held.version > recorded.version;
    if (isNews || recorded?.held === 0n) recordRoot(registration.fsId, held, session, nowWallMs);
    if (isNews) recordGrants(held, session);
  }
  return conflicts;
}

function recordRoot(fsId: string, held: HeldRoot, session: SqlSession, nowWallMs: number): void {
  session.run(
    `INSERT INTO roots (owner, root_id, fs_id, held, version, assigned_ms) VALUES (?, ?, ?, 1, ?, ?)
     ON CONFLICT (owner) DO UPDATE SET root_id = excluded.root_id, fs_id = excluded.fs_id, held = 1,
       version = excluded.version`,
    held.owner,
    held.rootId,
    fsId,
    held.version,
    nowWallMs,
  );
}

/** The list replaces every grant up to its version; a newer one came by a message of its own and stays. */
function recordGrants(held: HeldRoot, session: SqlSession): void {
  session.run(
    "UPDATE grants SET granted = 0, version = ? WHERE owner = ? AND version <= ?",
    held.version,
    held.owner,
    held.version,
  );
  for (const grant of held.grants) {
    session.run(
      `INSERT INTO grants (owner, user, path, version, granted) VALUES (?, ?, ?, ?, 1)
       ON CONFLICT DO UPDATE SET version = excluded.version, granted = 1 WHERE excluded.version >= grants.version`,
      held.owner,
      grant.user,
      grant.path,
      held.version,
    );
  }
}
