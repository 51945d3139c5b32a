// Counters of the whole data directory, as they are read when the writer begins.
import type { DatabaseSync } from "node:sqlite";

/** Counters of the whole data directory. Change them only after `touch`. */
export interface CounterState {
  inodeCount: number;
  chunkCount: number;
  /** Bytes in the trash of all roots, which together may pass the exact range of a number. */
  trashBytes: bigint;
  /** Rows of the garbage table; counted at start-up, not stored. */
  garbageCount: number;
  savedFor: number;
}

/** The counters as they were committed last. */
export function readCounters(db: DatabaseSync): CounterState {
  const counters = db.prepare("SELECT name, value FROM counter");
  counters.setReadBigInts(true);
  const rows = counters.all() as { name: string; value: bigint }[];
  const values = new Map(rows.map((row) => [row.name, row.value]));
  const { count } = db.prepare("SELECT count(*) AS count FROM garbage").get() as { count: number };
  return {
    inodeCount: Number(values.get("inodes") ?? 0n),
    chunkCount: Number(values.get("chunks") ?? 0n),
    trashBytes: values.get("trash_bytes") ?? 0n,
    garbageCount: count,
    savedFor: 0,
  };
}
