// Quotes arguments for a remote shell, only here: each value once, so no shell interprets it (T15, E-02).
import { GroveError } from "#base/errors.ts";

/** Any value in single quotes. Throws BAD_ARGUMENT for a NUL, which no argument can carry. */
export function quoted(value: string): string {
  if (value.includes("\0")) throw new GroveError("BAD_ARGUMENT", "an argument cannot hold a NUL");
  return `'${value.replaceAll("'", `'\\''`)}'`;
}
