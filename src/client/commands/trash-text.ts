// Formats items of the trash for people and programs.
import { formatBytes } from "#base/bytes.ts";
import { localTime } from "#client/terminal/local-time.ts";
import { Kind } from "#wire/proto/gen/grove/v1/common_pb.ts";
import type { TrashItem } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { timeText } from "./attr-text.ts";

const ID = /^[0-9a-z]{9,11}-[0-9a-z]+$/;

/** True for a possible item id: a path may look the same, and is tried second. */
export function isTrashId(text: string): boolean {
  return ID.test(text);
}

/** One item as `--json` prints it. */
export function trashJson(item: TrashItem): Record<string, unknown> {
  return {
    trash_id: item.trashId,
    original_path: item.originalPath,
    kind: item.kind === Kind.DIRECTORY ? "directory" : "file",
    size: item.size,
    inode_count: item.inodeCount,
    trashed_at: timeText(item.trashedAtMs),
    trashed_at_ms: item.trashedAtMs,
    expires_at: item.expiresAtMs === 0n ? null : timeText(item.expiresAtMs),
    expires_at_ms: item.expiresAtMs === 0n ? null : item.expiresAtMs,
    trashed_by: item.trashedBy,
    parent_exists: item.parentExists,
    former_shares: item.formerShares.map(({ path, user }) => ({ path, user })),
  };
}

/** One row: id, when it was trashed, size, until when it is kept, by whom, where it was. */
export function trashRow(item: TrashItem, reader: string): string {
  const size = formatBytes(item.size).padStart(10);
  const isFolder = item.kind === Kind.DIRECTORY;
  const until = item.expiresAtMs === 0n ? "" : `until ${localTime(item.expiresAtMs).slice(0, 10)}`;
  const path = `${item.originalPath}${isFolder ? "/" : ""}`;
  const by = `by ${item.trashedBy === reader ? "you" : item.trashedBy}`;
  return `${item.trashId.padEnd(18)}  ${localTime(item.trashedAtMs)} ${size}  ${until.padEnd(16)}  ${by.padEnd(6)}  ${path}`;
}
