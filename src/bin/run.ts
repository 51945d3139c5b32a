// Finds the named command, imports it, parses its flags and runs it; prints failures as one line.
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
    const { wantsJson } = await import("#client/terminal/command-line.ts");
    if (entry.server !== true && wantsJson(words)) {
      const { errorJson } = await import("#client/connection/error-text.ts");
      process.stderr.write(`${JSON.stringify(errorJson(error))}\n`);
    } else reportFailure(entry, error);
    const { exitCodeOf } = await import("#client/terminal/exit-codes.ts");
    return exitCodeOf(error);
  }
}

async function runEntry(entry: CommandEntry, words: readonly string[]): Promise<number> {
  const [{ runCommandLine }, { command }] = await Promise.all([
    import("#client/terminal/command-line.ts"),
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
  return runCommandLine(command(), words, { output: process.stdout, error: process.stderr });
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
  const message = messageOf(error);
  const isRefusal = error instanceof Error && (error.name === "GroveError" || isAboutFile(error));
  const isDetailed = Boolean(process.env["GROVE_DEBUG"]) || (entry.server === true && !isRefusal);
  const stack = isDetailed && error instanceof Error ? error.stack : undefined;
  process.stderr.write(`grove ${entry.name}: ${stack ?? message.split("\n", 1)[0]}\n`);
}

function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { code, path, dest = path }: NodeJS.ErrnoException & { readonly dest?: string } = error;
  return (code === "ENOSPC" || code === "EDQUOT") && dest !== undefined
    ? `${dest}: no space is left on that disk. Free some space and try again.`
    : error.message;
}

/** True for the system's error about a path: the path is wrong, not the program. */
function isAboutFile(error: NodeJS.ErrnoException): boolean {
  return typeof error.syscall === "string" && typeof error.path === "string";
}
