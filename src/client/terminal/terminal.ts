// The streams of a command, with backpressure from slow readers.
import { once } from "node:events";
import { standardInput } from "#os/standard-input.ts";
import { terminalJson, terminalText } from "./terminal-text.ts";

/** Standard input, output and error of a command, with the environment and terminal state. */
export interface Terminal {
  readonly input: NodeJS.ReadStream;
  readonly output: NodeJS.WriteStream;
  readonly error: NodeJS.WriteStream;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** The process's own. */
export function processTerminal(): Terminal {
  return { input: standardInput(), output: process.stdout, error: process.stderr, env: process.env };
}

/** True when the stream is a terminal. */
export function isTty(stream: NodeJS.ReadStream | NodeJS.WriteStream): boolean {
  return stream.isTTY;
}

/** Writes, and waits for a slow reader, so that a large listing in a pipe is never buffered. Rejects on an abort. */
export async function writeAll(
  stream: NodeJS.WriteStream,
  data: string | Uint8Array,
  signal?: AbortSignal,
): Promise<void> {
  if (stream.write(data) || !stream.writable) return;
  await once(stream, "drain", signal === undefined ? {} : { signal });
}

/** Input to its end. An abort ends it with the signal's reason, also while nothing comes. */
export async function* readAll(
  input: NodeJS.ReadStream,
  signal: AbortSignal,
): AsyncGenerator<Buffer | string, void, undefined> {
  signal.throwIfAborted();
  const onAbort = (): void => void input.destroy(signal.reason as Error);
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    yield* input as AsyncIterable<Buffer | string>;
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

/** Lines for people on standard output. */
export function say(terminal: Terminal, ...lines: readonly string[]): void {
  terminal.output.write(lines.map((line) => `${terminalText(line)}\n`).join(""));
}

/** A document for a program on standard output. */
export function sayJson(terminal: Terminal, document: unknown): void {
  terminal.output.write(`${terminalJson(JSON.stringify(document, null, 2))}\n`);
}

/** One line for people on standard error. */
export function note(terminal: Terminal, text: string): void {
  terminal.error.write(`${terminalText(text)}\n`);
}
