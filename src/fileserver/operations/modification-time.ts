// Parses modification times that clients send.
import { GroveError } from "#base/errors.ts";
import { LAST_MOMENT_MS } from "#base/limits.ts";

const TIME_MAX_MS = BigInt(LAST_MOMENT_MS);

/** A time in wall milliseconds as a number; 0 means now, and stays. Throws BAD_ARGUMENT for invalid dates. */
export function modificationTime(mtimeMs: bigint): number {
  if (mtimeMs < -TIME_MAX_MS || mtimeMs > TIME_MAX_MS) {
    throw new GroveError("BAD_ARGUMENT", "mtime_ms is not a time");
  }
  return Number(mtimeMs);
}
