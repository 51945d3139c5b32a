// Brings the write-ahead log into the database while the writer commits.
import { type MessagePort, workerData } from "node:worker_threads";
import { openWriter } from "#storage/metadata/schema.ts";
import { packError } from "#storage/metadata/sqlite-errors.ts";
import type { CheckpointAnswer, CheckpointWorkerData } from "./checkpointer.ts";

const { port, databasePath } = workerData as CheckpointWorkerData;
const db = openWriter(databasePath);
// It reads the log and writes the database; a larger page cache would not help.
db.exec("PRAGMA cache_size = -256");
// Passive: neither waits for other connections nor blocks them.
const checkpoint = db.prepare("PRAGMA wal_checkpoint(PASSIVE)");

function run(): CheckpointAnswer {
  try {
    checkpoint.get();
    return { failure: undefined };
  } catch (error) {
    return { failure: packError(error) };
  }
}

(port satisfies MessagePort).on("message", () => port.postMessage(run(), []));
