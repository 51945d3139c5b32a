// Tickets for one WebSocket upgrade of an operator's session, so that no URL has a token (T12, decision D8).
import { hash } from "node:crypto";
import type { Clock } from "#base/clock.ts";
import type { Random } from "#base/random.ts";
import type { OperatorSession } from "#console/http/route.ts";
import type { OperatorSessions } from "./operator-sessions.ts";

/** Lifetime of a ticket (decision D8). */
const WS_TICKET_LIFETIME_MS = 30_000;
/** Unused tickets; one more removes the oldest. */
const WS_TICKETS_MAX = 1_000;

const TICKET_BYTES = 32;

interface Row {
  readonly session: OperatorSession;
  readonly endsSteadyMs: number;
}

/** Issued tickets: single use, 30 seconds, and no longer than the session. */
export class Tickets {
  readonly #deps: { readonly clock: Clock; readonly random: Random; readonly sessions: OperatorSessions };
  /** By SHA-256 of the ticket, the oldest first. */
  readonly #rows = new Map<string, Row>();

  constructor(deps: { readonly clock: Clock; readonly random: Random; readonly sessions: OperatorSessions }) {
    this.#deps = deps;
  }

  /** Makes a ticket of 64 hex characters. */
  issue(session: OperatorSession): string {
    const nowMs = this.#deps.clock.steadyMs();
    for (const [key, row] of this.#rows) {
      if (this.#rows.size < WS_TICKETS_MAX && row.endsSteadyMs > nowMs) break;
      this.#rows.delete(key);
    }
    const ticket = this.#deps.random.bytes(TICKET_BYTES).toString("hex");
    this.#rows.set(hash("sha256", ticket, "hex"), { session, endsSteadyMs: nowMs + WS_TICKET_LIFETIME_MS });
    return ticket;
  }

  /**
   * Consumes a ticket and returns its session; undefined when it is unknown, used or expired, or the session
   * has ended.
   */
  redeem(ticket: string): OperatorSession | undefined {
    const key = hash("sha256", ticket, "hex");
    const row = this.#rows.get(key);
    this.#rows.delete(key);
    if (row === undefined || this.#deps.clock.steadyMs() >= row.endsSteadyMs) return undefined;
    return this.#deps.sessions.isLive(row.session) ? row.session : undefined;
  }
}
