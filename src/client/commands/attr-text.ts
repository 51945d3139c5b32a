// Formats attributes of files and folders for people and programs.
import { formatBytes } from "#base/bytes.ts";
import { localTime } from "#client/terminal/local-time.ts";
import { type Attr, Kind, Perm } from "#wire/proto/gen/grove/v1/common_pb.ts";

const PERM_NAMES: Readonly<Record<Perm, string>> = {
  [Perm.READ]: "read",
  [Perm.WRITE]: "write",
  [Perm.DELETE]: "delete",
  [Perm.ADMIN]: "admin",
};

/** One inode for `--json`: times in RFC 3339 and milliseconds, sizes as exact numbers (T17). */
export function attrJson(attr: Attr): Record<string, unknown> {
  const isFile = attr.kind === Kind.FILE;
  return {
    name: attr.name,
    path: attr.path,
    kind: kindName(attr),
    size: attr.size,
    mtime: timeText(attr.mtimeMs),
    mtime_ms: attr.mtimeMs,
    ctime: timeText(attr.ctimeMs),
    ctime_ms: attr.ctimeMs,
    owner: attr.owner,
    root: attr.root,
    shared: attr.shared,
    created_by: attr.createdBy,
    etag: attr.etag,
    ...(isFile ? { crc32: crcText(attr) } : { child_count: attr.childCount }),
    ...(isFile ? { damaged: attr.damaged } : {}),
    permissions: attr.myPermissions.map((perm) => PERM_NAMES[perm] ?? String(perm)),
    id: attr.id,
  };
}

/** "file" or "directory". */
export function kindName(attr: Attr): string {
  return attr.kind === Kind.DIRECTORY ? "directory" : "file";
}

/** The checksum of a file as eight hexadecimal digits. */
export function crcText(attr: Attr): string {
  return attr.crc32.toString(16).padStart(8, "0");
}

/** A time as RFC 3339 in UTC; empty for one outside the calendar. */
export function timeText(ms: bigint): string {
  const date = new Date(Number(ms));
  return Number.isNaN(date.getTime()) ? "" : date.toISOString();
}

/** One row of `ls -l`: kind, size, time of change, share mark, name, and a mark for lost bytes. */
export function longRow(attr: Attr): string {
  const isFolder = attr.kind === Kind.DIRECTORY;
  const shared = attr.shared.length > 0 ? "shared" : "";
  const size = formatBytes(attr.size).padStart(10);
  return `${isFolder ? "d" : "-"} ${size}  ${localTime(attr.mtimeMs)}  ${shared.padEnd(6)}  ${rowName(attr)}${attr.damaged ? "  (damaged)" : ""}`;
}

/** A name in a listing: folders end in a slash. */
export function rowName(attr: Attr): string {
  return attr.kind === Kind.DIRECTORY ? `${attr.name}/` : attr.name;
}
