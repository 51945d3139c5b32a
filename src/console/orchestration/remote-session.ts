// One script on a node: sends it, reads its output and status lines, and acknowledges the last one.
import type { ChildProcessWithoutNullStreams } from "node:child_process";
import { randomBytes } from "node:crypto";
import type { Readable } from "node:stream";
import type { Clock } from "#base/clock.ts";
import { OutputMask } from "./output-mask.ts";
import { REMOTE_SHELL } from "./remote-script.ts";
import { SSH_COMPLAINT_MAX_BYTES, type SshConnection } from "./ssh-command.ts";
import { StatusLines } from "./status-lines.ts";

/** Time for a connection to close after an action's last line; processes that it left may hold it open. */
export const REMOTE_LINGER_MS = 2_000;
/** Bytes of a step's captured output. */
const REMOTE_CAPTURE_MAX_BYTES = 4_096;

/** Dependencies of a session. */
export interface RemoteSessionDeps {
  readonly connection: SshConnection;
  readonly clock: Clock;
  /** Values that the output masks. */
  readonly secrets: readonly string[];
  /** Receives output; while its promise is pending, that stream is paused. */
  readonly onOutput: (stream: "stdout" | "stderr", bytes: Buffer) => void | Promise<void>;
}

/** How a script of steps ended. */
export type SessionEnd =
  | { readonly kind: "ended"; readonly failedStep: number | undefined; readonly exitCode: number }
  /** Nothing ran: the name is taken, there is no session, or its file cannot be made. */
  | {
      readonly kind: "refused";
      readonly why: string;
      /** The machine's boot id when the name was taken. */
      readonly bootId?: string;
    }
  /** The connection ended before the script's last line. */
  | { readonly kind: "lost"; readonly complaint: string }
  /** The receiver of the output failed. */
  | { readonly kind: "unheard"; readonly error: unknown };

/** A new secret for one script. */
export function newScriptSecret(): string {
  return randomBytes(16).toString("hex");
}

/** A running script of an action. */
export class RemoteSession {
  /** Never rejects; resolves once, when all output before the end has been taken. */
  readonly ended: Promise<SessionEnd>;
  /** The machine's boot id, as the script read it at its start; undefined before that. */
  bootId: string | undefined;
  readonly captured: Record<string, string> = {};
  readonly #deps: RemoteSessionDeps;
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #end = Promise.withResolvers<SessionEnd>();
  #complaint = "";

  constructor(deps: RemoteSessionDeps, script: string, secret: string) {
    this.#deps = deps;
    this.#child = deps.connection.spawn(REMOTE_SHELL);
    this.ended = this.#end.promise;
    const streams = (["stdout", "stderr"] as const).map((name) => {
      const mask = new OutputMask(deps.secrets);
      return new StreamReader(this.#child[name], secret, mask, this.#streamEvents(name)).last;
    });
    this.#child.once("error", (error) => {
      this.#complaint += error.message;
    });
    Promise.all(streams).then(
      ([said]) => {
        this.#end.resolve(said ?? { kind: "lost", complaint: this.#complaint });
        this.#acknowledge(said?.kind === "ended");
      },
      (error: unknown) => this.#end.resolve({ kind: "unheard", error }),
    );
    this.#child.stdin.write(script);
  }

  get isBegun(): boolean {
    return this.bootId !== undefined;
  }

  /** Closes the connection; the node's programs go on unobserved. */
  cut(): void {
    this.#child.kill("SIGKILL");
  }

  /** Lets the script forget the action; processes that it left may still hold the streams open. */
  #acknowledge(isEnded: boolean): void {
    this.#child.stdin.end(isEnded ? "heard\n" : "");
    const cancel = this.#deps.clock.after(REMOTE_LINGER_MS, () => this.cut());
    this.#child.once("close", cancel);
  }

  #streamEvents(name: "stdout" | "stderr"): StreamEvents {
    return {
      onOutput: (bytes) => this.#deps.onOutput(name, bytes),
      onCaptured: (fact, bytes) => {
        const before = this.captured[fact] ?? "";
        this.captured[fact] = (before + bytes.toString("utf8")).slice(0, REMOTE_CAPTURE_MAX_BYTES);
      },
      onBegun: (bootId) => {
        this.bootId = bootId;
      },
      onEarly: (bytes) => {
        if (name === "stderr")
          this.#complaint = (this.#complaint + bytes.toString("latin1")).slice(-SSH_COMPLAINT_MAX_BYTES);
      },
    };
  }
}

interface StreamEvents {
  onOutput(bytes: Buffer): void | Promise<void>;
  onCaptured(fact: string, bytes: Buffer): void;
  onBegun(bootId: string): void;
  /** Receives bytes before the script begins: output of the login shell's files, or of ssh itself. */
  onEarly(bytes: Buffer): void;
}

/** Reads one stream up to the script's last line on it, or to its end. */
class StreamReader {
  /** Rejects with the error of `onOutput`. */
  readonly last: Promise<SessionEnd | undefined>;
  readonly #stream: Readable;
  readonly #events: StreamEvents;
  readonly #words: StatusLines;
  readonly #mask: OutputMask;
  readonly #read = Promise.withResolvers<SessionEnd | undefined>();
  #isBegun = false;
  #last: SessionEnd | undefined;
  #fact: string | undefined;
  #taken: Promise<void> | undefined;

  constructor(stream: Readable, secret: string, mask: OutputMask, events: StreamEvents) {
    this.last = this.#read.promise;
    this.#stream = stream;
    this.#events = events;
    this.#mask = mask;
    this.#words = new StatusLines(secret, {
      onBytes: (bytes) => this.#onBytes(bytes),
      onWords: (words) => this.#onWords(words),
    });
    stream.on("data", (bytes: Buffer) => this.#handle(() => this.#words.push(bytes)));
    stream.once("error", () => undefined);
    stream.once("close", () => this.#onClose());
  }

  #onBytes(bytes: Buffer): void {
    // Output of processes left behind is no part of the action.
    if (this.#last !== undefined) return;
    if (this.#isBegun) this.#give(this.#mask.push(bytes));
    else this.#events.onEarly(bytes);
  }

  #onWords([word = "", first = "", second = ""]: readonly string[]): void {
    if (this.#last !== undefined) return;
    this.#give(this.#mask.end());
    if (word === "begun") {
      this.#isBegun = true;
      this.#events.onBegun(first);
    } else if (word === "capture") this.#fact = first;
    else if (word === "captured") this.#fact = undefined;
    else if (word === "refused") {
      const isBootId = second !== "" && second !== "none" && second !== "never";
      this.#last = { kind: "refused", why: first, ...(isBootId ? { bootId: second } : {}) };
    } else if (word === "end") {
      const failedStep = first === "-" ? undefined : Number(first);
      this.#last = { kind: "ended", failedStep, exitCode: Number(second) };
    }
  }

  #give(bytes: Buffer): void {
    if (bytes.length === 0) return;
    if (this.#fact !== undefined) {
      this.#events.onCaptured(this.#fact, bytes);
      return;
    }
    const taken = this.#events.onOutput(bytes);
    if (taken === undefined) return;
    const before = this.#taken;
    this.#taken = before === undefined ? taken : Promise.all([before, taken]).then(() => undefined);
  }

  #handle(act: () => void): void {
    try {
      act();
      this.#settle();
    } catch (error) {
      this.#read.reject(error);
    }
  }

  /** Resumes the stream when its bytes are taken. */
  #settle(): void {
    const taken = this.#taken;
    if (taken === undefined) {
      if (this.#last !== undefined) this.#read.resolve(this.#last);
      return;
    }
    this.#stream.pause();
    taken.then(
      () => {
        if (this.#taken === taken) {
          this.#taken = undefined;
          this.#stream.resume();
        }
        this.#settle();
      },
      (error: unknown) => this.#read.reject(error),
    );
  }

  #onClose(): void {
    this.#handle(() => {
      this.#words.end();
      if (this.#isBegun && this.#last === undefined) this.#give(this.#mask.end());
    });
    (this.#taken ?? Promise.resolve()).then(
      () => this.#read.resolve(this.#last),
      (error: unknown) => this.#read.reject(error),
    );
  }
}

/**
 * Runs a script that answers on standard output; undefined without an answer within the time, in
 * milliseconds.
 */
export async function askNode(
  deps: { readonly connection: SshConnection; readonly clock: Clock },
  script: string,
  secret: string,
  timeoutMs: number,
): Promise<readonly (readonly string[])[] | undefined> {
  const child = deps.connection.spawn(REMOTE_SHELL);
  const answers: (readonly string[])[] = [];
  const words = new StatusLines(secret, { onBytes: () => undefined, onWords: (line) => answers.push(line) });
  const cancel = deps.clock.after(timeoutMs, () => child.kill("SIGKILL"));
  child.stdout.on("data", (bytes: Buffer) => words.push(bytes));
  child.stderr.resume();
  child.once("error", () => undefined);
  child.stdin.end(script);
  const exitCode = await new Promise<number | null>((resolve) => child.once("close", resolve));
  cancel();
  return exitCode === 0 ? answers : undefined;
}
