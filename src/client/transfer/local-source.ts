// Captures a local file's state when its upload begins, and checks it before the last piece.
import { type BigIntStats, constants } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { FILE_MAX_BYTES } from "#base/limits.ts";
import { ClientError } from "#client/terminal/client-error.ts";
import { COARSE_FILE_TIME_MS, FILE_TIME_MS, SOURCE_LOOKS_MAX } from "#client/terminal/limits.ts";

/** O_NOFOLLOW and O_NONBLOCK: no link is followed, and a pipe's other end is not awaited. */
export const READ_FLAGS: number = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** The attributes that a change of a file's content changes. */
export interface SourceState {
  readonly sizeBytes: number;
  /** The time on the wire: whole milliseconds, and 1 for 0, since 0 means "now" there. */
  readonly mtimeMs: number;
  readonly mtimeNs: bigint;
  /** Unlike mtime, no program can set it back. */
  readonly ctimeNs: bigint;
  /** What else another place tells of a version, such as an etag; empty for files of this machine. */
  readonly version?: string;
}

/** The state of an open file. Throws ClientError for what cannot be uploaded. */
export function stateOf(stats: BigIntStats, path: string): SourceState {
  if (!stats.isFile()) throw new ClientError("LOCAL_FILE", "is not a file", { about: path });
  if (stats.size > BigInt(FILE_MAX_BYTES)) {
    throw new ClientError("LOCAL_FILE", "is too large for the cluster", { about: path });
  }
  const { mtimeNs, ctimeNs } = stats;
  // A time set as seconds with a fraction lies some nanoseconds before its millisecond, so it is rounded.
  const mtimeMs = Number(mtimeNs / 1_000_000n) + Number(mtimeNs % 1_000_000n) / 1e6;
  return { sizeBytes: Number(stats.size), mtimeMs: toldTimeMs(mtimeMs), mtimeNs, ctimeNs };
}

/** A time of change as it is sent to servers. */
export function toldTimeMs(mtimeMs: number): number {
  return Math.trunc(mtimeMs) || 1;
}

/** True when no write happened since an earlier check found the file settled. */
export function isSameState(earlier: SourceState, now: SourceState): boolean {
  return (
    earlier.sizeBytes === now.sizeBytes &&
    earlier.mtimeNs === now.mtimeNs &&
    earlier.ctimeNs === now.ctimeNs &&
    earlier.version === now.version
  );
}

/**
 * True when every write from now on gives the file another time. Just after a change it may not: file times
 * advance in steps, and a call that set the time may still be writing. `nowMs` is wall time.
 */
export function isSettled(state: SourceState, nowMs: number): boolean {
  return Math.abs(nowMs - Number(state.ctimeNs) / 1e6) > stepMsOf(state);
}

/**
 * Waits until the file is settled and returns its state. Rejects with ClientError for a file in constant
 * change.
 */
export async function settledState<S extends SourceState>(look: () => Promise<S>, path: string): Promise<S> {
  for (let looks = 1; ; looks++) {
    const state = await look();
    if (isSettled(state, Date.now())) return state;
    if (looks === SOURCE_LOOKS_MAX) throw changedWhileRead(path);
    await delay(stepMsOf(state) + 1);
  }
}

function stepMsOf(state: SourceState): number {
  return hasCoarseTimes(state) ? COARSE_FILE_TIME_MS : FILE_TIME_MS;
}

/** True for times in whole seconds, as some disks have them: two files may well have the same. */
export function hasCoarseTimes({ ctimeNs }: SourceState): boolean {
  return ctimeNs % 1_000_000_000n === 0n;
}

/**
 * Gives the last piece, of so many bytes, only when the file is unchanged. Else its start and its end would
 * come from different states.
 */
export async function* unchanged(
  pieces: AsyncIterable<Buffer>,
  totalBytes: number,
  source: { readonly path: string; readonly isSame: () => Promise<boolean> },
): AsyncGenerator<Buffer, void, undefined> {
  let bytes = 0;
  let last: Buffer | undefined;
  for await (const piece of pieces) {
    bytes += piece.length;
    if (bytes < totalBytes) yield piece;
    else last = piece;
  }
  if (!(await source.isSame())) throw changedWhileRead(source.path);
  if (last !== undefined) yield last;
}

/** Throws USAGE for an empty path: a variable without a value far more often than the current folder. */
export function requireWord(path: string): void {
  if (path !== "") return;
  throw new ClientError("USAGE", "a path on this machine is empty", {
    todo: "'.' is the folder that you are in.",
  });
}

/** The refusal of a file that is being written to. */
export function changedWhileRead(path: string): ClientError {
  return new ClientError("LOCAL_FILE", "changed while it was read", {
    about: path,
    todo: "Send it again when nobody writes to it.",
  });
}
