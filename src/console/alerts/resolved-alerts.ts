// Keeps the newest resolved alerts, visible and hidden ones apart, for at most 30 days (D11).
import type { Alert } from "./alert.ts";
import { isPublic } from "./alert-visibility.ts";

/**
 * Resolved alerts that are kept of those that visitors see, and as many of the hidden ones, so that neither
 * affects the other (D11).
 */
export const ALERTS_RESOLVED_KEPT = 1_000;
/** Longest time that a resolved alert is kept (D11): 30 days. */
export const ALERT_KEPT_MS: number = 30 * 86_400_000;

/** A resolved alert, and when it ended on the steady clock: a jump of the wall clock ages none. */
interface Ended {
  readonly alert: Alert;
  readonly endedMs: number;
}

/**
 * Two queues, so that the number of hidden alerts does not decide which others visitors see (W-09). The
 * newest 1,000 of all are among those kept.
 */
export class ResolvedAlerts {
  readonly #queues: { readonly shown: Ended[]; readonly hidden: Ended[] } = { shown: [], hidden: [] };
  readonly #onForgotten: (alert: Alert) => void;

  /** Calls `onForgotten` for each alert that is no longer kept. */
  constructor(onForgotten: (alert: Alert) => void) {
    this.#onForgotten = onForgotten;
  }

  /** Adds an alert that ended at that steady time. */
  add(alert: Alert, endedMs: number): void {
    const queue = isPublic(alert) ? this.#queues.shown : this.#queues.hidden;
    // After a restart they come in no order.
    const before = queue.findLastIndex((other) => other.endedMs <= endedMs);
    queue.splice(before + 1, 0, { alert, endedMs });
    if (queue.length > ALERTS_RESOLVED_KEPT) this.#dropOldest(queue);
  }

  /** Removes alerts that ended more than 30 days before that steady time. */
  expire(steadyMs: number): void {
    for (const queue of [this.#queues.shown, this.#queues.hidden]) {
      for (let oldest = queue[0]; oldest !== undefined; [oldest] = queue) {
        if (steadyMs - oldest.endedMs <= ALERT_KEPT_MS) break;
        this.#dropOldest(queue);
      }
    }
  }

  #dropOldest(queue: Ended[]): void {
    const oldest = queue.shift();
    if (oldest !== undefined) this.#onForgotten(oldest.alert);
  }
}
