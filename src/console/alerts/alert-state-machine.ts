// The state machine of alerts: conditions in, events out, one alert per key (spec 3.1, 3.3); no I/O.
import type { AlertRecord, AlertType, Severity } from "#wire/webapi/alert.ts";
import { type Alert, alertId, RANKS } from "./alert.ts";
import { ALERT_KINDS, alertKey } from "./alert-kinds.ts";
import { publicRecordOf, recordOf } from "./alert-record.ts";
import type { Condition, Moment, Occurrence } from "./condition.ts";
import { ResolvedAlerts } from "./resolved-alerts.ts";

/** Open alerts about single users that one node may cause, so that false reports do not hide others. */
export const USER_ALERTS_PER_NODE_MAX = 1_000;
/** Open alerts about single users of all nodes, so that the file of alerts stays small. */
export const USER_ALERTS_MAX = 10_000;

/** A change of an alert. "recorded" is a recovery: an info record that is resolved from the start. */
export interface AlertEvent {
  readonly kind: "raised" | "changed" | "resolved" | "recorded";
  readonly alert: AlertRecord;
  /** The form for visitors; undefined when they may not see the alert or its change (spec 5.8.4). */
  readonly public: AlertRecord | undefined;
}

/** The outcome of an operator's request to resolve alerts. Ids. */
export interface Resolution {
  readonly resolved: string[];
  readonly alreadyResolved: string[];
  /** Alerts that cannot be resolved while their condition holds. */
  readonly inForce: string[];
}

/** The state that survives a restart. */
export interface AlertMachineState {
  readonly alerts: readonly Alert[];
  readonly muted: readonly MutedKey[];
}

/** A key whose alert was resolved by hand while its condition held. */
export interface MutedKey {
  readonly key: string;
  readonly type: AlertType;
  /** The alert's severity; only a worse condition raises one again. */
  readonly severity: Severity;
  readonly nodeId?: string;
}

/** All open alerts and the resolved ones that are kept. */
export class AlertStateMachine {
  readonly #open = new Map<string, Alert>();
  readonly #byId = new Map<string, Alert>();
  readonly #resolved: ResolvedAlerts;
  readonly #muted = new Map<string, MutedKey>();
  /** Number of raises by key, for keys with a kept record. */
  readonly #raises = new Map<string, number>();
  /** Open alerts about users by node, and of all nodes. */
  readonly #userAlerts = new Map<string, number>();
  #userAlertCount = 0;
  #notRaised = 0;
  /** Steady time of the last event by key; entries without an open alert are removed by the next expire. */
  readonly #lastSteadyMs = new Map<string, number>();

  constructor(state: AlertMachineState = { alerts: [], muted: [] }, at: Moment = { wallMs: 0, steadyMs: 0 }) {
    this.#resolved = new ResolvedAlerts((alert) => this.#forget(alert));
    for (const muted of state.muted) this.#muted.set(muted.key, muted);
    for (const alert of state.alerts) {
      this.#byId.set(alert.id, alert);
      this.#raises.set(alert.key, Math.max(alert.raisedCount, this.#raises.get(alert.key) ?? 0));
      if (alert.resolved !== undefined) {
        this.#resolved.add(alert, steadyAt(alert.resolved.atMs, at));
        continue;
      }
      this.#putOpen(alert);
      if (alert.lastAtMs !== undefined) this.#lastSteadyMs.set(alert.key, steadyAt(alert.lastAtMs, at));
    }
  }

  /**
   * Alerts about users that the limits kept from being raised (USER_ALERTS_MAX, USER_ALERTS_PER_NODE_MAX).
   */
  get notRaised(): number {
    return this.#notRaised;
  }

  /** All kept alerts, in no order. */
  alerts(): IterableIterator<Alert> {
    return this.#byId.values();
  }

  /** The state from which the machine is made again. */
  state(): AlertMachineState {
    return { alerts: [...this.#byId.values()], muted: [...this.#muted.values()] };
  }

  /** The alert with an id; undefined when none is kept. */
  find(id: string): Alert | undefined {
    return this.#byId.get(id);
  }

  /** The open alert of a key. */
  openAlert(key: string): Alert | undefined {
    return this.#open.get(key);
  }

  /** All open alerts. */
  openAlerts(): IterableIterator<Alert> {
    return this.#open.values();
  }

  /** Keys that were resolved by hand and have not cleared since. */
  mutedKeys(): IterableIterator<MutedKey> {
    return this.#muted.values();
  }

  /** Applies an evaluation's conditions and returns the changes. */
  apply(conditions: Iterable<Condition>, at: Moment): AlertEvent[] {
    const events: AlertEvent[] = [];
    for (const condition of conditions) this.#applyOne(condition, at, events);
    return events;
  }

  /** Applies an event: it counts up the open alert of its key, or raises one. */
  happened(occurrence: Occurrence, at: Moment): AlertEvent[] {
    const { key, level } = occurrence;
    this.#lastSteadyMs.set(key, at.steadyMs);
    const open = this.#open.get(key);
    const count = occurrence.count ?? 1;
    if (open === undefined) return this.#raise(occurrence, level, at, { count, lastAtMs: at.wallMs });
    const severity = RANKS[level] > RANKS[open.severity] ? level : open.severity;
    const raisedCount = countedUp(open.raisedCount, count);
    this.#raises.set(key, raisedCount);
    const { acked: _acked, ...unacked } = open;
    const base = severity === open.severity ? open : unacked;
    return [
      this.#change(
        { ...base, ...factsOf(occurrence), severity, raisedCount, lastAtMs: at.wallMs },
        "changed",
      ),
    ];
  }

  /** Ends alerts about events that did not repeat for long enough, and removes old records. */
  expire(at: Moment): AlertEvent[] {
    const events: AlertEvent[] = [];
    for (const [key, lastMs] of this.#lastSteadyMs) {
      const open = this.#open.get(key);
      if (open === undefined) {
        this.#lastSteadyMs.delete(key);
        continue;
      }
      const { overAfterMs } = ALERT_KINDS[open.type];
      if (overAfterMs !== undefined && at.steadyMs - lastMs >= overAfterMs)
        this.#end(open, undefined, at, events);
    }
    this.#resolved.expire(at.steadyMs);
    return events;
  }

  /**
   * Ends all alerts of keys whose subject is gone, without a record of recovery, because recovery is unknown.
   */
  drop(keys: Iterable<string>, at: Moment): AlertEvent[] {
    const events: AlertEvent[] = [];
    for (const key of keys) {
      this.#muted.delete(key);
      const open = this.#open.get(key);
      if (open !== undefined) events.push(this.#resolve(open, "auto", at));
    }
    return events;
  }

  /**
   * Resolves alerts by hand. Their conditions raise a new alert only after they have cleared once, or at a
   * higher severity (D11). Unknown ids are left out.
   */
  resolve(
    ids: Iterable<string>,
    at: Moment,
  ): { readonly resolution: Resolution; readonly events: AlertEvent[] } {
    const [resolved, alreadyResolved, inForce]: [string[], string[], string[]] = [[], [], []];
    const events: AlertEvent[] = [];
    for (const id of new Set(ids)) {
      const alert = this.#byId.get(id);
      if (alert === undefined) continue;
      if (alert.resolved !== undefined) alreadyResolved.push(id);
      else if (ALERT_KINDS[alert.type].isPermanent === true) inForce.push(id);
      else {
        if (alert.lastAtMs === undefined) this.#mute(alert);
        events.push(this.#resolve(alert, "operator", at));
        resolved.push(id);
      }
    }
    return { resolution: { resolved, alreadyResolved, inForce }, events };
  }

  /**
   * Records that an operator acknowledged an open alert. No change for a resolved one, or one that this
   * operator has acknowledged.
   */
  acknowledge(id: string, by: string, at: Moment): AlertEvent[] {
    const alert = this.#byId.get(id);
    if (alert === undefined || alert.resolved !== undefined || alert.acked?.by === by) return [];
    const event = this.#change({ ...alert, acked: { by, atMs: at.wallMs } }, "changed");
    // Visitors do not see acknowledgements.
    return [{ ...event, public: undefined }];
  }

  #applyOne(condition: Condition, at: Moment, events: AlertEvent[]): void {
    const { key, level } = condition;
    if (level === "hold" || level === "unknown") return;
    const open = this.#open.get(key);
    if (level === "clear") {
      const wasMuted = this.#muted.delete(key);
      if (open !== undefined) this.#end(open, condition, at, events);
      else if (wasMuted) events.push(this.#recordEnd(condition, at));
      return;
    }
    if (open !== undefined) {
      const staysCritical = condition.keepsCritical === true && open.severity === "critical";
      const event = this.#move(open, condition, staysCritical ? "critical" : level);
      if (event !== undefined) events.push(event);
      return;
    }
    const muted = this.#muted.get(key);
    if (muted !== undefined && RANKS[level] <= RANKS[muted.severity]) return;
    this.#muted.delete(key);
    events.push(...this.#raise(condition, level, at, { count: 1 }));
  }

  /** Updates an open alert to its condition's severity: a change of the record, or only of its numbers. */
  #move(open: Alert, condition: Condition, severity: Severity): AlertEvent | undefined {
    if (severity === open.severity) {
      this.#refresh({ ...open, ...factsOf(condition) });
      return undefined;
    }
    // An acknowledgement of a warning does not cover a critical alert.
    const { acked: _acked, ...unacked } = open;
    const base = RANKS[severity] > RANKS[open.severity] ? unacked : open;
    return this.#change({ ...base, ...factsOf(condition), severity }, "changed");
  }

  #raise(
    facts: Omit<Condition, "level">,
    severity: Severity,
    at: Moment,
    { count, ...more }: { readonly count: number; readonly lastAtMs?: number },
  ): AlertEvent[] {
    const { key, type } = facts;
    if (!this.#hasRoom(facts)) {
      this.#notRaised++;
      return [];
    }
    const raisedCount = countedUp(this.#raises.get(key) ?? 0, count);
    this.#raises.set(key, raisedCount);
    const alert = {
      key,
      type,
      severity,
      raisedAtMs: at.wallMs,
      ...factsOf(facts),
      raisedCount,
      isRecovery: false,
      ...more,
    };
    return [this.#change({ ...alert, id: alertId(alert), revision: 0 }, "raised")];
  }

  #hasRoom({ type, nodeId }: { readonly type: AlertType; readonly nodeId?: string }): boolean {
    if (ALERT_KINDS[type].isAboutUser !== true) return true;
    return (
      this.#userAlertCount < USER_ALERTS_MAX &&
      (this.#userAlerts.get(nodeId ?? "") ?? 0) < USER_ALERTS_PER_NODE_MAX
    );
  }

  /** Resolves an alert whose condition is over, and records the recovery (spec 3.1 rule 2). */
  #end(open: Alert, condition: Condition | undefined, at: Moment, events: AlertEvent[]): void {
    events.push(this.#resolve(open, "auto", at));
    const { recovery } = ALERT_KINDS[open.type];
    if (recovery !== undefined) events.push(this.#recordEnd({ ...open, ...condition }, at));
  }

  #recordEnd(facts: Omit<Condition, "level">, at: Moment): AlertEvent {
    const type = ALERT_KINDS[facts.type].recovery ?? facts.type;
    const key = type === facts.type ? facts.key : alertKey(type, facts.nodeId);
    // A node's recovery has a key of its own (spec 3.3), and so a count of its own.
    const raisedCount = Math.max(1, (this.#raises.get(key) ?? 0) + (key === facts.key ? 0 : 1));
    this.#raises.set(key, raisedCount);
    const alert = {
      key,
      type,
      severity: "info",
      raisedAtMs: at.wallMs,
      ...factsOf(facts),
      raisedCount,
      isRecovery: true,
      resolved: { by: "auto", atMs: at.wallMs },
    } as const;
    const kept: Alert = { ...alert, id: alertId(alert), revision: 0 };
    this.#byId.set(kept.id, kept);
    this.#resolved.add(kept, at.steadyMs);
    return { kind: "recorded", alert: recordOf(kept), public: publicRecordOf(kept) };
  }

  #resolve(alert: Alert, by: "auto" | "operator", at: Moment): AlertEvent {
    const resolved: Alert = { ...alert, revision: alert.revision + 1, resolved: { by, atMs: at.wallMs } };
    this.#open.delete(alert.key);
    this.#countUser(alert, -1);
    this.#byId.set(alert.id, resolved);
    this.#resolved.add(resolved, at.steadyMs);
    return { kind: "resolved", alert: recordOf(resolved), public: publicRecordOf(resolved) };
  }

  #change(alert: Alert, kind: "raised" | "changed"): AlertEvent {
    const changed = { ...alert, revision: alert.revision + 1 };
    this.#putOpen(changed);
    return { kind, alert: recordOf(changed), public: publicRecordOf(changed) };
  }

  #mute({ key, type, severity, nodeId }: Alert): void {
    this.#muted.set(key, { key, type, severity, ...(nodeId === undefined ? {} : { nodeId }) });
  }

  #refresh(alert: Alert): void {
    const before = this.#open.get(alert.key);
    if (before !== undefined && before.nodeId !== alert.nodeId) {
      this.#countUser(before, -1);
      this.#countUser(alert, 1);
    }
    this.#open.set(alert.key, alert);
    this.#byId.set(alert.id, alert);
  }

  #putOpen(alert: Alert): void {
    if (!this.#open.has(alert.key)) this.#countUser(alert, 1);
    this.#refresh(alert);
  }

  #countUser({ type, nodeId = "" }: Alert, by: 1 | -1): void {
    if (ALERT_KINDS[type].isAboutUser !== true) return;
    this.#userAlertCount += by;
    const count = (this.#userAlerts.get(nodeId) ?? 0) + by;
    if (count === 0) this.#userAlerts.delete(nodeId);
    else this.#userAlerts.set(nodeId, count);
  }

  #forget(alert: Alert): void {
    this.#byId.delete(alert.id);
    // The count is removed with the last record of its key.
    if (this.#raises.get(alert.key) === alert.raisedCount) this.#raises.delete(alert.key);
  }
}

/** The steady time of a moment that is kept as wall time: now for one that a wall clock has not reached. */
function steadyAt(wallMs: number, at: Moment): number {
  return at.steadyMs - Math.max(0, at.wallMs - wallMs);
}

/** Limits the count to what the file can hold, because the number comes from a node (M-05). */
function countedUp(count: number, by: number): number {
  return Math.min(count + by, Number.MAX_SAFE_INTEGER);
}

/** The facts of a condition; those that it leaves out keep their values. */
function factsOf(
  facts: Omit<Condition, "level">,
): Pick<Alert, "nodeId" | "nodeName" | "username" | "isOfUsers" | "value" | "threshold" | "detail"> {
  const { nodeId, nodeName, username, isOfUsers, value, threshold, detail } = facts;
  return {
    ...(nodeId === undefined ? {} : { nodeId }),
    ...(nodeName === undefined ? {} : { nodeName }),
    ...(username === undefined ? {} : { username }),
    ...(isOfUsers === undefined ? {} : { isOfUsers }),
    ...(value === undefined ? {} : { value }),
    ...(threshold === undefined ? {} : { threshold }),
    ...(detail === undefined ? {} : { detail }),
  };
}
