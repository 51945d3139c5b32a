// The writer's side of the checkpoint thread: one request at a time, started on first use.
import { extname } from "node:path";
import { MessageChannel, type MessagePort, receiveMessageOnPort, Worker } from "node:worker_threads";
import { errorText } from "#base/log.ts";

const YOUNG_MEBIBYTES = 1;

/** Start data of the thread. */
export interface CheckpointWorkerData {
  readonly port: MessagePort;
  readonly databasePath: string;
}

/** From the thread once it has begun, and after each checkpoint. */
export type CheckpointMessage = "begun" | CheckpointAnswer;

/** The end of a checkpoint. */
export interface CheckpointAnswer {
  /** Reason why the store is broken: a failed flush is final on any thread. Without one the rest is the writer's. */
  readonly failure: string | undefined;
}

/** Runs checkpoints in a thread of their own. */
export class Checkpointer {
  readonly #databasePath: string;
  readonly #failed: (reason: string) => void;
  #port: MessagePort | undefined;
  #hasBegun = false;
  #isRunning = false;
  #isDone = false;

  constructor(databasePath: string, failed: (reason: string) => void) {
    this.#databasePath = databasePath;
    this.#failed = failed;
  }

  /** True while a checkpoint is under way. */
  get isRunning(): boolean {
    this.#poll();
    return this.#isRunning;
  }

  /** True once after each finished checkpoint. */
  takeDone(): boolean {
    this.#poll();
    const isDone = this.#isDone;
    this.#isDone = false;
    return isDone;
  }

  /** Begins a checkpoint. */
  start(): void {
    if (this.#isRunning) return;
    this.#isRunning = true;
    this.#port ??= this.#open();
    this.#port.postMessage("checkpoint", []);
  }

  /** The writer's loop may not return to its events for long. */
  #poll(): void {
    while (this.#isRunning && this.#port !== undefined) {
      const next = receiveMessageOnPort(this.#port);
      if (next === undefined) return;
      this.#take(next.message as CheckpointMessage);
    }
  }

  #take(message: CheckpointMessage): void {
    if (message === "begun") {
      this.#hasBegun = true;
      return;
    }
    const { failure } = message;
    this.#isRunning = false;
    this.#isDone = true;
    if (failure !== undefined) this.#failed(failure);
  }

  /**
   * A thread that could not begin, for want of descriptors or memory, has touched nothing: the writer brings all of
   * the log in itself, and the next time another thread is tried.
   */
  #giveUp(): void {
    this.#port?.close();
    this.#port = undefined;
    this.#take({ failure: undefined });
  }

  #open(): MessagePort {
    const { port1, port2 } = new MessageChannel();
    port1.on("message", (message: CheckpointMessage) => this.#take(message));
    // The worker lies beside this file in the sources, and beside the bundle.
    const worker = new Worker(new URL(`./checkpoint-worker${extname(import.meta.url)}`, import.meta.url), {
      workerData: { port: port2, databasePath: this.#databasePath } satisfies CheckpointWorkerData,
      transferList: [port2],
      name: "grove-storage-checkpoint",
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MEBIBYTES },
    });
    worker.on("error", (error) => {
      this.#poll();
      if (this.#hasBegun) this.#failed(`the checkpoint's thread died: ${errorText(error)}`);
      else this.#giveUp();
    });
    // The checkpoint thread ends with the writer's thread and does not keep it alive.
    worker.unref();
    port1.unref();
    return port1;
  }
}
