// Finds the named command, imports it, parses its flags and runs it; prints failures as one line.
import type { Command } from "commander";
import type { CommandEntry, CommandGroup } from "./command-table.ts";

/** Exit code for a wrong command line and every failure without a code of its own (decision D24). */
const EXIT_USAGE = 1;

/** Runs one command line, without the program's name, and answers its exit code (decision D24). */
export async function run(words: readonly string[], groups: readonly CommandGroup[]): Promise<number> {
  const commands = groups.flatMap((group) => group.commands);
  const [first, ...rest] = words;
  switch (first) {
    case undefined:
    case "-h":
    case "-help":
    case "--help":
      return printHelp(groups);
    case "-V":
    case "-version":
    case "--version":
    case "version": {
      const { VERSION } = await import("#base/version.ts");
      const { HAS_IDP_AUTH } = await import("#base/build-flags.ts");
      const without = HAS_IDP_AUTH ? "" : ", built without sign-in by an identity provider";
      process.stdout.write(`grove ${VERSION} (Node ${process.versions.node}${without})\n`);
      return 0;
    }
    case "help":
      return rest[0] === undefined
        ? printHelp(groups)
        : runNamed(rest[0], [...rest.slice(1), "--help"], commands);
    default:
      return runNamed(first, rest, commands);
  }
}

async function printHelp(groups: readonly CommandGroup[]): Promise<number> {
  const { helpText } = await import("./help.ts");
  process.stdout.write(`${helpText(groups)}\n`);
  return 0;
}

async function runNamed(
  name: string,
  words: readonly string[],
  commands: readonly CommandEntry[],
): Promise<number> {
  const entry = commands.find((candidate) => candidate.name === name);
  if (entry === undefined) {
    const { closestWord } = await import("./help.ts");
    const names = commands.map((candidate) => candidate.name);
    const meant = closestWord(name, names);
    const hint = meant === undefined ? "'grove --help' lists them all" : `did you mean 'grove ${meant}'?`;
    process.stderr.write(`grove: there is no command ${JSON.stringify(name)}; ${hint}\n`);
    return EXIT_USAGE;
  }
  endQuietlyWithoutReader(entry);
  // After an uncaught exception the program's state is unknown: report it and end at once.
  process.on("uncaughtException", (error) => {
    reportFailure(entry, error);
    process.exit(EXIT_USAGE);
  });
  try {
    return await runEntry(entry, words);
  } catch (error) {
    if (entry.server !== true && wantsJson(words)) {
      const { errorJson } = await import("#client/connection/error-text.ts");
      process.stderr.write(`${JSON.stringify(errorJson(error))}\n`);
    } else reportFailure(entry, error);
    const { exitCodeOf } = await import("#client/terminal/exit-codes.ts");
    return exitCodeOf(error);
  }
}

async function runEntry(entry: CommandEntry, words: readonly string[]): Promise<number> {
  const [{ Command, CommanderError }, { withDoubleDashes }, { command: makeCommand }] = await Promise.all([
    import("commander"),
    import("./flags.ts"),
    entry.load(),
  ]);
  if (entry.server === true || entry.content === true) {
    const { keepBuffersYoung } = await import("#base/heap-settings.ts");
    keepBuffersYoung();
  }
  if (entry.server === true) {
    const { readClockOften } = await import("#base/clock.ts");
    readClockOften();
  }
  const program = new Command("grove")
    .exitOverride()
    .showSuggestionAfterError(true)
    .configureOutput({
      outputError: (text, write) => write(refusedLine(entry.name, text, wantsJson(words))),
    });
  const command = makeCommand();
  program.addCommand(command);
  inheritSettings(command, program);
  try {
    await program.parseAsync([entry.name, ...withDoubleDashes(words, command)], { from: "user" });
    return 0;
  } catch (error) {
    // The parser has printed the error or the requested help.
    if (error instanceof CommanderError) return error.exitCode;
    throw error;
  }
}

/** True where a program reads the errors. */
function wantsJson(words: readonly string[]): boolean {
  const end = words.indexOf("--");
  return (end < 0 ? words : words.slice(0, end)).some((word) => word === "--json" || word === "-json");
}

/** The parser's error about a command line, as one line of ours with a pointer to the help. */
function refusedLine(name: string, text: string, isJson: boolean): string {
  const [first = "", suggestion] = text.trim().split("\n");
  // The message of our own check follows the parser's sentence.
  const what = first
    .replace(/^error: /, "")
    .replace(/^command-argument value ('.*?') is invalid for argument '(.*?)'/, "$1 cannot be the <$2>")
    .replace(/ is invalid\. /, " is invalid: ")
    .replace(/\.$/, "");
  const meant = suggestion === undefined ? "" : ` ${suggestion}`;
  const hint = `'grove ${name} --help' explains it.`;
  if (!isJson) return `grove ${name}: ${what}${meant}. ${hint}\n`;
  const error = { code: "USAGE", reason: null, message: `${what}${meant}.`, hint, metadata: {} };
  return `${JSON.stringify({ error })}\n`;
}

/** Makes a command and its subcommands end by an exception, not by process.exit. */
function inheritSettings(command: Command, parent: Command): void {
  command.copyInheritedSettings(parent);
  for (const child of command.commands) inheritSettings(child, command);
}

/**
 * A reader that closes (`grove ls | head`) ends a command silently; a server continues without its terminal.
 */
function endQuietlyWithoutReader(entry: CommandEntry): void {
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
    if (entry.server !== true) process.exit(0);
  });
}

/** Prints one line; the stack too for unexpected errors in a server's log and where GROVE_DEBUG is set. */
function reportFailure(entry: CommandEntry, error: unknown): void {
  const message = error instanceof Error ? error.message : String(error);
  const isRefusal = error instanceof Error && (error.name === "GroveError" || isAboutFile(error));
  const isDetailed = Boolean(process.env["GROVE_DEBUG"]) || (entry.server === true && !isRefusal);
  const stack = isDetailed && error instanceof Error ? error.stack : undefined;
  process.stderr.write(`grove ${entry.name}: ${stack ?? message.split("\n", 1)[0]}\n`);
}

/** True for the system's error about a path: the path is wrong, not the program. */
function isAboutFile(error: NodeJS.ErrnoException): boolean {
  return typeof error.syscall === "string" && typeof error.path === "string";
}
