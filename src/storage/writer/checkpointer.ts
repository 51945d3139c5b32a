// The writer's side of the thread that brings the log into the database: asked for once at a time, started when it is first needed.
import { extname } from "node:path";
import { MessageChannel, type MessagePort, receiveMessageOnPort, Worker } from "node:worker_threads";
import { errorText } from "#base/log.ts";

const YOUNG_MEBIBYTES = 1;

/** What the thread is started with. */
export interface CheckpointWorkerData {
  readonly port: MessagePort;
  readonly databasePath: string;
}

/** From the thread, after each checkpoint. */
export interface CheckpointAnswer {
  /** Why the store is broken: a flush that has failed is final, whichever thread made it. */
  readonly failure: string | undefined;
}

/** Has checkpoints made in a thread of their own. */
export class Checkpointer {
  readonly #databasePath: string;
  readonly #failed: (reason: string) => void;
  #port: MessagePort | undefined;
  #isRunning = false;
  #isDone = false;

  constructor(databasePath: string, failed: (reason: string) => void) {
    this.#databasePath = databasePath;
    this.#failed = failed;
  }

  /** True while one is under way. */
  get isRunning(): boolean {
    this.#poll();
    return this.#isRunning;
  }

  /** True once after each that has ended. */
  takeDone(): boolean {
    this.#poll();
    const isDone = this.#isDone;
    this.#isDone = false;
    return isDone;
  }

  /** Begins one. */
  start(): void {
    if (this.#isRunning) return;
    this.#isRunning = true;
    this.#port ??= this.#open();
    this.#port.postMessage("checkpoint", []);
  }

  /** The writer's loop may not come back to its events for long. */
  #poll(): void {
    if (!this.#isRunning || this.#port === undefined) return;
    const next = receiveMessageOnPort(this.#port);
    if (next !== undefined) this.#take(next.message as CheckpointAnswer);
  }

  #take({ failure }: CheckpointAnswer): void {
    this.#isRunning = false;
    this.#isDone = true;
    if (failure !== undefined) this.#failed(failure);
  }

  #open(): MessagePort {
    const { port1, port2 } = new MessageChannel();
    port1.on("message", (answer: CheckpointAnswer) => this.#take(answer));
    // Beside this file in the sources, and beside the bundle that holds it.
    const worker = new Worker(new URL(`./checkpoint-worker${extname(import.meta.url)}`, import.meta.url), {
      workerData: { port: port2, databasePath: this.#databasePath } satisfies CheckpointWorkerData,
      transferList: [port2],
      name: "grove-storage-checkpoint",
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MEBIBYTES },
    });
    worker.on("error", (error) => this.#failed(`the checkpoint's thread died: ${errorText(error)}`));
    // They end with the writer's thread and do not keep it.
    worker.unref();
    port1.unref();
    return port1;
  }
}
