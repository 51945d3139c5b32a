// Accepts the specification's single-dash flags (`-data`, `-ssh_key`) as `--data`, `--ssh-key`.
import type { Command } from "commander";

/** The flags of a command line, and which of them take the next word. */
interface KnownFlags {
  readonly flags: ReadonlySet<string>;
  readonly takesValue: ReadonlySet<string>;
}

/** All flags of a command and of its subcommands, `-h` and `--help` included. */
function knownFlags(command: Command): KnownFlags {
  const flags = new Set(["-h", "--help"]);
  const takesValue = new Set<string>();
  const visit = (current: Command): void => {
    for (const option of current.options) {
      for (const flag of [option.short, option.long]) {
        if (flag === undefined || flag === null) continue;
        flags.add(flag);
        if (option.required) takesValue.add(flag);
      }
    }
    current.commands.forEach(visit);
  };
  visit(command);
  return { flags, takesValue };
}

/**
 * Rewrites words of one dash to the two dashes and hyphens that the parser knows: `-ssh_key=K` becomes
 * `--ssh-key=K`. Left alone: single letters and their groups (`-l`, `-lr`), numbers (`-5`), the value of a
 * flag that takes one, and everything after `--`.
 */
export function withDoubleDashes(words: readonly string[], command: Command): string[] {
  const { flags, takesValue } = knownFlags(command);
  const result: string[] = [];
  let isValue = false;
  for (const [index, word] of words.entries()) {
    if (isValue) {
      result.push(word);
      isValue = false;
      continue;
    }
    if (word === "--") return [...result, ...words.slice(index)];
    const rewritten = rewriteFlag(word, flags);
    result.push(rewritten);
    isValue = takesValue.has(rewritten);
  }
  return result;
}

function rewriteFlag(word: string, flags: ReadonlySet<string>): string {
  const match = /^--?([A-Za-z][A-Za-z0-9_-]+)(=.*)?$/s.exec(word);
  if (match?.[1] === undefined) return word;
  const flag = `--${match[1].replaceAll("_", "-")}`;
  const isLetters = !word.startsWith("--") && flags.has(word.slice(0, 2)) && !flags.has(flag);
  // An unknown word gets its second dash as well: the parser then suggests the intended flag.
  return isLetters ? word : flag + (match[2] ?? "");
}
