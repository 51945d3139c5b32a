// The resources of every row: programs to start and folders to fill, all removed afterwards.
import { existsSync, statfsSync } from "node:fs";
import { mkdtemp, open, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Json, type Program, type Service, startProgram, startService } from "./child.ts";

/** The place of a folder: in memory to exclude the disk from a measurement, or on the disk to include it. */
export type Medium = "memory" | "disk";

/** The options of a run. */
export interface LabOptions {
  /** Inodes of the large tree in the scale group. */
  readonly inodes: number;
}

/** The magic number of a tmpfs in statfs (linux/magic.h). */
const TMPFS_MAGIC = 0x01021994;
/** Bytes of each write while memory is warmed. */
const WARM_PIECE_BYTES = 4 * 1_048_576;

/** The resources of one group; closed in reverse order when the group ends. */
export class Lab {
  readonly options: LabOptions;
  readonly #closers: (() => Promise<void>)[] = [];
  readonly #once = new Map<string, Promise<unknown>>();

  constructor(options: LabOptions) {
    this.options = options;
  }

  /** Makes something once for all rows of the group that ask for it by this name. */
  once<T>(name: string, make: () => Promise<T>): Promise<T> {
    const made = this.#once.get(name) ?? make();
    this.#once.set(name, made);
    return made as Promise<T>;
  }

  /** Runs when the group ends, last added first. */
  atEnd(close: () => Promise<void>): void {
    this.#closers.push(close);
  }

  /** Starts a program of bench/programs. */
  program(name: string, env: Readonly<Record<string, string>> = {}): Program {
    const program = startProgram(name, env);
    this.atEnd(() => program.close());
    return program;
  }

  /** Starts a command that stays; see startService. */
  async service(...args: Parameters<typeof startService>): Promise<Service> {
    const service = await startService(...args);
    this.atEnd(() => service.close());
    return service;
  }

  /** An empty folder that is removed when the group ends. */
  async folder(medium: Medium): Promise<string> {
    const folder = await mkdtemp(join(medium === "memory" ? memoryFolder() : diskFolder(), "grove-bench-"));
    this.atEnd(() => rm(folder, { recursive: true, force: true }));
    return folder;
  }

  /**
   * Writes as many bytes as a row will store, and deletes them. A guest's first touch of memory is eight
   * times slower than the second, which would measure the hypervisor.
   */
  async warm(folder: string, bytes: number): Promise<void> {
    const path = join(folder, "warm");
    const piece = Buffer.alloc(WARM_PIECE_BYTES, 1);
    const file = await open(path, "w");
    for (let written = 0; written < bytes; written += piece.length) await file.write(piece);
    await file.close();
    await rm(path);
  }

  async close(): Promise<void> {
    for (const close of this.#closers.splice(0).toReversed()) {
      await close().catch((error: unknown) => process.stderr.write(`${String(error)}\n`));
    }
  }
}

/** The folder of a tmpfs; /dev/shm by default. GROVE_BENCH_MEMORY names another. */
export function memoryFolder(): string {
  return process.env["GROVE_BENCH_MEMORY"] ?? (process.platform === "linux" ? "/dev/shm" : tmpdir());
}

/** A folder on a disk with real flushes, which /tmp often lacks. GROVE_BENCH_DISK names another. */
export function diskFolder(): string {
  const named = process.env["GROVE_BENCH_DISK"];
  if (named !== undefined) return named;
  const found = [tmpdir(), "/var/tmp", process.cwd()].find(
    (folder) => existsSync(folder) && statfsSync(folder).type !== TMPFS_MAGIC,
  );
  if (found === undefined) throw new Error("no folder on a disk found; name one in GROVE_BENCH_DISK");
  return found;
}

/** The number in a program's answer. */
export function numberOf(answer: Json): number {
  if (typeof answer !== "number" || !Number.isFinite(answer))
    throw new Error(`not a number: ${JSON.stringify(answer)}`);
  return answer;
}
