// Parses a command line and runs its action; the parser's refusals are one line with a pointer to the help.
import { Command, CommanderError } from "commander";
import { withDoubleDashes } from "./flags.ts";
import type { Terminal } from "./terminal.ts";

/**
 * Runs the action of the words, which follow the command's name, and answers the exit code: the parser's when it
 * has printed an error or the requested help. Rejects with the action's error.
 */
export async function runCommandLine(
  command: Command,
  words: readonly string[],
  { output, error }: Pick<Terminal, "output" | "error">,
): Promise<number> {
  const name = command.name();
  const program = new Command("grove")
    .exitOverride()
    .showSuggestionAfterError(true)
    .configureOutput({
      writeOut: (text) => void output.write(text),
      writeErr: (text) => void error.write(text),
      outputError: (text, write) => write(refusedLine(pathOf(command, words), text, wantsJson(words))),
    });
  program.addCommand(command);
  inheritSettings(command, program);
  try {
    await program.parseAsync([name, ...withDoubleDashes(words, command)], { from: "user" });
    return 0;
  } catch (failure) {
    if (failure instanceof CommanderError) return failure.exitCode;
    throw failure;
  }
}

/** True where a program reads the errors. */
export function wantsJson(words: readonly string[]): boolean {
  const end = words.indexOf("--");
  return (end < 0 ? words : words.slice(0, end)).some((word) => word === "--json" || word === "-json");
}

/** The names of the command and of its subcommands that the words begin with. */
function pathOf(command: Command, words: readonly string[]): readonly [string, ...string[]] {
  const [word, ...rest] = words;
  const next = command.commands.find((child) => child.name() === word);
  return next === undefined ? [command.name()] : [command.name(), ...pathOf(next, rest)];
}

/** The parser's error about a command line, as one line of ours with a pointer to the help. */
function refusedLine(path: readonly [string, ...string[]], text: string, isJson: boolean): string {
  const [first = "", suggestion] = text.trim().split("\n");
  // The message of our own check follows the parser's sentence.
  const what = first
    .replace(/^error: /, "")
    .replace(/^command-argument value ('.*?') is invalid for argument '(.*?)'/, "$1 cannot be the <$2>")
    .replace(/ is invalid\. /, " is invalid: ")
    .replace(/\.$/, "");
  const meant = suggestion === undefined ? "" : ` ${suggestion}`;
  const hint = `'grove ${path.join(" ")} --help' explains it.`;
  if (!isJson) return `grove ${path[0]}: ${what}${meant}. ${hint}\n`;
  const error = { code: "USAGE", reason: null, message: `${what}${meant}.`, hint, metadata: {} };
  return `${JSON.stringify({ error })}\n`;
}

/** Makes a command and its subcommands end by an exception, not by process.exit. */
function inheritSettings(command: Command, parent: Command): void {
  command.copyInheritedSettings(parent);
  for (const child of command.commands) inheritSettings(child, command);
}
