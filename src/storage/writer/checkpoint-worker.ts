// Brings the write-ahead log into the database while the writer commits.
import type { StatementSync } from "node:sqlite";
import { type MessagePort, workerData } from "node:worker_threads";
import { openWriter } from "#storage/metadata/schema.ts";
import { notBegun, packError } from "#storage/metadata/sqlite-errors.ts";
import type { CheckpointAnswer, CheckpointMessage, CheckpointWorkerData } from "./checkpointer.ts";

const { port, databasePath } = workerData as CheckpointWorkerData;
let checkpoint: StatementSync | undefined;

function prepared(): StatementSync {
  const db = openWriter(databasePath);
  // It reads the log and writes the database; a larger page cache would not help.
  db.exec("PRAGMA cache_size = -256");
  // Passive: neither waits for other connections nor blocks them.
  return db.prepare("PRAGMA wal_checkpoint(PASSIVE)");
}

function run(): CheckpointAnswer {
  try {
    checkpoint ??= prepared();
    checkpoint.get();
    return { failure: undefined };
  } catch (error) {
    return { failure: notBegun(error) === undefined ? packError(error) : undefined };
  }
}

function tell(message: CheckpointMessage): void {
  (port satisfies MessagePort).postMessage(message, []);
}

port.on("message", () => tell(run()));
tell("begun");
