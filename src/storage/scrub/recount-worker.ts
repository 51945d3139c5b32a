// The recount's thread: counts again and compares with the counters.
import { workerData } from "node:worker_threads";
import type { RecountFinding, RecountPass, RecountWorkerData } from "#storage/contract/recount-types.ts";
import { runPass } from "./pass-thread.ts";
import { RecountReader } from "./recount-reader.ts";

const { databasePath, rowsPerSecond, pass } = workerData as RecountWorkerData;

await runPass<RecountPass, readonly RecountFinding[]>({
  databasePath,
  pass,
  perSecond: rowsPerSecond,
  steps: (db) => (from) => new RecountReader(db, from).steps(),
});
