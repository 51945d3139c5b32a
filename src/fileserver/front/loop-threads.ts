// Starts the threads of loops, and keeps their health services up to date.
import { extname } from "node:path";
import { Worker } from "node:worker_threads";
import type { LoopServer, LoopStart } from "#wire/loops/loop-server.ts";

/** What the thread of a loop gets. */
export interface LoopThreadData {
  readonly start: LoopStart;
  readonly reflection: boolean;
}

/** A setting of the threads: whether a service serves. */
export interface LoopSetting {
  readonly service: string;
  readonly isServing: boolean;
}

/** Starts the thread of a loop. */
export function startLoopThread(data: LoopThreadData): Worker {
  // It lies beside this file in the sources, and beside the bundle.
  return new Worker(new URL(`./loop-worker${extname(import.meta.url)}`, import.meta.url), {
    workerData: data,
    name: "grove-loop",
  });
}

/** The health of a server over several loops: each has a health service of its own. */
export class LoopHealth {
  readonly #server: Pick<LoopServer, "set">;

  constructor(server: Pick<LoopServer, "set">) {
    this.#server = server;
  }

  /** Sets whether a service serves, in all loops. */
  setServing(service: string, isServing: boolean): void {
    this.#server.set(service, { service, isServing } satisfies LoopSetting);
  }
}
