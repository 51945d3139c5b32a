// The scrub's thread: reads everything at a bounded rate, off the event loop and out of the writer's way.
import { getPriority, setPriority } from "node:os";
import { parentPort, workerData } from "node:worker_threads";
import { errorText } from "#base/log.ts";
import { Pacer } from "./pacer.ts";
import { openReader } from "./schema.ts";
import { ScrubReader } from "./scrub-reader.ts";
import type { ScrubMessage, ScrubWorkerData } from "./scrub-types.ts";
import { isBrokenDatabase } from "./sqlite-errors.ts";

const CACHE_KIB = 1_024;
const PROGRESS_MS = 500;
/** Shorter waits are put together: timers are no finer. */
const WAIT_MIN_MS = 5;
const RETRY_MS = 1_000;
/** Of all that the machine does this can wait longest. */
const NICENESS = 10;

const data = workerData as ScrubWorkerData;
const stopping = new AbortController();
let wake: () => void = () => undefined;

parentPort?.on("message", () => {
  stopping.abort();
  wake();
});
// On Linux this is the priority of one thread; elsewhere it would be that of the whole process.
// A process that was started with a lower one may not go back to this.
if (process.platform === "linux") setPriority(0, Math.max(NICENESS, getPriority(0)));
await scrub();
parentPort?.close();

async function scrub(): Promise<void> {
  const db = openReader(data.databasePath);
  db.exec(`PRAGMA cache_size = -${CACHE_KIB}`);
  const reader = new ScrubReader(db, data.directory);
  const pacer = new Pacer(data.bytesPerSecond);
  let { pass } = data;
  let toldAtMs = performance.now();
  while (!stopping.signal.aborted) {
    try {
      for (const step of reader.steps(pass)) {
        pass = step.pass;
        if (step.found !== undefined) tell(step.found);
        const nowMs = performance.now();
        const waitMs = pacer.waitMs(step.readBytes, nowMs);
        if (nowMs + waitMs - toldAtMs >= PROGRESS_MS || step.found !== undefined) {
          toldAtMs = nowMs;
          tell({ kind: "progress", pass });
        }
        if (waitMs >= WAIT_MIN_MS) await sleep(waitMs);
        if (stopping.signal.aborted) break;
      }
      if (!stopping.signal.aborted) {
        tell({ kind: "ended", pass });
        db.close();
        return;
      }
    } catch (error) {
      if (isBrokenDatabase(error)) {
        tell({ kind: "database", problem: errorText(error) });
        break;
      }
      // Too many open files, or another process in the database's way: the same again a little later.
      await sleep(RETRY_MS);
    }
  }
  db.close();
  tell({ kind: "stopped", pass: pass });
}

function tell(message: ScrubMessage): void {
  parentPort?.postMessage(message, []);
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    wake = () => {
      clearTimeout(timer);
      resolve();
    };
  });
}
