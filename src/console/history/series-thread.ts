// The console's side of the thread for series files: one request after another, each with its answer.
import { extname } from "node:path";
import { Worker } from "node:worker_threads";
import { errorText } from "#base/log.ts";
import { requireKnownSchema } from "#os/state-file.ts";
import type { SeriesRows } from "./series-format.ts";
import { SERIES_SCHEMA } from "./series-format.ts";
import type { SeriesAnswer, SeriesLoaded, SeriesRequest } from "./series-messages.ts";

/** The thread makes short-lived text; a larger young generation would keep memory for good. */
const YOUNG_MEBIBYTES = 2;
const OLD_MEBIBYTES = 48;

type Unnumbered<T> = T extends { request: number } ? Omit<T, "request"> : never;

interface Waiting {
  readonly resolve: (answer: SeriesAnswer) => void;
  readonly reject: (error: Error) => void;
  readonly taker: RowsTaker;
}

/** Receiver of loaded rows. */
export interface RowsTaker {
  take(rows: SeriesRows): void;
  /** Drops the rows so far, because their file is damaged. */
  reset(): void;
}

const NOBODY: RowsTaker = { take() {}, reset() {} };

/** The thread; started with the first request, and again after it died. */
export class SeriesThread {
  readonly #waiting = new Map<number, Waiting>();
  #worker: Worker | undefined;
  #requests = 0;

  /** Loads a file and its journal. Throws BAD_ARGUMENT when a newer version wrote them. */
  async load(
    request: Unnumbered<Extract<SeriesRequest, { kind: "load" }>>,
    taker: RowsTaker,
  ): Promise<SeriesLoaded> {
    const answer = await this.#ask(request, [], taker);
    if (answer.kind === "newer") {
      requireKnownSchema(request.path, answer.schema, SERIES_SCHEMA);
    }
    if (answer.kind !== "loaded") throw new TypeError(`a load was answered ${answer.kind}`);
    return answer.loaded;
  }

  /** Runs one step of a write and returns the written bytes. The rows' values are moved, not copied. */
  async write(request: Unnumbered<Exclude<SeriesRequest, { kind: "load" }>>): Promise<number> {
    const moved = request.kind === "rows" ? request.series.map(({ values }) => values.buffer) : [];
    const answer = await this.#ask(request, moved, NOBODY);
    return answer.kind === "done" ? answer.writtenBytes : 0;
  }

  /** Ends the thread; requests without an answer are rejected. */
  async close(): Promise<void> {
    await this.#worker?.terminate();
    this.#died(new Error("the thread has ended"));
  }

  #ask(request: Unnumbered<SeriesRequest>, moved: ArrayBuffer[], taker: RowsTaker): Promise<SeriesAnswer> {
    this.#requests++;
    const number = this.#requests;
    const worker = this.#start();
    return new Promise((resolve, reject) => {
      this.#waiting.set(number, { resolve, reject, taker });
      // The process stays alive during a write.
      worker.ref();
      worker.postMessage({ ...request, request: number }, moved);
    });
  }

  #start(): Worker {
    if (this.#worker !== undefined) return this.#worker;
    // Lies beside this file in the sources, and beside the bundle that holds it.
    const worker = new Worker(new URL(`./series-worker${extname(import.meta.url)}`, import.meta.url), {
      name: "grove-console-history",
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MEBIBYTES, maxOldGenerationSizeMb: OLD_MEBIBYTES },
    });
    worker.on("message", (answer: SeriesAnswer) => this.#answered(answer));
    worker.on("error", (error) => this.#died(error));
    worker.on("exit", () => {
      if (this.#worker === worker) this.#died(new Error("the thread has ended"));
    });
    worker.unref();
    this.#worker = worker;
    return worker;
  }

  #answered(answer: SeriesAnswer): void {
    const waiting = this.#waiting.get(answer.request);
    if (waiting === undefined) return;
    if (answer.kind === "loaded_rows") {
      for (const rows of answer.series) waiting.taker.take(rows);
      return;
    }
    if (answer.kind === "loaded_nothing") {
      waiting.taker.reset();
      return;
    }
    this.#waiting.delete(answer.request);
    if (this.#waiting.size === 0) this.#worker?.unref();
    if (answer.kind === "failed") waiting.reject(new Error(answer.failure));
    else waiting.resolve(answer);
  }

  #died(error: unknown): void {
    this.#worker = undefined;
    const left = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const { reject } of left) reject(new Error(`the history's thread died: ${errorText(error)}`));
  }
}
