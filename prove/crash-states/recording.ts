// Runs the recorded process: orders, their ends, and its system calls order by order.
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync, readSync, statSync, truncateSync } from "node:fs";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { RecorderLine, RecorderOrder } from "./recorder-lines.ts";
import { STRACE_OPTIONS, type TraceEvent, TraceReader } from "./trace-events.ts";

const RECORDER = fileURLToPath(new URL("./crash-recorder.fixture.ts", import.meta.url));
const TAIL_BYTES = 1_048_576;
const TAIL_WAIT_MS = 2;
/** Bytes in strace's notation. */
const END_MARK = Buffer.from(JSON.stringify({ event: "end" } satisfies RecorderLine))
  .toString("hex")
  .replaceAll(/../g, String.raw`\x$&`);

/** A process behind strace. */
export class Recording {
  readonly #child: ChildProcessByStdio<Writable, Readable, Readable>;
  readonly #trace: string;
  readonly #reader: TraceReader;
  #answer: PromiseWithResolvers<void> = Promise.withResolvers();
  #errors = "";

  /**
   * @param trace where strace writes
   * @param root the folder whose changes are read
   * @param cache where compiled sources are kept, so that stores open sooner
   */
  constructor(trace: string, root: string, cache: string) {
    this.#trace = trace;
    this.#reader = new TraceReader(root);
    // The first order makes this file.
    const strace = [...STRACE_OPTIONS, "-qq", "-A", "-o", trace, process.execPath, RECORDER];
    this.#child = spawn("strace", strace, {
      stdio: ["pipe", "pipe", "pipe"],
      // Calls through io_uring would stay unseen.
      env: { ...process.env, UV_USE_IO_URING: "0", NODE_COMPILE_CACHE: cache },
    });
    this.#child.stdin.on("error", () => undefined);
    this.#child.stderr.setEncoding("utf8").on("data", (text: string) => {
      this.#errors = (this.#errors + text).slice(-TAIL_BYTES);
    });
    createInterface({ input: this.#child.stdout }).on("line", (text) => this.#hear(text));
    this.#child.once("close", () =>
      this.#answer.reject(new Error(`the recorded process ended: ${this.#errors}`)),
    );
  }

  /** Gives an order; resolves with all its changes to the disk. */
  async order(order: RecorderOrder): Promise<TraceEvent[]> {
    this.#answer = Promise.withResolvers();
    this.#child.stdin.write(`${JSON.stringify(order)}\n`);
    await this.#answer.promise;
    // strace writes a call down after the process has gone on.
    while (!this.#isWritten()) await sleep(TAIL_WAIT_MS);
    const events = this.#reader.read(readFileSync(this.#trace));
    truncateSync(this.#trace, 0);
    return events;
  }

  async end(): Promise<void> {
    this.#answer.promise.catch(() => undefined);
    this.#child.stdin.end();
    if (this.#child.exitCode === null && this.#child.signalCode === null) await once(this.#child, "close");
  }

  #hear(text: string): void {
    const line = JSON.parse(text) as RecorderLine;
    if (line.event === "end") this.#answer.resolve();
    else if (line.event === "failed") this.#answer.reject(new Error(line.text));
  }

  #isWritten(): boolean {
    const { size } = statSync(this.#trace);
    const tail = Buffer.alloc(Math.min(size, TAIL_BYTES));
    const descriptor = openSync(this.#trace, "r");
    try {
      readSync(descriptor, tail, 0, tail.length, size - tail.length);
    } finally {
      closeSync(descriptor);
    }
    const at = tail.lastIndexOf(END_MARK);
    return at >= 0 && tail.indexOf("\n", at) >= 0;
  }
}
