// Finds what is new in a node's list of security events, which may contain false data (decision D22).
import { isIP } from "node:net";
import { parse64 } from "#base/json64.ts";
import { SECURITY_EVENTS_KEPT } from "#base/limits.ts";
import { canonicalUsername } from "#base/names.ts";
import { SECURITY_EVENT_TYPES } from "#base/security-event.ts";
import type { SecurityEvent } from "./cluster-state.ts";
import { PollError } from "./poll-error.ts";

const EVENT_ID = /^[0-9A-Za-z-]{1,64}$/;

/** One node's events, poll after poll. */
export class SecurityEventFeed {
  /** Counts by id, from the node's last list. */
  #shown: ReadonlyMap<string, number> = new Map();

  /**
   * The events that are new or have a higher count, oldest first. Invalid entries are skipped. Throws
   * PollError or SyntaxError when the body is no list of at most 100 events.
   */
  take(body: Buffer): readonly SecurityEvent[] {
    const list = (parse64(body.toString("utf8")) as { events?: unknown } | null)?.events;
    if (!Array.isArray(list) || list.length > SECURITY_EVENTS_KEPT) {
      throw new PollError("the node's list of security events is none");
    }
    const shown = new Map<string, number>();
    const news: SecurityEvent[] = [];
    for (const item of list as readonly unknown[]) {
      const event = toEvent(item);
      if (event === undefined) continue;
      shown.set(event.id, event.count);
      if (event.count > (this.#shown.get(event.id) ?? 0)) news.push(event);
    }
    this.#shown = shown;
    return news;
  }
}

function toEvent(item: unknown): SecurityEvent | undefined {
  if (item === null || typeof item !== "object") return undefined;
  const { id, ts, type, fatal, username, ip_bound, ip_seen, count } = item as Readonly<
    Record<string, unknown>
  >;
  const known = SECURITY_EVENT_TYPES.find((name) => name === type);
  if (known === undefined || typeof id !== "string" || !EVENT_ID.test(id)) return undefined;
  if (!isCount(ts) || !isCount(count) || count === 0) return undefined;
  return {
    id,
    ts,
    type: known,
    fatal: fatal === true,
    username: toUsername(username),
    ipBound: toAddress(ip_bound),
    ipSeen: toAddress(ip_seen),
    count,
  };
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}

function toUsername(value: unknown): string | undefined {
  try {
    return typeof value === "string" ? canonicalUsername(value) : undefined;
  } catch {
    return undefined;
  }
}

function toAddress(value: unknown): string | undefined {
  return typeof value === "string" && isIP(value) !== 0 && !value.includes("%") ? value : undefined;
}
