// Helpers of the contract's tests of the metadata store.
import assert from "node:assert/strict";
import type { ManualClock } from "#base/clock.ts";
import { type ErrorCode, isGroveError } from "#base/errors.ts";
import type { Directory, Heartbeat, NodeRegistration } from "./directory.ts";
import type { Speaker } from "./node-caller.ts";

/** One empty store, and the way to open the same store a second time. */
export interface DirectoryUnderTest {
  readonly directory: Directory;
  /** Closes the store and opens it again, as a restarted MetaServer does. */
  reopen(): Promise<Directory>;
}

/** Makes an empty store on the clock; the test's end closes all that it opened. */
export type OpenForTest = (
  clock: ManualClock,
  cleanUp: (end: () => Promise<void>) => void,
) => Promise<DirectoryUnderTest>;

/** A speaker in mock mode, without any proof. */
export const MOCK: Speaker = { kind: "mock" };
/** Bytes of a gibibyte. */
export const GIB: bigint = 1n << 30n;

/** Every registration is of a process of its own by default. */
let instances = 0;

/** A registration with defaults for all facts that a test does not set. */
export function registration(fsId: string, facts: Partial<NodeRegistration> = {}): NodeRegistration {
  return {
    fsId,
    name: `Node ${fsId}`,
    address: `${fsId}.example.com:50051`,
    softwareVersion: "0.1.0",
    clusterId: "",
    instanceId: `instance ${++instances} of ${fsId}`,
    dataId: `data of ${fsId}`,
    diskTotalBytes: 1_000n * GIB,
    diskFreeBytes: 500n * GIB,
    diskReserveBytes: 20n * GIB,
    roots: [],
    speaker: MOCK,
    ...facts,
  };
}

/** A heartbeat with defaults for all facts that a test does not set. */
export function beat(fsId: string, epoch: number, facts: Partial<Heartbeat> = {}): Heartbeat {
  const defaults = { rootsVersion: 1n, diskFreeBytes: 500n * GIB, draining: false, speaker: MOCK };
  return { fsId, epoch, ...defaults, ...facts };
}

/** Asserts that a command is refused with the code. */
export async function refused(code: ErrorCode, promise: Promise<unknown>): Promise<void> {
  await assert.rejects(promise, (error) => isGroveError(error, code), code);
}

/** Declares one test of the contract. */
export type Contract = (
  title: string,
  body: (store: DirectoryUnderTest, clock: ManualClock) => Promise<void>,
) => void;

/** Repeats a command that is refused for lack of room, as clients do on a busy machine. */
export async function patiently<T>(command: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await command();
    } catch (error) {
      if (!isGroveError(error, "OVERLOADED")) throw error;
    }
  }
}
