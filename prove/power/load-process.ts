// Runs one process that changes a store: started early, given its order, read, and killed.
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import type { LoadLine, LoadOrder } from "./load-lines.ts";

const LOAD = fileURLToPath(new URL("./power-load.fixture.ts", import.meta.url));

/** A process and its lines. */
export class LoadProcess {
  readonly #child: ChildProcessByStdio<Writable, Readable, Readable>;
  readonly #ended: Promise<unknown>;
  readonly #take: (line: LoadLine) => void;
  #waiting: { isIt: (line: LoadLine) => boolean; resolve: () => void } | undefined;
  #errors = "";

  /** @param cache where compiled sources are kept, so that the next one starts sooner */
  constructor(cache: string, take: (line: LoadLine) => void) {
    this.#take = take;
    this.#child = spawn(process.execPath, [LOAD], {
      stdio: ["pipe", "pipe", "pipe"],
      env: { ...process.env, NODE_COMPILE_CACHE: cache },
    });
    this.#child.stdin.on("error", () => undefined);
    this.#child.stderr.setEncoding("utf8").on("data", (text: string) => {
      this.#errors += text;
    });
    const lines = createInterface({ input: this.#child.stdout });
    lines.on("line", (text) => this.#hear(text));
    this.#ended = Promise.all([once(this.#child, "close"), once(lines, "close")]).then(() =>
      this.#waiting?.resolve(),
    );
  }

  /** Its standard error. */
  get errors(): string {
    return this.#errors;
  }

  order(order: LoadOrder): void {
    this.#child.stdin.write(`${JSON.stringify(order)}\n`);
  }

  /** Resolves at the first line for which this is true, or when the process ends. */
  until(isIt: (line: LoadLine) => boolean): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting = { isIt, resolve };
    });
  }

  /** Stops it; calls that the kernel has begun go on. */
  freeze(): void {
    this.#child.kill("SIGSTOP");
  }

  /** Kills it; when this resolves all its lines have been read. */
  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#ended;
  }

  #hear(text: string): void {
    let line: LoadLine;
    try {
      line = JSON.parse(text) as LoadLine;
    } catch {
      // The kill has cut the line: it does not count.
      return;
    }
    this.#take(line);
    if (this.#waiting?.isIt(line) === true) this.#waiting.resolve();
  }
}
