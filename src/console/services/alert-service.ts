// Evaluates the alert rules after each poll, stores the outcome and notifies listeners (spec 3.1, 6).

import type { Audience } from "#base/audience.ts";
import type { Clock } from "#base/clock.ts";
import type { Logger } from "#base/log.ts";
import type { AlertDetail } from "#console/alerts/alert.ts";
import { alertKey } from "#console/alerts/alert-kinds.ts";
import {
  type AlertCounts,
  type AlertFilter,
  type AlertPage,
  listAlerts,
  passes,
  summarizeAlerts,
} from "#console/alerts/alert-list.ts";
import type { Resolution } from "#console/alerts/alert-state-machine.ts";
import { type AlertListener, AlertStore, momentOf } from "#console/alerts/alert-store.ts";
import type { Condition, Moment, Occurrence } from "#console/alerts/condition.ts";
import { type MetaServerReading, metaServerConditions } from "#console/alerts/metaserver-rule.ts";
import {
  certificateCondition,
  fewestDays,
  nodeConditions,
  offlineCondition,
} from "#console/alerts/node-rules.ts";
import { type HomeOf, QuotaRule } from "#console/alerts/quota-rule.ts";
import { RestartRule } from "#console/alerts/restart-rule.ts";
import { FailureWindow, loginFailures, metaServerAt, SecurityRule } from "#console/alerts/security-rule.ts";
import type { ClusterState, NodeState, PollOutcome, SecurityEvent } from "#console/cluster/cluster-state.ts";
import type { History } from "#console/history/history.ts";
import type { AlertRecord } from "#wire/webapi/alert.ts";
import { GoneNodes } from "./gone-nodes.ts";

/** Dependencies of the service. */
export interface AlertServiceDeps {
  /** The console's data folder, which exists. */
  readonly folder: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly cluster: Pick<ClusterState, "nodes" | "node" | "isStarting" | "onPoll" | "onRound">;
  /** Takes a poll's figures before the service reads them. */
  readonly history: Pick<History, "errorWindow" | "forecastDiskFullDays">;
  /** Home nodes of users, as the metadata store has them; kept fresh by the caller. */
  readonly homeOf?: HomeOf;
  /** Readings of the watched MetaServers; default none. */
  readonly metaServers?: () => readonly MetaServerReading[];
  /** True while the built-in password is in force (T10). */
  readonly isDefaultPassword: () => boolean;
  /** Whole days until the console's own certificate ends; undefined for a console without one. */
  readonly certificateDaysLeft?: () => number;
}

/** Receives the conditions and occurrences of one evaluation round, for notifications. */
export type ConditionListener = (
  conditions: readonly Condition[],
  happened: readonly Occurrence[],
  at: Moment,
) => void;

/** The service. One instance for each console. */
export class AlertService {
  readonly #deps: AlertServiceDeps;
  readonly #store: AlertStore;
  readonly #quotas: QuotaRule;
  readonly #restarts = new RestartRule();
  readonly #security: SecurityRule;
  readonly #logins = new FailureWindow();
  readonly #ends: (() => void)[];
  readonly #conditionListeners = new Set<ConditionListener>();
  readonly #handledListeners = new Set<(key: string) => void>();
  /** Conditions since the last round, by node. */
  #found = new Map<string, Condition[]>();
  #happened: Occurrence[] = [];
  /** Since when each node has answered every poll, on the steady clock. */
  readonly #answeringSinceMs = new Map<string, number>();
  /** Nodes with state in this service. */
  readonly #known = new Set<string>();
  readonly #gone: GoneNodes;

  private constructor(deps: AlertServiceDeps, store: AlertStore) {
    this.#deps = deps;
    this.#store = store;
    this.#security = new SecurityRule(store.securityMarks, () => store.saveMarks());
    this.#quotas = new QuotaRule(nearUsers(store), deps.homeOf);
    this.#gone = new GoneNodes(deps.cluster);
    this.#ends = [
      deps.cluster.onPoll((outcome) => this.#polled(outcome)),
      deps.cluster.onRound(() => this.#round()),
    ];
  }

  /** Reads the saved alerts and begins to evaluate. Throws CORRUPT when a newer version wrote them. */
  static async open(deps: AlertServiceDeps): Promise<AlertService> {
    const store = await AlertStore.open(deps);
    const service = new AlertService(deps, store);
    const { setAsideAs, isPrevious } = store.found;
    if (setAsideAs !== undefined) {
      service.wasReset(
        "admin_alerts.json",
        setAsideAs,
        isPrevious ? "with the generation before it" : "an empty one",
      );
    }
    return service;
  }

  /** Reason of the last failed write of the alerts; undefined after a success. */
  get failure(): string | undefined {
    return this.#store.failure;
  }

  /**
   * Calls back for every change of an alert, once it is on stable storage; the returned function ends that.
   */
  onEvent(listener: AlertListener): () => void {
    return this.#store.onEvent(listener);
  }

  /** Calls back with the conditions of each round. */
  onConditions(listener: ConditionListener): () => void {
    this.#conditionListeners.add(listener);
    return () => this.#conditionListeners.delete(listener);
  }

  /** Calls back with the keys of alerts that an operator has acknowledged or resolved. */
  onHandled(listener: (key: string) => void): () => void {
    this.#handledListeners.add(listener);
    return () => this.#handledListeners.delete(listener);
  }

  /** Raises the alert of an occurrence. Resolves when it is on stable storage. */
  happened(occurrence: Occurrence): Promise<void> {
    return this.#take([occurrence], momentOf(this.#deps.clock));
  }

  /** Ends the alerts of these keys, whose cause is gone. Resolves when that is on stable storage. */
  settled(keys: Iterable<string>): Promise<void> {
    const { machine } = this.#store;
    return this.#store.take(machine.drop(keys, momentOf(this.#deps.clock)));
  }

  /** Raises an alert about a console file that was unreadable and set aside (D24). */
  wasReset(file: string, setAsideAs?: string, began = "an empty one"): void {
    const kept = setAsideAs === undefined ? {} : { kept: setAsideAs };
    const detail = { file, began, ...kept };
    void this.happened({
      key: alertKey("snapshot_reset", file),
      type: "snapshot_reset",
      level: "info",
      detail,
    });
  }

  /** Counts a failed sign-in; the tenth within 15 minutes raises an alert (W-03). */
  loginFailed(address: string): void {
    this.#logins.add(1, address, momentOf(this.#deps.clock));
  }

  /** New attempts that MetaServers have reported, by their addresses. */
  attemptsAt(metaServers: ReadonlyMap<string, readonly SecurityEvent[]>): void {
    const at = momentOf(this.#deps.clock);
    this.#security.keepMetaServers(new Set(metaServers.keys()));
    const happened = [...metaServers].flatMap(([address, events]) =>
      this.#security.occurrences(metaServerAt(address), events, at),
    );
    if (happened.length > 0) void this.#take(happened, at);
  }

  /**
   * Notes that an action holds a node or has just released it: a restart within minutes is expected (D24).
   */
  touched(nodeId: string): void {
    this.#restarts.touched(nodeId, momentOf(this.#deps.clock));
  }

  /** Lists the alerts that an audience may see (D11). */
  list(audience: Audience, filter: AlertFilter, page: AlertPage): { alerts: AlertRecord[]; total: number } {
    return listAlerts(this.#store.shown(), audience, filter, page);
  }

  /** Counts the unresolved alerts that an audience may see (D11). */
  summary(audience: Audience): AlertCounts {
    return summarizeAlerts(this.#store.shown(), audience);
  }

  /**
   * Ids of the alerts that an operator chooses: those named, and for a key its open alert, else its latest.
   */
  idsOf(choice: { readonly ids: readonly string[]; readonly key: string | undefined }): string[] {
    const known = choice.ids.filter((id) => this.#store.machine.find(id) !== undefined);
    if (choice.key === undefined) return known;
    const { key } = choice;
    const open = this.#store.machine.openAlert(key);
    if (open !== undefined) return [...known, open.id];
    const latest = [...this.#store.shown()].find((alert) => alert.key === key && !alert.isRecovery);
    return latest === undefined ? known : [...known, latest.id];
  }

  /**
   * Resolves alerts by hand; resolves when that is on stable storage. Unknown ids are left out. Also returns
   * the keys of those resolved, since the oldest of many are not kept.
   */
  async resolve(ids: readonly string[]): Promise<Resolution & { readonly keys: readonly string[] }> {
    const { machine } = this.#store;
    const { resolution, events } = machine.resolve(ids, momentOf(this.#deps.clock));
    const keys = events.map(({ alert }) => alert.key);
    for (const key of keys) this.#handled(key);
    await this.#store.take(events);
    return { ...resolution, keys };
  }

  /** Resolves by hand all open alerts of a filter, except those that stay in force; returns their keys. */
  async resolveAll(filter: AlertFilter): Promise<readonly string[]> {
    const open = [...this.#store.machine.openAlerts()].filter((alert) => passes(alert, filter));
    return (await this.resolve(open.map(({ id }) => id))).keys;
  }

  /** Records an acknowledgement; returns the ids and keys of open alerts, and the ids of the others. */
  async acknowledge(
    ids: readonly string[],
    by: string,
  ): Promise<{ acked: string[]; resolved: string[]; keys: string[] }> {
    const at = momentOf(this.#deps.clock);
    const { machine } = this.#store;
    const isOpen = (id: string): boolean => machine.find(id)?.resolved === undefined;
    const [acked, resolved] = [ids.filter(isOpen), ids.filter((id) => !isOpen(id))];
    const keys = acked.map((id) => machine.find(id)?.key ?? "");
    for (const key of keys) this.#handled(key);
    await this.#store.take(acked.flatMap((id) => machine.acknowledge(id, by, at)));
    return { acked, resolved, keys };
  }

  /** Resolves when all earlier changes are on stable storage and sent. */
  saved(): Promise<void> {
    return this.#store.take([]);
  }

  /** Ends evaluation and saves everything. */
  async close(): Promise<void> {
    for (const end of this.#ends) end();
    await this.saved();
    await this.#store.close();
  }

  #polled({ node, reading, securityEvents, ...at }: PollOutcome): void {
    if (node.lockedBy !== undefined || (node.maintenanceUntilWallMs ?? 0) > at.wallMs) {
      this.#restarts.touched(node.id, at);
    }
    this.#known.add(node.id);
    const conditions = [this.#offline(node)];
    const happened = this.#security.occurrences(node, securityEvents, at);
    if (reading === undefined) {
      // The round raises its silence.
      this.#answeringSinceMs.delete(node.id);
      this.#found.delete(node.id);
    } else {
      const { history } = this.#deps;
      this.#found.set(node.id, conditions);
      conditions.push(
        ...nodeConditions(node, reading, {
          window: { ...history.errorWindow(node.id), isFull: this.#hasAnsweredAMinute(node.id, at) },
          fullInDays: history.forecastDiskFullDays(node.id),
        }),
        ...this.#quotas.conditions(node, reading),
      );
      const restart = this.#restarts.observe(node, reading, at);
      if (restart !== undefined) happened.push(restart);
    }
    const events = this.#store.machine.apply(conditions, at);
    void this.#store.take(events);
    if (happened.length > 0) void this.#take(happened, at);
  }

  /**
   * Evaluates everything but polls: silent nodes, ended and removed ones, and the console's own conditions.
   */
  #round(): void {
    const { cluster, clock, isDefaultPassword, certificateDaysLeft } = this.#deps;
    const at = momentOf(clock);
    const { machine } = this.#store;
    const conditions: Condition[] = cluster
      .nodes()
      .filter((node) => node.stale)
      .map((node) => this.#offline(node));
    const level = isDefaultPassword() ? "critical" : "clear";
    conditions.push({ key: alertKey("default_password"), type: "default_password", level });
    conditions.push(certificateCondition("console", certificateDaysLeft?.()));
    conditions.push(...this.#metaServers(at));
    const events = [
      ...machine.apply(conditions, at),
      ...machine.expire(at),
      ...machine.drop(this.#orphans(at), at),
    ];
    void this.#store.take(events);
    this.#forgetGone();
    const failures = this.#logins.take(at);
    if (failures !== undefined) void this.#take([loginFailures(failures)], at);
    const all = [...this.#found.values()].flat().concat(conditions);
    const happened = this.#happened;
    this.#found = new Map();
    this.#happened = [];
    for (const listener of this.#conditionListeners) listener(all, happened, at);
  }

  #take(happened: readonly Occurrence[], at: Moment): Promise<void> {
    this.#happened.push(...happened);
    return this.#store.take(happened.flatMap((occurrence) => this.#store.machine.happened(occurrence, at)));
  }

  #offline(node: NodeState): Condition {
    // What an earlier console knew of the node is kept until it answers.
    const told = this.#store.machine.openAlert(alertKey("node_offline", node.id))?.detail ?? {};
    const lastSeen = numberIn(told, "last_seen") ?? 0;
    const nowUnix = Math.floor(this.#deps.clock.wallMs() / 1000);
    return offlineCondition(node, {
      isOffline: node.status === "offline",
      isStale: node.stale,
      lastSeen: Math.floor(node.lastGoodWallMs / 1000) || lastSeen,
      reason: node.pollError,
      users: node.lastGood === undefined ? numberIn(told, "users") : node.lastGood.usersAssignedCount,
      awaySeconds: lastSeen > 0 ? Math.max(0, nowUnix - lastSeen) : undefined,
    });
  }

  #metaServers({ wallMs }: Moment): Condition[] {
    const { machine } = this.#store;
    const readings = this.#deps.metaServers?.() ?? [];
    const standing = [...machine.openAlerts(), ...machine.mutedKeys()].map(({ key }) => key);
    const found = metaServerConditions(readings, Math.floor(wallMs / 1_000), {
      sinceUnix: (key) => machine.openAlert(key)?.detail?.["last_seen"],
      standing,
    });
    const days = readings.map(({ certDaysLeft }) => certDaysLeft);
    // Those without the authority's folder say nothing of its end.
    const ends = readings.flatMap(({ authorityDaysLeft }) => authorityDaysLeft ?? []);
    return [
      ...found,
      certificateCondition("metaserver", fewestDays(days)),
      certificateCondition("authority", readings.length > 0 && ends.length === 0 ? null : fewestDays(ends)),
    ];
  }

  #hasAnsweredAMinute(nodeId: string, { steadyMs }: Moment): boolean {
    const sinceMs = this.#answeringSinceMs.get(nodeId);
    if (sinceMs === undefined) this.#answeringSinceMs.set(nodeId, steadyMs);
    return sinceMs !== undefined && steadyMs - sinceMs >= 60_000;
  }

  /** Keys of nodes that are gone. */
  #orphans(at: Moment): string[] {
    const { machine } = this.#store;
    const standing = [...machine.openAlerts(), ...machine.mutedKeys()].flatMap(({ key, nodeId }) =>
      nodeId === undefined ? [] : [{ key, nodeId }],
    );
    const gone = this.#gone.of(new Set(standing.map(({ nodeId }) => nodeId)), at);
    return standing.flatMap(({ key, nodeId }) => (gone.has(nodeId) ? [key] : []));
  }

  /** Forgets the state of removed nodes. */
  #forgetGone(): void {
    for (const id of this.#known) {
      if (this.#deps.cluster.node(id) !== undefined) continue;
      this.#known.delete(id);
      this.#answeringSinceMs.delete(id);
      this.#quotas.forget(id);
      this.#restarts.forget(id);
      this.#security.forget(id);
    }
  }

  #handled(key: string): void {
    for (const listener of this.#handledListeners) listener(key);
  }
}

function numberIn(detail: AlertDetail, name: string): number | null {
  const value = detail[name];
  return typeof value === "number" ? value : null;
}

/** Users whose quota alert was open, or resolved by hand, when the console stopped. */
function nearUsers(store: AlertStore): { username: string; nodeId: string }[] {
  const prefix = alertKey("quota_exceeded", "");
  return [...store.machine.openAlerts(), ...store.machine.mutedKeys()]
    .filter(({ type, nodeId }) => type === "quota_exceeded" && nodeId !== undefined)
    .map(({ key, nodeId = "" }) => ({ username: key.slice(prefix.length), nodeId }));
}
