// Decides when a file on both sides counts as the same, so that it is not transferred again.
import { isClientError } from "#client/terminal/client-error.ts";
import { COARSE_FILE_TIME_MS } from "#client/terminal/limits.ts";
import { checksumOf } from "./local-checksum.ts";

/** The attributes that must agree besides the size. */
export interface Sameness {
  /** The time of change. */
  readonly byTime: boolean;
  /** The checksum of the content, for which the local file is read. */
  readonly byChecksum: boolean;
  /** Wall time: files changed here since then are compared by checksum too. */
  readonly checksumSinceMs?: number;
}

/** Size and time. */
export const BY_TIME: Sameness = { byTime: true, byChecksum: false };
/** Size and content, independent of times. */
export const BY_CHECKSUM: Sameness = { byTime: false, byChecksum: true };
/** Size, time and content. */
export const BY_BOTH: Sameness = { byTime: true, byChecksum: true };

/** A local file as it was found. */
export interface FileHere {
  readonly path: string;
  readonly sizeBytes: number;
  /** Whole milliseconds, as on the wire. */
  readonly mtimeMs: number;
  /** The last change of the inode, which no program can set back. */
  readonly ctimeMs: number;
}

/** A file of the cluster. */
export interface FileThere {
  readonly sizeBytes: number;
  readonly mtimeMs: number;
  readonly crc32: number;
}

/** True when both agree by the rule; false also for an unreadable file, whose transfer then fails. */
export function isSame(here: FileHere, there: FileThere, rule: Sameness): boolean | Promise<boolean> {
  if (here.sizeBytes !== there.sizeBytes) return false;
  const hasTime = here.mtimeMs === there.mtimeMs;
  if (rule.byTime && !hasTime && !mayBeRounded(here.mtimeMs, there.mtimeMs)) return false;
  const { byChecksum, checksumSinceMs = Number.POSITIVE_INFINITY } = rule;
  return byChecksum || !hasTime || here.ctimeMs >= checksumSinceMs ? hasChecksum(here, there.crc32) : true;
}

/** True for a time that a disk with whole seconds, or every second one, keeps of another: the content decides. */
function mayBeRounded(hereMs: number, thereMs: number): boolean {
  return hereMs % 1_000 === 0 && Math.abs(hereMs - thereMs) < COARSE_FILE_TIME_MS;
}

async function hasChecksum({ path, sizeBytes }: FileHere, crc: number): Promise<boolean> {
  try {
    return (await checksumOf(path, sizeBytes)) === crc;
  } catch (error) {
    if (isClientError(error)) return false;
    throw error;
  }
}
