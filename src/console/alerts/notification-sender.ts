// The interface of senders, and the result of a try.

import type { Notice } from "./notification.ts";
import type { QueuedNotification } from "./notification-queue.ts";

/** Time for one try, from the connection to the end of the answer. */
export const NOTIFICATION_TRY_TIMEOUT_MS = 15_000;

/**
 * The result of one try: "refused" means that the receiver will never accept this message, "failed" that it
 * accepts none now. "partly" means that some of a mail's recipients have it; while it is open, another try may
 * reach more of them. The text is for operators and holds no secret.
 */
export type TryResult =
  | { readonly kind: "delivered" }
  | { readonly kind: "partly"; readonly why: string; readonly isOpen: boolean }
  | { readonly kind: "refused"; readonly why: string }
  | { readonly kind: "failed"; readonly why: string };

/** Delivers messages to one receiver. */
export interface NotificationSender<N = Notice> {
  /** Tries once, after a partial try with the rest alone. Never rejects; ends soon after the signal. */
  send(queued: QueuedNotification<N>, signal: AbortSignal): Promise<TryResult>;
}
