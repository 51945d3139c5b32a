// When a file that is on both sides is taken for the same, so that it goes over the network only once.
import { isClientError } from "#client/terminal/client-error.ts";
import { checksumOf } from "./local-checksum.ts";

/** What must agree besides the size. */
export interface Sameness {
  /** The time of change. */
  readonly byTime: boolean;
  /** The checksum of the content, for which the file of this machine is read. */
  readonly byChecksum: boolean;
  /** Wall time: the checksum too of what has changed on this machine since then. */
  readonly checksumSinceMs?: number;
}

/** Size and time. */
export const BY_TIME: Sameness = { byTime: true, byChecksum: false };
/** Size and content, whatever the times say. */
export const BY_CHECKSUM: Sameness = { byTime: false, byChecksum: true };
/** Size, time and content. */
export const BY_BOTH: Sameness = { byTime: true, byChecksum: true };

/** A file of this machine as a look at it found it. */
export interface FileHere {
  readonly path: string;
  readonly sizeBytes: number;
  /** Whole milliseconds, as servers are told. */
  readonly mtimeMs: number;
  /** The last change of anything, which nobody can set back. */
  readonly ctimeMs: number;
}

/** A file of the cluster. */
export interface FileThere {
  readonly sizeBytes: number;
  readonly mtimeMs: number;
  readonly crc32: number;
}

/** True when the two are the same as far as the rule says; false also for a file that cannot be read, which its transfer then tells. */
export function isSame(here: FileHere, there: FileThere, rule: Sameness): boolean | Promise<boolean> {
  if (here.sizeBytes !== there.sizeBytes) return false;
  if (rule.byTime && here.mtimeMs !== there.mtimeMs) return false;
  const { byChecksum, checksumSinceMs = Number.POSITIVE_INFINITY } = rule;
  return byChecksum || here.ctimeMs >= checksumSinceMs ? hasChecksum(here, there.crc32) : true;
}

async function hasChecksum({ path, sizeBytes }: FileHere, crc: number): Promise<boolean> {
  try {
    return (await checksumOf(path, sizeBytes)) === crc;
  } catch (error) {
    if (isClientError(error)) return false;
    throw error;
  }
}
