// Brings the write-ahead log into the database beside the writer, who goes on committing meanwhile.
import { type MessagePort, workerData } from "node:worker_threads";
import { openWriter } from "#storage/metadata/schema.ts";
import { packError } from "#storage/metadata/sqlite-errors.ts";
import type { CheckpointAnswer, CheckpointWorkerData } from "./checkpointer.ts";

const { port, databasePath } = workerData as CheckpointWorkerData;
const db = openWriter(databasePath);
// It reads the log and writes the database; what it keeps of pages in memory helps nobody.
db.exec("PRAGMA cache_size = -256");
// Passive: it waits for nobody, and nobody waits for it.
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
