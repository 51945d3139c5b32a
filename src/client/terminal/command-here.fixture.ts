// Runs a command inside the process of a test, with streams of its own, where a start of the program is not the matter.
import { PassThrough, Readable } from "node:stream";
import type { Command } from "commander";
import type { Outcome } from "#testing/run-grove.ts";
import { runCommandLine } from "./command-line.ts";
import { exitCodeOf } from "./exit-codes.ts";
import type { Terminal } from "./terminal.ts";

/** What a command of a test is given. */
export interface GivenStreams {
  readonly stdin?: string | Readable | Buffer;
  /** Default this process's environment. */
  readonly env?: Terminal["env"];
  /** True makes standard output and error look like a terminal. */
  readonly isTty?: boolean;
  /** True makes standard input look like one, so that the command asks questions. */
  readonly isAsked?: boolean;
}

/** A terminal whose output is kept. */
export interface CaughtTerminal {
  readonly terminal: Terminal;
  readonly out: () => string;
  readonly err: () => string;
}

/** Makes a terminal for one command. */
export function caughtTerminal(given: GivenStreams = {}): CaughtTerminal {
  const [out, err] = [caught(given.isTty === true), caught(given.isTty === true)];
  const input = Object.assign(new PassThrough(), { isTTY: given.isAsked === true });
  if (given.stdin instanceof Readable) given.stdin.pipe(input);
  else input.end(given.stdin ?? "");
  const streams = { input, output: out.stream, error: err.stream, env: given.env ?? process.env };
  return { terminal: streams as unknown as Terminal, out: out.text, err: err.text };
}

/** Runs a command to its end as the program does: words, outputs and exit code are those of `grove NAME WORDS`. */
export async function commandHere(
  make: (terminal: Terminal) => Command,
  words: readonly string[],
  given: GivenStreams = {},
): Promise<Outcome> {
  const { terminal, out, err } = caughtTerminal(given);
  const command = make(terminal);
  const ended = await runCommandLine(command, words, terminal).catch((error: unknown) => {
    const [line] = (error instanceof Error ? error.message : String(error)).split("\n", 1);
    terminal.error.write(`grove ${command.name()}: ${line}\n`);
    return exitCodeOf(error);
  });
  return { code: ended, out: out(), err: err() };
}

function caught(isTty: boolean): { readonly stream: PassThrough; readonly text: () => string } {
  const stream = Object.assign(new PassThrough(), { isTTY: isTty, columns: 100 });
  const pieces: Buffer[] = [];
  stream.on("data", (piece: Buffer) => pieces.push(piece));
  return { stream, text: () => Buffer.concat(pieces).toString("utf8") };
}
