// Turns nodes' reports of attempts into occurrences, each once, also over restarts (D22, W-03).
import { SECURITY_EVENTS_KEPT } from "#base/limits.ts";
import type { SecurityEventType } from "#base/security-event.ts";
import { alertKey } from "./alert-kinds.ts";
import type { Moment, Occurrence } from "./condition.ts";
import type { NodeName } from "./node-rules.ts";

/** Events of one node that are remembered: twice as many as a list has, so that none of a list is forgotten. */
const SECURITY_EVENTS_SEEN: number = 2 * SECURITY_EVENTS_KEPT;
/** Failed sign-ins to the console within the window below that raise an alert (W-03). */
const LOGIN_FAILURES_ALERT = 10;
/** The window in which failed sign-ins are counted together. */
const LOGIN_FAILURES_WINDOW_MS: number = 15 * 60_000;

/** An event in a node's report; its count grows while it repeats. */
export interface ReportedEvent {
  /** Time-ordered. */
  readonly id: string;
  readonly type: SecurityEventType;
  readonly username: string | undefined;
  readonly ipBound: string | undefined;
  readonly ipSeen: string | undefined;
  readonly count: number;
}

/** Where attempts were made: at a node, or at a MetaServer. */
export type AttemptPlace = NodeName & { readonly isMetaServer?: true };

/** Prefix of a MetaServer's address; no node's id has a colon. */
const METASERVER = "metaserver:";

/** The place of a MetaServer at an address. */
export function metaServerAt(address: string): AttemptPlace {
  return { id: METASERVER + address, name: `the MetaServer ${address}`, isMetaServer: true };
}

/** Remembers the reported attempts. */
export class SecurityRule {
  readonly #seen = new Map<string, Map<string, number>>();
  /**
   * Last counted event of each node, kept with the alerts: after a restart those before it in the node's list
   * are not reported again. Ids do not decide, since a node's clock may be set back.
   */
  readonly #marks: Map<string, string>;
  readonly #passwords = new Map<string, FailureWindow>();

  readonly #onMarked: () => void;

  /** Uses and updates the map that is kept with the alerts, and tells of each update. */
  constructor(marks: Map<string, string>, onMarked: () => void = () => undefined) {
    this.#marks = marks;
    this.#onMarked = onMarked;
  }

  /** The new events at a place. */
  occurrences(node: AttemptPlace, events: readonly ReportedEvent[], at: Moment): Occurrence[] {
    const found: Occurrence[] = [];
    const seen = this.#seen.get(node.id);
    const mark = this.#marks.get(node.id);
    // The first list after a start has the events of before, too, in the order in which they came.
    const upTo = seen === undefined ? events.findIndex(({ id }) => id === mark) : -1;
    let last = mark;
    for (const [index, event] of events.entries()) {
      if (seen?.has(event.id) !== true) last = event.id;
      const fresh = this.#fresh(node.id, event, index <= upTo);
      if (fresh <= 0) continue;
      if (event.type === "admin_hash_failed") this.#passwordsOf(node.id).add(fresh, event.ipSeen, at);
      else found.push(...occurrenceOf(node, event, fresh));
    }
    if (last !== undefined && last !== mark) {
      this.#marks.set(node.id, last);
      this.#onMarked();
    }
    const failures = this.#passwords.get(node.id)?.take(at);
    if (failures !== undefined) found.push(loginFailures(failures, node));
    return found;
  }

  /** Forgets all MetaServers but these. */
  keepMetaServers(addresses: ReadonlySet<string>): void {
    for (const id of [...this.#marks.keys(), ...this.#seen.keys()])
      if (id.startsWith(METASERVER) && !addresses.has(id.slice(METASERVER.length))) this.forget(id);
  }

  /** Forgets a removed node. */
  forget(nodeId: string): void {
    this.#seen.delete(nodeId);
    this.#marks.delete(nodeId);
    this.#passwords.delete(nodeId);
  }

  /** Number of new attempts in an event; none in one that was reported before a restart. */
  #fresh(nodeId: string, event: ReportedEvent, isOld: boolean): number {
    let seen = this.#seen.get(nodeId);
    if (seen === undefined) {
      seen = new Map();
      this.#seen.set(nodeId, seen);
    }
    const before = seen.get(event.id);
    seen.delete(event.id);
    seen.set(event.id, event.count);
    const oldest = seen.keys().next();
    if (seen.size > SECURITY_EVENTS_SEEN && oldest.done !== true) seen.delete(oldest.value);
    if (before === undefined && isOld) return 0;
    return event.count - (before ?? 0);
  }

  #passwordsOf(nodeId: string): FailureWindow {
    const known = this.#passwords.get(nodeId);
    if (known !== undefined) return known;
    const window = new FailureWindow();
    this.#passwords.set(nodeId, window);
    return window;
  }
}

/** The failures in a window. */
export interface Failures {
  readonly count: number;
  readonly lastAddress: string | undefined;
}

/** Failed sign-ins of the last 15 minutes; reported from the tenth on. */
export class FailureWindow {
  #attempts: { readonly atMs: number; count: number }[] = [];
  #hasNews = false;
  #lastAddress: string | undefined;

  /** Counts failures. Those of one second are one entry, so that a flood stays small. */
  add(count: number, address: string | undefined, at: Moment): void {
    const last = this.#attempts.at(-1);
    if (last !== undefined && at.steadyMs - last.atMs < 1000) last.count += count;
    else this.#attempts.push({ atMs: at.steadyMs, count });
    this.#hasNews = true;
    this.#lastAddress = address;
  }

  /** The failures of the window when there are ten or more of them and some are new. */
  take(at: Moment): Failures | undefined {
    this.#attempts = this.#attempts.filter(({ atMs }) => at.steadyMs - atMs < LOGIN_FAILURES_WINDOW_MS);
    const count = this.#attempts.reduce((sum, attempt) => sum + attempt.count, 0);
    if (!this.#hasNews || count < LOGIN_FAILURES_ALERT) return undefined;
    this.#hasNews = false;
    return { count, lastAddress: this.#lastAddress };
  }
}

/** Too many failed sign-ins: to the console, or with the administrator's password to a node. */
export function loginFailures({ count, lastAddress }: Failures, node?: NodeName): Occurrence {
  return {
    key: alertKey("login_failures", node?.id),
    type: "login_failures",
    level: "warning",
    ...aboutNode(node),
    value: count,
    threshold: LOGIN_FAILURES_ALERT,
    detail: lastAddress === undefined ? {} : { address: lastAddress },
  };
}

function occurrenceOf(node: AttemptPlace, event: ReportedEvent, count: number): Occurrence[] {
  const detail = {
    ...(event.ipBound === undefined ? {} : { ip_bound: event.ipBound }),
    ...(event.ipSeen === undefined ? {} : { ip_seen: event.ipSeen }),
    ...(node.isMetaServer === true ? { server: node.name } : {}),
  };
  const rest = { ...aboutNode(node), value: event.count, count, detail };
  const { type, username } = event;
  if (type === "mock_token") return [{ key: alertKey(type, node.id), type, level: "critical", ...rest }];
  if (type === "ip_mismatch") {
    const user = username === undefined ? {} : { username };
    return [{ key: alertKey(type, username ?? node.id), type, level: "warning", ...rest, ...user }];
  }
  // A refused unknown certificate raises no alert, because every port scan causes one; the node's audit log
  // has a line.
  return [];
}

function aboutNode(node: AttemptPlace | undefined): { readonly nodeId?: string; readonly nodeName?: string } {
  return node === undefined || node.isMetaServer === true ? {} : { nodeId: node.id, nodeName: node.name };
}
