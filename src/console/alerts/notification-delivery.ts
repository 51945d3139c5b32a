// Delivers messages to one receiver in order: three tries, then growing pauses, for a day (decision D11).
import type { Clock } from "#base/clock.ts";
import type { Logger } from "#base/log.ts";
import type { NotificationReceiver } from "#wire/webapi/notification.ts";
import type { Notice } from "./notification.ts";
import type { NotificationQueue, QueuedNotification } from "./notification-queue.ts";
import {
  NOTIFICATION_TRY_TIMEOUT_MS,
  type NotificationSender,
  type TryResult,
} from "./notification-sender.ts";

/** A message that is undelivered for this long is dropped and counted. */
const NOTIFICATION_LIFETIME_MS: number = 24 * 3_600_000;
/** Pauses between the tries to deliver a message (decision D11: three tries). */
const NOTIFICATION_RETRY_MS: readonly number[] = [1_000, 5_000];
/** First and longest pause after failed tries; each is twice the one before. */
const NOTIFICATION_REST_MS = { first: 30_000, longest: 600_000 } as const;
/** Time that a stopping console gives a try in progress, so that it need not be repeated. */
const NOTIFICATION_STOP_GRACE_MS = 2_000;

/** The end of a message. */
export interface FinishedNotification<N = Notice> {
  readonly queued: QueuedNotification<N>;
  readonly state: "delivered" | "refused" | "expired";
  readonly tries: number;
  /** Of a delivered mail: which of its recipients do not have it, and why. */
  readonly missed?: string | undefined;
}

/** What delivery to one receiver needs. */
export interface NotificationDeliveryDeps<N = Notice> {
  readonly receiver: { readonly name: string; readonly kind: "webhook" | "email" };
  readonly sender: NotificationSender<N>;
  readonly queue: NotificationQueue<N>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly onFinished: (finished: FinishedNotification<N>) => void;
}

/** Delivers to one receiver, independent of others. */
export class NotificationDelivery<N = Notice> {
  readonly #deps: NotificationDeliveryDeps<N>;
  readonly #abort = new AbortController();
  /** Since when each message has waited, on the steady clock: a wall clock that is set makes none older. */
  readonly #sinceMs = new Map<number, number>();
  #isStopped = false;
  /** Messages up to this number are recorded as sent, so that they may be delivered. */
  #upToSeq = 0;
  #running: Promise<void> | undefined;
  #wake: (() => void) | undefined;
  #restMs: number = NOTIFICATION_REST_MS.first;
  /** Tries of the oldest message. */
  #tries = { seq: 0, count: 0 };
  #lastError: string | undefined;
  #lastDeliveryWallMs: number | undefined;

  constructor(deps: NotificationDeliveryDeps<N>) {
    this.#deps = deps;
  }

  /** Releases messages up to a number for delivery. */
  release(upToSeq: number): void {
    this.#upToSeq = Math.max(this.#upToSeq, upToSeq);
    for (const queued of this.#deps.queue.waiting()) {
      if (queued.receiver === this.#deps.receiver.name) this.#noteWaiting(queued);
    }
    if (this.#running !== undefined || this.#isStopped) return;
    if (this.#next() === undefined) return;
    this.#running = this.#run().finally(() => {
      this.#running = undefined;
    });
  }

  /** Tries of a message so far. */
  triesOf(seq: number): number {
    return this.#tries.seq === seq ? this.#tries.count : 0;
  }

  /** The receiver's state. */
  view(): NotificationReceiver {
    const { name, kind } = this.#deps.receiver;
    const waiting = this.#deps.queue.waiting().filter(({ receiver }) => receiver === name).length;
    const seconds = (ms: number): number => Math.trunc(ms / 1_000);
    return {
      name,
      kind,
      state:
        this.#lastError !== undefined ? "failing" : this.#lastDeliveryWallMs === undefined ? "untried" : "ok",
      ...(this.#lastDeliveryWallMs === undefined
        ? {}
        : { last_delivery_at: seconds(this.#lastDeliveryWallMs) }),
      ...(this.#lastError === undefined ? {} : { last_error: this.#lastError }),
      waiting,
    };
  }

  /** Ends the tries; queued messages stay. A try in progress has a moment to end before it is aborted. */
  async close(): Promise<void> {
    this.#isStopped = true;
    this.#wake?.();
    const cancel = this.#deps.clock.after(NOTIFICATION_STOP_GRACE_MS, () => this.#abort.abort());
    await this.#running;
    cancel();
  }

  /** A message of an earlier run is as old as the wall clock says at the start. */
  #noteWaiting({ seq, createdWallMs }: QueuedNotification<N>): number {
    const { clock } = this.#deps;
    const known = this.#sinceMs.get(seq);
    if (known !== undefined) return known;
    const sinceMs = clock.steadyMs() - Math.max(0, clock.wallMs() - createdWallMs);
    this.#sinceMs.set(seq, sinceMs);
    return sinceMs;
  }

  #next(): QueuedNotification<N> | undefined {
    return this.#deps.queue.next(this.#deps.receiver.name, this.#upToSeq);
  }

  async #run(): Promise<void> {
    for (let queued = this.#next(); queued !== undefined && !this.#isStopped; queued = this.#next()) {
      if (this.#deps.clock.steadyMs() - this.#noteWaiting(queued) > NOTIFICATION_LIFETIME_MS) {
        await this.#finish(queued, "expired");
        continue;
      }
      const result = await this.#threeTries(queued);
      if (mayImprove(result) && this.#isStopped) return;
      if (result.kind === "failed") {
        this.#fail(result.why);
        await this.#pause(this.#restMs);
        this.#restMs = Math.min(2 * this.#restMs, NOTIFICATION_REST_MS.longest);
      } else if (result.kind === "refused") {
        this.#fail(result.why);
        await this.#finish(queued, "refused");
      } else {
        const missed = result.kind === "partly" ? result.why : undefined;
        this.#lastError = undefined;
        // Its other recipients do not wait for one that accepts nothing.
        if (missed !== undefined) this.#fail(missed);
        this.#restMs = NOTIFICATION_REST_MS.first;
        this.#lastDeliveryWallMs = this.#deps.clock.wallMs();
        await this.#finish(queued, "delivered", missed);
      }
    }
  }

  async #threeTries(queued: QueuedNotification<N>): Promise<TryResult> {
    for (const [at, pauseMs] of [...NOTIFICATION_RETRY_MS, undefined].entries()) {
      const result = await this.#tryOnce(queued);
      if (!mayImprove(result) || pauseMs === undefined || this.#isStopped) return result;
      this.#deps.log.warn("notice_try_failed", {
        receiver: this.#deps.receiver.name,
        notice: queued.seq,
        attempt: at + 1,
        why: result.why,
      });
      await this.#pause(pauseMs);
      if (this.#isStopped) return result;
    }
    throw new TypeError("no try is without an end");
  }

  async #tryOnce(queued: QueuedNotification<N>): Promise<TryResult> {
    const { seq } = queued;
    this.#tries = { seq, count: this.triesOf(seq) + 1 };
    const timeout = new AbortController();
    const cancel = this.#deps.clock.after(NOTIFICATION_TRY_TIMEOUT_MS, () => timeout.abort());
    try {
      return await this.#deps.sender.send(queued, AbortSignal.any([timeout.signal, this.#abort.signal]));
    } finally {
      cancel();
    }
  }

  async #finish(
    queued: QueuedNotification<N>,
    state: FinishedNotification["state"],
    missed?: string,
  ): Promise<void> {
    this.#sinceMs.delete(queued.seq);
    // A message that was dropped during its try is counted as dropped.
    if (!(await this.#deps.queue.remove(queued.seq))) return;
    this.#deps.onFinished({ queued, state, tries: this.triesOf(queued.seq), missed });
    if (state === "delivered") return;
    this.#deps.log.error(`notice_${state}`, { receiver: queued.receiver, notice: queued.seq });
  }

  #fail(why: string): void {
    this.#lastError = why;
    this.#deps.log.error("notice_receiver_failed", { receiver: this.#deps.receiver.name, why });
  }

  #pause(ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const cancel = this.#deps.clock.after(ms, resolve);
    this.#wake = () => {
      cancel();
      resolve();
    };
    if (this.#isStopped) this.#wake();
    return promise;
  }
}

/** True where another try may reach whom this one did not. */
function mayImprove(result: TryResult): result is Extract<TryResult, { readonly kind: "failed" | "partly" }> {
  return result.kind === "failed" || (result.kind === "partly" && result.isOpen);
}
