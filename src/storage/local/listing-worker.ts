// The thread that sorts listings of larger directories: a few at once, round-robin by slices.
import { getPriority, setPriority } from "node:os";
import { parentPort, workerData } from "node:worker_threads";
import { errorText } from "#base/log.ts";
import { openReader } from "#storage/metadata/schema.ts";
import { isBrokenDatabase, notBegun } from "#storage/metadata/sqlite-errors.ts";
import { packRefusal } from "#storage/writer/write-commands.ts";
import type { ListingAnswer, ListingRequest, ListingWorkerData, SortedQuery } from "./listing-messages.ts";
import { ListingSort, type SortedRows } from "./listing-sort.ts";

/** A listing reads a directory once, and mostly from the system's cache. */
const CACHE_KIB = 2_048;
/** Lower priority than requests for single inodes. */
const NICENESS = 5;

interface Running {
  readonly number: number;
  readonly sort: ListingSort;
  readonly steps: Generator<undefined, SortedRows>;
}

const { databasePath } = workerData as ListingWorkerData;
const running = new Map<number, Running>();
/** Idle connections; never more than listings at once. */
const idle: ListingSort[] = [];
let isTurning = false;

// Elsewhere than on Linux this would be the priority of the whole process.
if (process.platform === "linux") setPriority(0, Math.max(NICENESS, getPriority(0)));
parentPort?.on("message", (request: ListingRequest) => {
  if (request === "stop") stop();
  else if ("drop" in request) drop(request.drop);
  else begin(request.number, request.query);
});

function begin(number: number, query: SortedQuery): void {
  try {
    const sort = idle.pop() ?? open();
    running.set(number, { number, sort, steps: sort.rows(query) });
  } catch (error) {
    answer(failed(number, error));
  }
  if (isTurning) return;
  isTurning = true;
  setImmediate(turn);
}

function open(): ListingSort {
  const db = openReader(databasePath);
  db.exec(`PRAGMA cache_size = -${CACHE_KIB}`);
  return new ListingSort(db);
}

/** One slice of each, then the messages that have arrived meanwhile. */
function turn(): void {
  for (const job of running.values()) {
    try {
      const step = job.steps.next();
      if (step.done === true) end(job, answerOf(job.number, step.value));
    } catch (error) {
      end(job, failed(job.number, error));
    }
  }
  isTurning = running.size > 0;
  if (isTurning) setImmediate(turn);
}

function end(job: Running, what: ListingAnswer): void {
  running.delete(job.number);
  idle.push(job.sort);
  answer(what);
}

function drop(number: number): void {
  const job = running.get(number);
  if (job === undefined) return;
  job.steps.return("stale");
  end(job, { number, refused: "stale" });
}

function stop(): void {
  for (const { steps, sort } of running.values()) {
    steps.return("stale");
    sort.close();
  }
  running.clear();
  for (const sort of idle) sort.close();
  parentPort?.close();
}

function answerOf(number: number, rows: SortedRows): ListingAnswer {
  return rows === "stale" ? { number, refused: "stale" } : { number, page: rows };
}

function failed(number: number, error: unknown): ListingAnswer {
  const refused = packRefusal(notBegun(error) ?? error);
  if (refused !== undefined) return { number, ...refused };
  return { number, problem: errorText(error), isBroken: isBrokenDatabase(error) };
}

function answer(what: ListingAnswer): void {
  parentPort?.postMessage(what, []);
}
