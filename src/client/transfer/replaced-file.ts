// Keeps the rights and the owner of a file that a download replaces, and says what none may replace.
import { fchmodSync, fchownSync, fstatSync, lstatSync, readlinkSync, type Stats, statSync } from "node:fs";
import { ClientError } from "#client/terminal/client-error.ts";

/** Mode, owner and group of a file. */
export interface FileRights {
  /** The nine bits of owner, group and others; never setuid or setgid. */
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
}

const RIGHTS_BITS = 0o777;
const OWNER_ALONE = 0o600;
const BY_UMASK = 0o666;

/** Throws ClientError for what takes bytes and is no file, such as /dev/null: a download would take its place. */
export function requireReplaceable(path: string): void {
  let stats: Stats | undefined;
  try {
    stats = statSync(path, { throwIfNoEntry: false });
  } catch {
    // What leads nowhere is replaced itself.
  }
  if (stats === undefined || stats.isDirectory()) return;
  if (stats.isFile() && !isOpenFile(path)) return;
  throw new ClientError("LOCAL_FILE", "is neither a file nor a folder", {
    about: path,
    todo: "To send the bytes there: grove cat PATH > TARGET",
  });
}

/** True for a link such as /dev/stdout, which stands for an open file whatever that is. */
function isOpenFile(path: string): boolean {
  return lstatSync(path).isSymbolicLink() && readlinkSync(path).startsWith("/proc/");
}

/**
 * The rights of the file at a path; undefined without a regular file: a symbolic link is replaced. Throws ClientError
 * for a folder, and for what `requireReplaceable` refuses.
 */
export function rightsAt(path: string): FileRights | undefined {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return undefined;
  if (stats.isFile()) return { mode: stats.mode & RIGHTS_BITS, uid: stats.uid, gid: stats.gid };
  if (stats.isDirectory()) {
    throw new ClientError("LOCAL_FILE", "a folder is in the way", {
      about: path,
      todo: "Move it away, or choose another target.",
    });
  }
  requireReplaceable(path);
  return undefined;
}

/** The mode of the temporary file: gives no reader more than the replaced file does. */
export function modeWhileFilling(replaced: FileRights | undefined): number {
  return replaced === undefined ? BY_UMASK : OWNER_ALONE;
}

/**
 * Gives an open file those rights, owner and group as far as this user may. Throws when others would have
 * more rights than before.
 */
export function takeRights(descriptor: number, replaced: FileRights): void {
  const own = fstatSync(descriptor);
  let { mode } = replaced;
  const hasOwner = own.uid === replaced.uid && own.gid === replaced.gid;
  if (!hasOwner && !isGiven(descriptor, replaced.uid, replaced.gid)) {
    const hasGroup = own.gid === replaced.gid || isGiven(descriptor, own.uid, replaced.gid);
    if (!hasGroup) mode = modeForOtherGroup(mode);
  }
  if ((own.mode & RIGHTS_BITS) === mode) return;
  try {
    fchmodSync(descriptor, mode);
  } catch (error) {
    // A disk without rights of its own, such as FAT, has the same ones for all files.
    if ((own.mode & RIGHTS_BITS & ~mode) !== 0) throw error;
  }
}

/** The mode under another group than before: that group gets only the rights of others. */
export function modeForOtherGroup(mode: number): number {
  return mode & (0o707 | ((mode & 0o007) << 3));
}

function isGiven(descriptor: number, uid: number, gid: number): boolean {
  try {
    fchownSync(descriptor, uid, gid);
    return true;
  } catch {
    return false;
  }
}
