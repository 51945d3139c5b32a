// The one place where arguments become text for a remote shell: every value quoted once, none of them ever read by a shell (T15, E-02).
import { GroveError } from "#base/errors.ts";

/** One value in single quotes, whatever it holds. Throws BAD_ARGUMENT for a NUL, which no argument can carry. */
export function quoted(value: string): string {
  if (value.includes("\0")) throw new GroveError("BAD_ARGUMENT", "an argument cannot hold a NUL");
  return `'${value.replaceAll("'", `'\\''`)}'`;
}

/** A whole command for the shell that ssh starts on the other side: its folder, if it has one, and its arguments. */
export function remoteText(step: { readonly argv: readonly string[]; readonly cwd?: string }): string {
  const command = step.argv.map(quoted).join(" ");
  return step.cwd === undefined ? command : `cd -- ${quoted(step.cwd)} && ${command}`;
}
