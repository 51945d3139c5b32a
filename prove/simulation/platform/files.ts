// Stands for node:fs, with callbacks in simulated time: calls are made at once on real files, unless the disk
// is full or the process dead.
import * as real from "node:fs";
import { promisify } from "node:util";
import { type SimulatedProcess, simulation } from "#prove/simulation/scheduler.ts";

export * from "node:fs";

type Callback<T extends unknown[]> = (error: NodeJS.ErrnoException | null, ...values: T) => void;

/** The ballast for removals on a full disk; its 16 MiB of zeros are not worth writing in every run. */
const BALLAST = /\/ballast$/;

function noSpace(call: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`ENOSPC: no space left on device, ${call}`), { code: "ENOSPC", errno: -28 });
}

/** True where a write would find no room. */
export function isDiskFull(): boolean {
  const scheduler = simulation();
  const process = scheduler.current;
  return process !== undefined && scheduler.host(process.host).isDiskFull;
}

/** True for calls of a dead process: they have no effect. */
export function isGhost(): boolean {
  return simulation().current?.isAlive === false;
}

/** Throws ENOSPC where a write would find no room. */
export function requireRoom(call: string): void {
  if (isDiskFull()) throw noSpace(call);
}

/** Runs a synchronous call and calls back at the end of this turn; a dead process gets no callback. */
function later<T extends unknown[]>(call: () => NoInfer<T>, callback: Callback<T>): void {
  if (isGhost()) return;
  let outcome: T | undefined;
  let failure: NodeJS.ErrnoException | undefined;
  try {
    outcome = call();
  } catch (error) {
    failure = error as NodeJS.ErrnoException;
  }
  simulation().immediate(() => {
    if (outcome === undefined) (callback as unknown as (error: unknown) => void)(failure);
    else callback(null, ...outcome);
  });
}

/** Descriptors of each process, closed when it dies. */
class OpenDescriptors {
  readonly #descriptors = new Set<number>();

  add(descriptor: number): void {
    this.#descriptors.add(descriptor);
  }

  delete(descriptor: number): void {
    this.#descriptors.delete(descriptor);
  }

  abandon(): void {
    for (const descriptor of this.#descriptors) real.closeSync(descriptor);
    this.#descriptors.clear();
  }
}

const descriptors = new WeakMap<SimulatedProcess, OpenDescriptors>();

function opened(descriptor: number): number {
  const process = simulation().current;
  if (process === undefined) return descriptor;
  let open = descriptors.get(process);
  if (open === undefined) {
    open = new OpenDescriptors();
    descriptors.set(process, open);
    process.belongings.add(open);
  }
  open.add(descriptor);
  return descriptor;
}

function closed(descriptor: number): void {
  const process = simulation().current;
  if (process !== undefined) descriptors.get(process)?.delete(descriptor);
}

/** Opens a file for all that use descriptors. */
export function openNow(path: string, flags: string | number = "r", mode = 0o666): number {
  const makes = typeof flags === "string" ? /[wa]/.test(flags) : (flags & real.constants.O_CREAT) !== 0;
  if (makes) requireRoom("open");
  return opened(real.openSync(path, flags, mode));
}

/** Closes what openNow has opened. */
export function closeNow(descriptor: number): void {
  closed(descriptor);
  real.closeSync(descriptor);
}

export function open(path: string, flags: string | number, ...rest: unknown[]): void {
  const callback = rest.at(-1) as Callback<[number]>;
  const mode = typeof rest[0] === "number" ? rest[0] : undefined;
  later((): [number] => [openNow(path, flags, mode)], callback);
}

export function close(descriptor: number, callback: Callback<[]>): void {
  later((): [] => {
    closeNow(descriptor);
    return [];
  }, callback);
}

export function fsync(descriptor: number, callback: Callback<[]>): void {
  later((): [] => [], callback);
  void descriptor;
}

export function fdatasync(descriptor: number, callback: Callback<[]>): void {
  fsync(descriptor, callback);
}

export function unlink(path: string, callback: Callback<[]>): void {
  later((): [] => {
    real.unlinkSync(path);
    return [];
  }, callback);
}

export function read(
  descriptor: number,
  buffer: Uint8Array,
  offset: number,
  length: number,
  position: number | null,
  callback: Callback<[number, Uint8Array]>,
): void {
  later(
    (): [number, Uint8Array] => [real.readSync(descriptor, buffer, offset, length, position), buffer],
    callback,
  );
}

export function write(
  descriptor: number,
  buffer: Uint8Array,
  offset: number,
  length: number,
  position: number | null,
  callback: Callback<[number, Uint8Array]>,
): void {
  later((): [number, Uint8Array] => {
    requireRoom("write");
    return [real.writeSync(descriptor, buffer, offset, length, position), buffer];
  }, callback);
}

export function writev(
  descriptor: number,
  buffers: readonly Uint8Array[],
  position: number,
  callback: Callback<[number, readonly Uint8Array[]]>,
): void {
  later((): [number, readonly Uint8Array[]] => {
    requireRoom("writev");
    return [real.writevSync(descriptor, buffers, position), buffers];
  }, callback);
}

/** Their promises have names in their values, as those of Node do. */
Object.defineProperty(read, promisify.custom, {
  value: (...args: Parameters<typeof read> extends [...infer Head, unknown] ? Head : never) =>
    new Promise((resolve, reject) =>
      read(...args, (error, bytesRead, buffer) =>
        error === null ? resolve({ bytesRead, buffer }) : reject(error),
      ),
    ),
});
Object.defineProperty(write, promisify.custom, {
  value: (...args: Parameters<typeof write> extends [...infer Head, unknown] ? Head : never) =>
    new Promise((resolve, reject) =>
      write(...args, (error, bytesWritten, buffer) =>
        error === null ? resolve({ bytesWritten, buffer }) : reject(error),
      ),
    ),
});
Object.defineProperty(writev, promisify.custom, {
  value: (descriptor: number, buffers: readonly Uint8Array[], position: number) =>
    new Promise((resolve, reject) =>
      writev(descriptor, buffers, position, (error, bytesWritten) =>
        error === null ? resolve({ bytesWritten, buffers }) : reject(error),
      ),
    ),
});

export function writeFileSync(...args: Parameters<typeof real.writeFileSync>): void {
  requireRoom("write");
  const [path, data] = args;
  if (typeof path === "string" && BALLAST.test(path)) {
    real.closeSync(real.openSync(path, "w", 0o600));
    real.truncateSync(path, (data as Uint8Array).length);
    return;
  }
  real.writeFileSync(...args);
}

/** Only the ballast's size is asked for before it is made again. */
export function statfsSync(...args: Parameters<typeof real.statfsSync>): ReturnType<typeof real.statfsSync> {
  const facts = real.statfsSync(...args);
  return isDiskFull() ? Object.assign(facts, { bavail: 0, bfree: 0 }) : facts;
}
