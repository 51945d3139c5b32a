// Parses byte counts of options.
import { InvalidArgumentError } from "commander";
import { FILE_MAX_BYTES } from "#base/limits.ts";

/** Parses whole bytes up to the largest file size. Throws commander's InvalidArgumentError. */
export function byteCount(text: string): number {
  const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
  if (value <= FILE_MAX_BYTES) return value;
  throw new InvalidArgumentError("It must be a whole number of bytes.");
}
