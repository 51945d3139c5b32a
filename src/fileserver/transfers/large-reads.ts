// Gives some downloads large read buffers: a bounded number, so that many stalled ones do not fill the memory.
import { BLOCK_BYTES } from "#base/limits.ts";
import { SharedBudget } from "#wire/framing/shared-budget.ts";

/** Bytes that such a download reads at a time: a trip to the thread pool costs as much as copying 256 KiB. */
export const LARGE_READ_BYTES: number = 4 * BLOCK_BYTES;
/** Bytes left to send that make large buffers worth their memory. */
export const LARGE_MIN_BYTES: number = 4 * LARGE_READ_BYTES;
/** Downloads with large buffers at once, each with some 4 MiB. */
export const LARGE_READS_AT_ONCE = 8;
/** The same of one user. */
export const LARGE_READS_PER_USER = 4;

/** The places of downloads with large buffers. Without one a download reads block by block. */
export class LargeReads {
  readonly #places = new SharedBudget({
    total: LARGE_READS_AT_ONCE,
    perParty: LARGE_READS_PER_USER,
    spare: 0,
    modest: 0,
  });

  /** Takes a place, which the returned function gives back; undefined when there is none for this user. */
  take(username: string): (() => void) | undefined {
    return this.#places.take(username, 1) ? () => this.#places.give(username, 1) : undefined;
  }
}
