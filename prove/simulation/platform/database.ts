// Stands for node:sqlite, unchanged but for a list of each process's connections: a process that dies leaves
// the file as it was at that moment.
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { DatabaseSync as RealDatabase } from "node:sqlite";
import { type SimulatedProcess, simulation } from "#prove/simulation/scheduler.ts";

export { backup } from "node:sqlite";

/** Pages of 4 KiB that are left where the ballast for a full disk was given up. */
const UNLIMITED_PAGES = 1_073_741_823;

/** The connections of one process. */
class Connections {
  readonly open = new Map<DatabaseSync, string>();

  /** Closing the last connection would checkpoint the WAL and remove it, which no killed process does. */
  abandon(): void {
    const kept = new Map<string, Buffer>();
    for (const path of this.open.values())
      for (const file of [path, `${path}-wal`]) if (existsSync(file)) kept.set(file, readFileSync(file));
    for (const database of this.open.keys()) if (database.isOpen) database.close();
    const paths = new Set(this.open.values());
    this.open.clear();
    for (const path of paths) {
      for (const file of [path, `${path}-wal`]) {
        const bytes = kept.get(file);
        if (bytes === undefined) rmSync(file, { force: true });
        else writeFileSync(file, bytes);
      }
      rmSync(`${path}-shm`, { force: true });
    }
  }
}

const connections = new WeakMap<SimulatedProcess, Connections>();

function connectionsOf(process: SimulatedProcess): Connections {
  let own = connections.get(process);
  if (own === undefined) {
    own = new Connections();
    connections.set(process, own);
    process.belongings.add(own);
  }
  return own;
}

/** A connection; closed without a trace when its process dies. */
export class DatabaseSync extends RealDatabase {
  readonly #process: SimulatedProcess | undefined = simulation().current;

  constructor(path: string, options: ConstructorParameters<typeof RealDatabase>[1] = {}) {
    if (simulation().current?.isAlive === false) throw new Error("this process is dead");
    super(path, options);
    if (this.#process !== undefined) connectionsOf(this.#process).open.set(this, path);
  }

  override close(): void {
    if (this.#process !== undefined) connectionsOf(this.#process).open.delete(this);
    super.close();
  }
}

/** Takes the room from a process's databases, or gives it back. */
export function setDatabasesFull(process: SimulatedProcess, isFull: boolean): void {
  for (const database of connectionsOf(process).open.keys()) {
    if (!database.isOpen) continue;
    const { page_count: pages } = database.prepare("PRAGMA page_count").get() as { page_count: number };
    database.exec(`PRAGMA max_page_count = ${isFull ? pages : UNLIMITED_PAGES}`);
  }
}
