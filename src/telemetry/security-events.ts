// The last security events of this node, for GET {metrics_url}/security-events (decision D22).
import type { Clock } from "#base/clock.ts";
import { SECURITY_EVENTS_KEPT } from "#base/limits.ts";
import type { Random } from "#base/random.ts";
import type { SecurityEventFacts, SecurityEventType } from "#base/security-event.ts";
import { ulid } from "#base/ulid.ts";

/** One event as the console reads it. */
export interface SecurityEvent {
  readonly id: string;
  /** Wall time in unix seconds. */
  readonly ts: number;
  readonly type: SecurityEventType;
  readonly fatal: boolean;
  readonly username: string | null;
  readonly ip_bound: string | null;
  readonly ip_seen: string | null;
  readonly count: number;
}

/** Keeps the last 100 events, oldest dropped first (decision D22). */
export class SecurityEvents {
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #events: SecurityEvent[] = [];

  constructor(deps: { clock: Clock; random: Random }) {
    this.#clock = deps.clock;
    this.#random = deps.random;
  }

  /** Adds an event and returns it as it is kept, so that the caller can log it. */
  record(facts: SecurityEventFacts): SecurityEvent {
    const event: SecurityEvent = {
      id: ulid(this.#clock, this.#random),
      ts: Math.floor(this.#clock.wallMs() / 1000),
      type: facts.type,
      fatal: facts.fatal ?? false,
      username: facts.username ?? null,
      ip_bound: facts.ipBound ?? null,
      ip_seen: facts.ipSeen ?? null,
      count: facts.count ?? 1,
    };
    this.#events.push(event);
    if (this.#events.length > SECURITY_EVENTS_KEPT) this.#events.shift();
    return event;
  }

  /** The events, oldest first. */
  list(): readonly SecurityEvent[] {
    return [...this.#events];
  }
}
