// What every way of delivering a message looks like from outside, and what may come of a try.

import type { QueuedNotification } from "./notification-queue.ts";

/** Notices: time for one try, from the connection to the end of the answer. */
export const NOTIFICATION_TRY_TIMEOUT_MS = 15_000;

/**
 * What has come of one try: "refused" means that this very message will never be taken, "failed" that the receiver took nothing now. The
 * text is for operators and holds no secret.
 */
export type TryResult =
  | { readonly kind: "delivered" }
  | { readonly kind: "refused"; readonly why: string }
  | { readonly kind: "failed"; readonly why: string };

/** Delivers messages to one receiver. */
export interface NotificationSender {
  /** Tries once. Never rejects; ends soon after the signal. */
  send(queued: QueuedNotification, signal: AbortSignal): Promise<TryResult>;
}
