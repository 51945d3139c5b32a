// Quotes arguments for a remote shell, only here: each value once, so no shell interprets it (T15, E-02).
import { GroveError } from "#base/errors.ts";

/** Any value in single quotes. Throws BAD_ARGUMENT for a NUL, which no argument can carry. */
export function quoted(value: string): string {
  if (value.includes("\0")) throw new GroveError("BAD_ARGUMENT", "an argument cannot hold a NUL");
  return `'${value.replaceAll("'", `'\\''`)}'`;
}

/** A whole command for the remote login shell: its folder, if any, and its arguments. */
export function remoteText(step: { readonly argv: readonly string[]; readonly cwd?: string }): string {
  const command = step.argv.map(quoted).join(" ");
  return step.cwd === undefined ? command : `cd -- ${quoted(step.cwd)} && ${command}`;
}
