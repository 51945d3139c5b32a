// Ends streams whose client has gone: its session has ended, or the header of its upload does not come.
import type { Clock } from "#base/clock.ts";
import { SESSION_SWEEP_INTERVAL_MS } from "#base/limits.ts";
import { inTime } from "#wire/framing/first-message.ts";
import type { Caller } from "./caller.ts";

/**
 * Time limit for an upload's header; a stream without one wastes a slot of its user. On a slow uplink it waits behind
 * what the same client sends already.
 */
export const UPLOAD_HEADER_TIMEOUT_MS = 60_000;

type Client = Pick<Caller, "isLive" | "renew" | "whenEnded">;

/** An upload, or a download's chunk on another thread. */
interface Stream {
  /** Ends the wait for the client when its session has ended. */
  giveUpIfOver(): void;
}

/**
 * Ends streams that wait for their client: at once when its session ends, at intervals when this node stops
 * serving. So none holds its reservation for ever.
 */
export class AbandonedStreams {
  readonly #clock: Clock;
  readonly #streams = new Set<Stream>();
  readonly #stop: () => void;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#stop = clock.every(SESSION_SWEEP_INTERVAL_MS, () => {
      for (const stream of this.#streams) stream.giveUpIfOver();
    });
  }

  /** Watches a stream while it runs; the stream slots bound their number. */
  async watch<T>(caller: Client, stream: Stream, run: () => Promise<T>): Promise<T> {
    this.#streams.add(stream);
    const forget = caller.whenEnded(() => stream.giveUpIfOver());
    try {
      return await run();
    } finally {
      forget();
      this.#streams.delete(stream);
    }
  }

  /**
   * The first message of a stream, within UPLOAD_HEADER_TIMEOUT_MS and the session's life; counts as use of
   * it. Throws DEADLINE_EXCEEDED and why the session has ended.
   */
  async first<T>(caller: Client, coming: Promise<T> | T): Promise<T> {
    const first = coming instanceof Promise ? await this.#whileLive(caller, coming) : coming;
    caller.renew();
    return first;
  }

  #whileLive<T>(caller: Client, coming: Promise<T>): Promise<T> {
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
    return this.watch(caller, { giveUpIfOver }, () => promise);
  }

  /** Ends the watch. */
  stop(): void {
    this.#stop();
  }
}
