// Counters of the whole data directory, as they are read when the writer begins.
import type { DatabaseSync } from "node:sqlite";

/** Counters of the whole data directory. Change them only after `touch`. */
export interface CounterState {
  inodeCount: number;
  chunkCount: number;
  /** Bytes in the trash of all roots. */
  trashBytes: number;
  /** Rows of the garbage table; counted at start-up, not stored. */
  garbageCount: number;
  savedFor: number;
}

/** The counters as they were committed last. */
export function readCounters(db: DatabaseSync): CounterState {
  const rows = db.prepare("SELECT name, value FROM counter").all() as { name: string; value: number }[];
  const values = new Map(rows.map((row) => [row.name, row.value]));
  const { count } = db.prepare("SELECT count(*) AS count FROM garbage").get() as { count: number };
  return {
    inodeCount: values.get("inodes") ?? 0,
    chunkCount: values.get("chunks") ?? 0,
    trashBytes: values.get("trash_bytes") ?? 0,
    garbageCount: count,
    savedFor: 0,
  };
}
