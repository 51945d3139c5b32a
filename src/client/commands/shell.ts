// The loop of the shell: reads lines, runs verbs, keeps the history.
import { createInterface, type Interface } from "node:readline/promises";
import type { ClientContext } from "#client/connection/client-context.ts";
import type { ClientFlags } from "#client/connection/client-flags.ts";
import { type CommandHost, report, runAction } from "#client/connection/command-host.ts";
import { formatRemotePath } from "#client/connection/remote-path.ts";
import { ClientError } from "#client/terminal/client-error.ts";
import { runCommandLine } from "#client/terminal/command-line.ts";
import { EXIT, exitCodeOf } from "#client/terminal/exit-codes.ts";
import { SHELL_HISTORY_LINES } from "#client/terminal/limits.ts";
import { isTty } from "#client/terminal/terminal.ts";
import { terminalText } from "#client/terminal/terminal-text.ts";
import { readPrivateFile, writePrivateFile } from "#os/private-file.ts";
import { completePath } from "./path-completion.ts";
import { VERBS } from "./verbs.ts";
import { quoteWord, splitLine, wordsOf } from "./word-splitter.ts";

const END_WORDS: readonly string[] = ["exit", "quit"];

/** One shell. */
export class Shell {
  readonly #context: ClientContext;
  readonly #host: CommandHost;
  readonly #isInteractive: boolean;
  /** Exit code of the verb that ran last, and of the last one that failed. */
  #code: number = EXIT.ok;
  #failedCode: number = EXIT.ok;
  /** The editor of the line that is being typed. */
  #editor: Interface | undefined;
  /** Aborts at the end of the shell; each verb has its own. */
  readonly #signal: AbortSignal;

  constructor(context: ClientContext, flags: ClientFlags) {
    const { terminal } = context;
    this.#context = context;
    this.#signal = context.signal;
    this.#isInteractive = isTty(terminal.input) && isTty(terminal.output);
    context.shared.hasPrompt = this.#isInteractive;
    this.#host = {
      run: async (verb, own, action) => {
        const run = { verb, flags: { ...flags, ...own }, terminal, shared: context.shared };
        this.#code = await runAction(run, (started) => {
          requireSameCluster(own);
          return action(started);
        });
      },
    };
  }

  /** Reads until the end of the input or `exit`, and answers the exit code. */
  async run(): Promise<number> {
    for await (const line of this.#isInteractive ? this.#typedLines() : this.#pipedLines()) {
      if (END_WORDS.includes(line.trim())) break;
      await this.#runLine(line);
      if (this.#code !== EXIT.ok) this.#failedCode = this.#code;
      if (this.#signal.aborted) return EXIT.interrupted;
    }
    this.#signal.throwIfAborted();
    return this.#isInteractive ? EXIT.ok : this.#failedCode;
  }

  async *#pipedLines(): AsyncGenerator<string, void, undefined> {
    const lines = createInterface({
      input: this.#context.terminal.input,
      terminal: false,
      signal: this.#signal,
    });
    try {
      yield* lines;
    } finally {
      lines.close();
    }
  }

  /** One editor for each line: a running verb has the terminal, with its questions and its Ctrl-C. */
  async *#typedLines(): AsyncGenerator<string, void, undefined> {
    const { input, output } = this.#context.terminal;
    let history = await this.#readHistory();
    // Lines that came in one piece with another, as pasted ones do, and what was begun after them.
    let ahead: string[] = [];
    let begun = "";
    for (;;) {
      const { current } = await this.#context.place.read();
      const prompt = `${terminalText(formatRemotePath(current))}> `;
      // An interrupted verb ends what was to follow it.
      if (this.#code === EXIT.interrupted) ahead = [];
      const next = ahead.shift();
      if (next !== undefined) {
        output.write(`\r\u001b[K${prompt}${terminalText(next)}\n`);
        yield next;
        continue;
      }
      const editor: Interface = createInterface({
        input,
        output,
        history,
        historySize: SHELL_HISTORY_LINES,
        removeHistoryDuplicates: true,
        completer: (line: string) => this.#completeIn(editor, line),
        signal: this.#signal,
      });
      editor.on("history", (kept) => {
        history = [...kept];
      });
      editor.on("line", (line) => ahead.push(line));
      this.#editor = editor;
      const line = await readLine(editor, prompt, begun);
      begun = editor.line;
      this.#editor = undefined;
      editor.close();
      if (line === "end") break;
      if (line === "dropped") continue;
      await this.#writeHistory(history);
      yield line.text;
    }
    output.write("\n");
  }

  /** Completes the line of an editor, unless it has become another one or its line has ended meanwhile. */
  async #completeIn(editor: Interface, line: string): Promise<[string[], string]> {
    const nothing: [string[], string] = [[], line];
    const found = await this.#complete(line).catch(() => nothing);
    // A closed editor throws when it goes on.
    if (this.#editor !== editor) return new Promise(() => {});
    return editor.line.slice(0, editor.cursor) === line ? found : nothing;
  }

  async #runLine(line: string): Promise<void> {
    this.#code = EXIT.ok;
    let name = "shell";
    try {
      const [verb, ...words] = wordsOf(line);
      if (verb === undefined) return;
      name = verb;
      if (verb === "help" || verb === "?") return await this.#help();
      await this.#runVerb(verb, words);
    } catch (error) {
      report(name, error, this.#context.terminal, this.#context.flags);
      this.#code = exitCodeOf(error);
    }
  }

  async #runVerb(name: string, words: readonly string[]): Promise<void> {
    const verb = Object.hasOwn(VERBS, name) ? VERBS[name] : undefined;
    if (verb === undefined) {
      throw new ClientError("USAGE", `there is no verb ${JSON.stringify(name)} in the shell`, {
        todo: "'help' lists them; some stand alone, such as 'grove login' and 'grove write'.",
      });
    }
    const { command: makeCommand } = await verb.load();
    const refused = await runCommandLine(makeCommand(this.#host), words, this.#context.terminal);
    if (refused !== EXIT.ok) this.#code = refused;
  }

  async #help(): Promise<void> {
    await this.#context.print(
      `Verbs: ${Object.keys(VERBS).join(", ")}.`,
      "'ls --help' explains one, with examples. Quotes and backslashes work; 'exit' or Ctrl-D ends.",
    );
  }

  /** Completes the verb, or a path on the cluster. */
  async #complete(line: string): Promise<[string[], string]> {
    const { words, isInsideWord } = splitLine(line);
    const typed = isInsideWord ? (words.at(-1) ?? "") : "";
    const isFirst = words.length === 0 || (words.length === 1 && isInsideWord);
    if (isFirst) {
      const names = [...Object.keys(VERBS), "help", ...END_WORDS];
      return [names.filter((name) => name.startsWith(typed)).map((name) => `${name} `), typed];
    }
    if (typed.startsWith("-") || VERBS[words[0] ?? ""]?.words === "none") return [[], typed];
    const paths = await completePath(this.#context, typed);
    const isWhole = (path: string): boolean => !path.endsWith("/");
    // Replaces the word as typed, with its quotes and backslashes.
    const written = line.slice(lastWordStart(line));
    return [paths.map((path) => quoteWord(path) + (isWhole(path) && paths.length === 1 ? " " : "")), written];
  }

  async #readHistory(): Promise<string[]> {
    const text = await readPrivateFile(this.#context.config.shellHistory).catch(() => undefined);
    return (text ?? "").split("\n").filter((line) => line !== "");
  }

  /** The history is a convenience: failures to write it are not reported. */
  async #writeHistory(history: readonly string[]): Promise<void> {
    const text = history.slice(0, SHELL_HISTORY_LINES).join("\n");
    await writePrivateFile(this.#context.config.shellHistory, `${text}\n`).catch(() => undefined);
  }
}

/** Reads one line that begins with a text: "dropped" after Ctrl-C, "end" after Ctrl-D. */
async function readLine(
  lines: Interface,
  prompt: string,
  begun: string,
): Promise<{ readonly text: string } | "dropped" | "end"> {
  const ended = Promise.withResolvers<"dropped" | "end">();
  lines.once("SIGINT", () => {
    lines.write("\n");
    ended.resolve("dropped");
    // A further one in the same piece would close it in the middle of that piece.
    lines.on("SIGINT", () => undefined);
  });
  lines.once("close", () => ended.resolve("end"));
  const asked = lines.question(prompt).then(
    (text) => ({ text }),
    // Ctrl-D rejects; the close event may come too.
    () => "end" as const,
  );
  if (begun !== "") lines.write(begun);
  return Promise.race([ended.promise, asked]);
}

/** Throws USAGE for a verb that names another cluster: all verbs go over the shell's connections. */
function requireSameCluster({ metaserver, fileserver, ca }: ClientFlags): void {
  if (metaserver === undefined && fileserver === undefined && ca === undefined) return;
  throw new ClientError("USAGE", "the verbs of a shell stay with the cluster that it began with", {
    todo: "Give the flag to 'grove shell'.",
  });
}

/** The start of the last word of a line, quotes included. */
function lastWordStart(line: string): number {
  const count = splitLine(line).words.length;
  for (let at = line.length; at > 0; at--) {
    const before = splitLine(line.slice(0, at));
    if (before.words.length < count || !before.isInsideWord) return at;
  }
  return 0;
}
