// Worker threads without threads: a worker is a fresh copy of its module in this thread, and messages are
// handed over between turns.
import { EventEmitter } from "node:events";
import { type SimulatedProcess, simulation } from "#prove/simulation/scheduler.ts";

export { isMainThread } from "node:worker_threads";

/** Does the same as structuredClone, at a fraction of its cost for messages of only objects and arrays. */
function copyOf(value: unknown): unknown {
  if (typeof value === "function" || typeof value === "symbol") return structuredClone(value);
  if (typeof value !== "object" || value === null) return value;
  const kind = Object.getPrototypeOf(value) as object | null;
  if (Array.isArray(value)) return value.map((one) => copyOf(one));
  if (kind !== Object.prototype) return structuredClone(value);
  const copy: Record<string, unknown> = {};
  for (const key of Object.keys(value)) copy[key] = copyOf((value as Record<string, unknown>)[key]);
  return copy;
}

/** One end of a channel. */
export class MessagePort extends EventEmitter {
  readonly waiting: unknown[] = [];
  other: MessagePort | undefined;
  #isClosed = false;

  postMessage(message: unknown): void {
    const to = this.other;
    if (to === undefined || this.#isClosed) return;
    to.waiting.push(copyOf(message));
    simulation().immediate(() => to.#deliver());
  }

  #deliver(): void {
    // A caller of receiveMessageOnPort may have taken it already.
    if (this.#isClosed || this.listenerCount("message") === 0 || this.waiting.length === 0) return;
    this.emit("message", this.waiting.shift());
  }

  close(): void {
    this.#isClosed = true;
    this.emit("close");
  }

  ref(): void {}

  unref(): void {}
}

/** Two ports that belong together. */
export class MessageChannel {
  readonly port1 = new MessagePort();
  readonly port2 = new MessagePort();

  constructor() {
    this.port1.other = this.port2;
    this.port2.other = this.port1;
  }
}

/** Takes a message that has come and was not delivered. */
export function receiveMessageOnPort(port: MessagePort): { message: unknown } | undefined {
  return port.waiting.length === 0 ? undefined : { message: port.waiting.shift() };
}

/** What a worker's own copy of this module is given. */
export interface Started {
  readonly workerData: unknown;
  readonly parentPort: MessagePort;
}

/** By number; a copy of a worker's module asks for its own. */
export const started = new Map<number, Started>();
let count = 0;
/** Modules are loaded one after the other, so that their order is that of the simulation. */
let loading: Promise<unknown> = Promise.resolve();

/** A worker. */
export class Worker extends EventEmitter {
  readonly #channel = new MessageChannel();

  constructor(url: URL, options: { workerData?: unknown } = {}) {
    super();
    const number = ++count;
    const { port1, port2 } = this.#channel;
    started.set(number, { workerData: options.workerData, parentPort: port2 });
    port1.on("message", (message) => this.emit("message", message));
    port2.on("close", () => simulation().immediate(() => this.emit("exit", 0)));
    const scheduler = simulation();
    const process: SimulatedProcess | undefined = scheduler.current;
    loading = loading
      .then(() => scheduler.within(process, () => import(`${url.href}?worker=${number}`)))
      .catch((error: unknown) => this.emit("error", error))
      .finally(() => started.delete(number));
    void scheduler.really(loading);
  }

  postMessage(message: unknown): void {
    this.#channel.port1.postMessage(message);
  }

  terminate(): Promise<number> {
    return Promise.resolve(0);
  }

  ref(): void {}

  unref(): void {}
}
