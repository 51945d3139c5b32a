// The parts of a FileServer that know of groups: the copy in the data folder, and who keeps it current.
import { join } from "node:path";
import type { Clock } from "#base/clock.ts";
import { HEARTBEAT_INTERVAL_MS } from "#base/limits.ts";
import type { Logger } from "#base/log.ts";
import { GroupReader, type GroupReaderDeps } from "#fileserver/control/group-reader.ts";
import type { FileService } from "#fileserver/operations/file-service.ts";
import type { AuditLog } from "#security/audit/audit-log.ts";
import { GROUPS_FILE, KnownGroups } from "#security/identity/known-groups.ts";
import type { UserStateStore } from "#security/identity/user-state-store.ts";

/** Opens the copy; its last write ends before the process does. */
export async function openGroups(
  dataFolder: string,
  world: { readonly userStates: UserStateStore; readonly clock: Clock; readonly log: Logger },
  closers: AsyncDisposableStack,
): Promise<KnownGroups> {
  const { userStates, clock, log } = world;
  const groups = await KnownGroups.open({
    path: join(dataFolder, GROUPS_FILE),
    clock,
    log,
    isGoneSince: (username, setAtMs, nowMs) => userStates.states.isGoneSince(username, setAtMs, nowMs),
  });
  closers.defer(() => groups.kept());
  return groups;
}

/** Makes the reader that hears of changes. */
export function groupReaderOf(
  parts: { readonly groups: KnownGroups; readonly auditLog: AuditLog; readonly log: Logger },
  link: Pick<GroupReaderDeps, "client" | "fsId"> & { readonly service: FileService },
): GroupReader {
  const { groups, auditLog, log } = parts;
  return new GroupReader({
    ...link,
    groups,
    ensureRoot: (owner, isNews) => link.service.ensureGroupRoot(owner, isNews),
    audit: (act) => auditLog.append(act),
    timeoutMs: HEARTBEAT_INTERVAL_MS,
    log,
  });
}
