// The thread that reads and writes series files: megabytes of JSON, off the event loop (T18).
import { getPriority, setPriority } from "node:os";
import { parentPort } from "node:worker_threads";
import { errorText } from "#base/log.ts";
import { SERIES_BATCH, SERIES_BATCH_BYTES, type SeriesRows } from "./series-format.ts";
import type { SeriesAnswer, SeriesRequest } from "./series-messages.ts";
import { loadSeries, NewerSchema } from "./series-reader.ts";
import { appendJournal, type SeriesWrite, writeWhole } from "./series-writer.ts";

/** Polls and answers of the console have priority. */
const NICENESS = 10;

const writes = new Map<number, SeriesWrite>();

// On Linux this sets one thread's priority, elsewhere that of the whole process. A process that started with
// a lower priority cannot raise it.
if (process.platform === "linux") setPriority(0, Math.max(NICENESS, getPriority(0)));
parentPort?.on("message", (request: SeriesRequest) => {
  void answer(request);
});

async function answer(request: SeriesRequest): Promise<void> {
  try {
    if (request.kind === "load") return await load(request);
    const writtenBytes = await write(request);
    tell({ kind: "done", request: request.request, writtenBytes });
  } catch (error) {
    if (request.kind !== "load") writes.delete(request.write);
    tell(
      error instanceof NewerSchema
        ? { kind: "newer", request: request.request, schema: error.schema }
        : { kind: "failed", request: request.request, failure: errorText(error) },
    );
  }
}

async function write(request: Exclude<SeriesRequest, { kind: "load" }>): Promise<number> {
  if (request.kind === "begin") {
    const { path, form, head, mode } = request;
    writes.set(
      request.write,
      mode === "whole" ? writeWhole(path, form, head) : await appendJournal(path, form, head),
    );
    return 0;
  }
  const open = writes.get(request.write);
  if (open === undefined) throw new Error("there is no such write");
  if (request.kind === "rows") {
    await open.add(request.series);
    return 0;
  }
  writes.delete(request.write);
  return await open.end();
}

async function load(request: Extract<SeriesRequest, { kind: "load" }>): Promise<void> {
  let batch: SeriesRows[] = [];
  let bytes = 0;
  const send = (): void => {
    tell(
      { kind: "loaded_rows", request: request.request, series: batch },
      batch.map(({ values }) => values.buffer),
    );
    batch = [];
    bytes = 0;
  };
  const loaded = await loadSeries(request.path, request.form, request.nowMs, {
    take(rows) {
      batch.push(rows);
      bytes += rows.values.byteLength;
      if (batch.length >= SERIES_BATCH || bytes >= SERIES_BATCH_BYTES) send();
    },
    reset() {
      batch = [];
      bytes = 0;
      tell({ kind: "loaded_nothing", request: request.request });
    },
  });
  send();
  tell({ kind: "loaded", request: request.request, loaded });
}

function tell(message: SeriesAnswer, transfer: ArrayBuffer[] = []): void {
  parentPort?.postMessage(message, transfer);
}
