// Parses byte counts of options.
import { InvalidArgumentError } from "commander";
import { formatBytes } from "#base/bytes.ts";
import { FILE_MAX_BYTES } from "#base/limits.ts";

/** Parses whole bytes up to the largest file size. Throws commander's InvalidArgumentError. */
export function byteCount(text: string): number {
  if (!/^\d+$/.test(text)) throw new InvalidArgumentError("It must be a whole number of bytes.");
  const value = Number(text);
  if (value <= FILE_MAX_BYTES) return value;
  throw new InvalidArgumentError(
    `The largest file has ${formatBytes(FILE_MAX_BYTES)}, ${FILE_MAX_BYTES} bytes.`,
  );
}
