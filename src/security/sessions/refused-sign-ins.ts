// Audits refused sign-ins, so many a minute: a flood fills less than 10 MB of the log in a day.
import type { AuditSink } from "#base/audit-act.ts";
import type { Clock } from "#base/clock.ts";
import { isGroveError } from "#base/errors.ts";
import { SlidingWindow } from "#base/sliding-window.ts";

/** Audited refusals of one network in a minute, and of all together. */
export const REFUSED_AUDITED = { perNetwork: 5, all: 20 } as const;
const WINDOW_MS = 60_000;
/** The key of all networks together. */
const ALL = "";

/** A sign-in that was refused. */
export interface RefusedSignIn {
  readonly address: string;
  /** Whose valid ID token it was; undefined for a token that proves nobody. */
  readonly username: string | undefined;
}

/** The refusals of one FileServer. */
export class RefusedSignIns {
  readonly #audit: AuditSink;
  readonly #ofNetwork: SlidingWindow;
  readonly #ofAll: SlidingWindow;

  constructor({ audit, clock }: { readonly audit: AuditSink; readonly clock: Clock }) {
    this.#audit = audit;
    this.#ofNetwork = new SlidingWindow(clock, { count: REFUSED_AUDITED.perNetwork, windowMs: WINDOW_MS });
    this.#ofAll = new SlidingWindow(clock, { count: REFUSED_AUDITED.all, windowMs: WINDOW_MS });
  }

  /** Writes a line about a refusal of a person or a token. A mock token's is a security event of its own. */
  tell(error: unknown, { address, username }: RefusedSignIn): void {
    if (!isGroveError(error, "TOKEN_REJECTED", "USER_DISABLED")) return;
    if (this.#ofNetwork.waitMs(address) > 0 || this.#ofAll.take(ALL) > 0) return;
    this.#ofNetwork.take(address);
    this.#audit({
      act: "session.refused",
      actor: username ?? "unknown",
      subject: username ?? "unknown",
      detail: { address, reason: error.code, what: error.message },
    });
  }
}
