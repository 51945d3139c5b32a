// Samples a server every second: memory, handles, files and the log of its database.
import { existsSync, readdirSync, readlinkSync, statSync } from "node:fs";
import { join } from "node:path";
import { footprintOf } from "#prove/grove-process.ts";

const MINUTE_MS = 60_000;
const MEGABYTE = 1_048_576;

/** A process and its data. */
export interface Watched {
  readonly name: string;
  readonly pid: number;
  readonly database: string;
}

/** Samples of one process. */
export class ProcessWatch {
  readonly #of: Watched;
  readonly #samples: { readonly atMs: number; readonly memoryMb: number }[] = [];
  walMaxMb = 0;

  constructor(of: Watched) {
    this.#of = of;
  }

  look(atMs: number): void {
    this.#samples.push({ atMs, memoryMb: footprintOf(this.#of.pid).memoryMb });
    const wal = statSync(`${this.#of.database}-wal`, { throwIfNoEntry: false });
    this.walMaxMb = Math.max(this.walMaxMb, (wal?.size ?? 0) / MEGABYTE);
  }

  get memoryMaxMb(): number {
    return Math.max(...this.#samples.map(({ memoryMb }) => memoryMb));
  }

  /**
   * MB a minute over the last half: the median of the slopes between all pairs, which no single collection
   * moves.
   */
  get slopeMbPerMinute(): number {
    const half = this.#samples.slice(Math.floor(this.#samples.length / 2));
    const slopes: number[] = [];
    for (const [at, first] of half.entries())
      for (const later of half.slice(at + 1))
        slopes.push(((later.memoryMb - first.memoryMb) / (later.atMs - first.atMs)) * MINUTE_MS);
    slopes.sort((a, b) => a - b);
    return slopes[Math.floor(slopes.length / 2)] ?? 0;
  }
}

/**
 * Returns a process's open handles: files by their path, the rest by kind. Event descriptors and the like
 * have no fixed number of their own.
 */
export function openHandles(pid: number): string[] {
  const leads: string[] = [];
  for (const handle of footprintOf(pid).handles) {
    try {
      leads.push(readlinkSync(`/proc/${pid}/fd/${handle}`).replace(/:\[\d+\]$/, ""));
    } catch {
      // Closed between the two looks.
    }
  }
  return leads.sort();
}

/** Writer, readers, checkpoints, scrub: threads open the database when they first need it, and keep it. */
const DATABASE_CONNECTIONS = 5;

/**
 * The event loop of the checkpoint thread, which starts when the log is long for the first time, and one of
 * any other waiting thread.
 */
const LATE_THREADS = 2;
const OF_A_THREAD = [
  "anon_inode:[eventfd]",
  "anon_inode:[eventpoll]",
  "anon_inode:[io_uring]",
  "pipe",
  "pipe",
];

/** Returns what the second list has more often than the first; each of its threads may open a database. */
export function leftOver(before: readonly string[], after: readonly string[], database: string): string[] {
  const counts = new Map<string, number>();
  for (const one of before) counts.set(one, (counts.get(one) ?? 0) + 1);
  for (const file of [database, `${database}-wal`, `${database}-shm`])
    counts.set(file, Math.max(counts.get(file) ?? 0, DATABASE_CONNECTIONS));
  for (const one of OF_A_THREAD) counts.set(one, (counts.get(one) ?? 0) + LATE_THREADS);
  return after.filter((one) => {
    const left = counts.get(one) ?? 0;
    counts.set(one, left - 1);
    return left <= 0;
  });
}

/** Files of a data folder that are content or half-written: chunks, and all with a temporary name. */
export function transientFiles(data: string): string[] {
  if (!existsSync(data)) return [];
  const entries = readdirSync(data, { recursive: true, withFileTypes: true });
  const files = entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(data.length + 1));
  return files.filter((path) => path.startsWith("chunks/") || /\.tmp$|\/\.|~$/.test(path));
}
