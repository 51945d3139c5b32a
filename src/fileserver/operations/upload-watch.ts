// Ends uploads that wait for a client whose session has ended or whose header has not come.
import type { Clock } from "#base/clock.ts";
import { SESSION_SWEEP_INTERVAL_MS } from "#base/limits.ts";
import { inTime } from "#wire/framing/first-message.ts";
import type { Caller } from "./caller.ts";

/**
 * Time limit for an upload's header; a stream without one wastes a slot of its user. On a slow uplink it waits behind
 * what the same client sends already.
 */
export const UPLOAD_HEADER_TIMEOUT_MS = 60_000;

type Watching = Pick<Caller, "isLive" | "renew" | "whenEnded">;

/** An upload as its watch sees it. */
interface Watched {
  /** Ends the wait for the client when its session has ended. */
  giveUpIfOver(): void;
}

/**
 * Ends uploads that wait for their client: at once when its session ends, at intervals when this node stops
 * serving. So none holds its reservation for ever.
 */
export class UploadWatch {
  readonly #clock: Clock;
  readonly #uploads = new Set<Watched>();
  readonly #stop: () => void;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#stop = clock.every(SESSION_SWEEP_INTERVAL_MS, () => {
      for (const upload of this.#uploads) upload.giveUpIfOver();
    });
  }

  /** Watches an upload while it runs; the stream slots bound their number. */
  async over<T>(caller: Watching, upload: Watched, run: () => Promise<T>): Promise<T> {
    this.#uploads.add(upload);
    const forget = caller.whenEnded(() => upload.giveUpIfOver());
    try {
      return await run();
    } finally {
      forget();
      this.#uploads.delete(upload);
    }
  }

  /**
   * The first message of a stream, within UPLOAD_HEADER_TIMEOUT_MS and the session's life; counts as use of
   * it. Throws DEADLINE_EXCEEDED and why the session has ended.
   */
  async first<T>(caller: Watching, coming: Promise<T> | T): Promise<T> {
    const first = coming instanceof Promise ? await this.#whileLive(caller, coming) : coming;
    caller.renew();
    return first;
  }

  #whileLive<T>(caller: Watching, coming: Promise<T>): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const giveUpIfOver = (): void => {
      if (caller.isLive()) return;
      try {
        caller.renew();
      } catch (error) {
        reject(error);
      }
    };
    const limit = { clock: this.#clock, timeoutMs: UPLOAD_HEADER_TIMEOUT_MS, what: "an upload's header" };
    inTime(coming, limit).then(resolve, reject);
    return this.over(caller, { giveUpIfOver }, () => promise);
  }

  /** Ends the watch. */
  stop(): void {
    this.#stop();
  }
}
