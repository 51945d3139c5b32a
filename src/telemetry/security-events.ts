// The last security events of this node, for GET {metrics_url}/security-events (decision D22).
import type { Clock } from "#base/clock.ts";
import { SECURITY_EVENTS_KEPT } from "#base/limits.ts";
import { networkOf } from "#base/network.ts";
import type { Random } from "#base/random.ts";
import type { SecurityEventFacts, SecurityEventType } from "#base/security-event.ts";
import { ulid } from "#base/ulid.ts";

/**
 * Repeated attempts from one place within this time are one event, so that a flood cannot evict the others.
 */
const MERGE_WITHIN_MS = 10 * 60_000;

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

interface NumberedEvent {
  event: SecurityEvent;
  /** The place of its origin, as rate limits count places: a single machine has a whole /64 of addresses. */
  readonly network: string;
  readonly firstAtMs: number;
}

/** Keeps the last 100 events, oldest dropped first (decision D22). */
export class SecurityEvents {
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #kept: NumberedEvent[] = [];
  #total = 0;

  constructor(deps: { clock: Clock; random: Random }) {
    this.#clock = deps.clock;
    this.#random = deps.random;
  }

  /** Records since the start: while this number stays, the list is the same. */
  get total(): number {
    return this.#total;
  }

  /**
   * Adds an event, or counts up one of the same type, user, bound address and place that began less than ten
   * minutes ago. Returns the kept event for the log: a new one has the reported count.
   */
  record(facts: SecurityEventFacts): SecurityEvent {
    this.#total++;
    const nowMs = this.#clock.steadyMs();
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
    const network = networkOf(facts.ipSeen ?? "");
    const same = this.#kept.find(
      (kept) =>
        nowMs - kept.firstAtMs < MERGE_WITHIN_MS &&
        kept.network === network &&
        isSameAttempt(kept.event, event),
    );
    if (same !== undefined) {
      same.event = { ...same.event, count: same.event.count + event.count };
      return same.event;
    }
    this.#kept.push({ event, network, firstAtMs: nowMs });
    if (this.#kept.length > SECURITY_EVENTS_KEPT) this.#kept.shift();
    return event;
  }

  /** The events, oldest first. */
  list(): readonly SecurityEvent[] {
    return this.#kept.map((kept) => kept.event);
  }
}

function isSameAttempt(a: SecurityEvent, b: SecurityEvent): boolean {
  return a.type === b.type && a.fatal === b.fatal && a.username === b.username && a.ip_bound === b.ip_bound;
}
