// Prompts on a terminal: plain questions, and secrets without echo.
import { createInterface } from "node:readline/promises";
import { readHiddenLine } from "#os/hidden-input.ts";
import { ClientError } from "./client-error.ts";
import { PASTE_MAX_LENGTH } from "./limits.ts";
import { isTty, readAll, type Terminal } from "./terminal.ts";
import { terminalText } from "./terminal-text.ts";

/**
 * Asks on standard error and reads one line, an empty one after Ctrl-D. Rejects with the signal's reason when it is
 * aborted, and with CANCELLED after Ctrl-C.
 */
export async function ask(terminal: Terminal, question: string, signal: AbortSignal): Promise<string> {
  const lines = createInterface({ input: terminal.input, output: terminal.error, signal });
  let isInterrupted = false;
  const line = await new Promise<string | undefined>((resolve) => {
    lines.once("line", resolve);
    lines.once("close", () => resolve(undefined));
    // An editor reads keys: Ctrl-C is no signal there.
    lines.once("SIGINT", () => {
      isInterrupted = true;
      lines.close();
    });
    lines.setPrompt(terminalText(question));
    lines.prompt();
  });
  lines.close();
  if (line !== undefined) return line;
  terminal.error.write("\n");
  signal.throwIfAborted();
  if (isInterrupted) throw new ClientError("CANCELLED", "interrupted");
  return "";
}

/** Asks on standard error and reads one line, from a pipe too; an empty one where the input has ended. */
export async function askTyped(terminal: Terminal, question: string): Promise<string> {
  const lines = createInterface({ input: terminal.input, output: terminal.error });
  try {
    return await new Promise<string>((resolve) => {
      // A question's promise would lose to the end of the input where both come at once.
      lines.once("line", (line) => resolve(line.trim()));
      lines.once("close", () => resolve(""));
      lines.setPrompt(terminalText(question));
      lines.prompt();
    });
  } finally {
    lines.close();
  }
}

/** The parts of a context that a prompt needs. */
interface Asker {
  readonly terminal: Terminal;
  readonly signal: AbortSignal;
  note(text: string): void;
}

/** Asks before a destructive action; any answer but yes is no. Throws USAGE with `why` without a terminal. */
export async function askToGoOn(
  asker: Asker,
  question: string,
  why = "this cannot be undone, and there is no terminal to ask on",
): Promise<boolean> {
  if (!isTty(asker.terminal.input)) {
    throw new ClientError("USAGE", why, {
      todo: "Add --yes to do it without a question.",
    });
  }
  if (/^y(?:es)?$/i.test((await ask(asker.terminal, question, asker.signal)).trim())) return true;
  asker.note("Nothing was deleted.");
  return false;
}

/**
 * Reads one line without echo: tokens never appear on the screen, in the shell's history or among the
 * arguments. Tokens may exceed the 4,096 characters of a terminal's line editing. Without a terminal, reads
 * the first line of standard input.
 */
export async function askSecret(terminal: Terminal, question: string, signal: AbortSignal): Promise<string> {
  if (!isTty(terminal.input)) return readFirstLine(terminal.input, signal);
  terminal.error.write(question);
  try {
    const line = await readHiddenLine(terminal.input, PASTE_MAX_LENGTH, signal);
    if (line === undefined) throw new ClientError("CANCELLED", "interrupted");
    return line;
  } finally {
    terminal.error.write("\n");
  }
}

/** The first line of a stream that is no terminal, trimmed. */
export async function readFirstLine(input: NodeJS.ReadStream, signal: AbortSignal): Promise<string> {
  let text = "";
  for await (const piece of readAll(input, signal)) {
    text += piece.toString();
    if (text.includes("\n") || text.length > PASTE_MAX_LENGTH) break;
  }
  return (text.split("\n", 1)[0] ?? "").slice(0, PASTE_MAX_LENGTH).trim();
}
