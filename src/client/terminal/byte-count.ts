// Numbers of bytes as options take them.
import { InvalidArgumentError } from "commander";
import { FILE_MAX_BYTES } from "#base/limits.ts";

/** Reads a whole number of bytes up to the size of the largest file. Throws commander's InvalidArgumentError. */
export function byteCount(text: string): number {
  const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
  if (value <= FILE_MAX_BYTES) return value;
  throw new InvalidArgumentError("It must be a whole number of bytes.");
}
