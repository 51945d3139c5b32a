// Decides which notifications are sent and when: each key's state, mutes and groups (decision D11). No I/O.
import type { AlertType } from "#wire/webapi/alert.ts";
import type { MUTE_REASONS } from "#wire/webapi/notification.ts";
import type { Condition, Moment, Occurrence } from "./condition.ts";
import type { Notice, NotificationAlert } from "./notification.ts";
import { type Group, type GroupLabel, NotificationGroups } from "./notification-groups.ts";
import { HAPPENING, NOTIFICATION_RULES, TOLD_OF_ABSENT_NODES } from "./notification-rules.ts";
import {
  afterChange,
  afterReading,
  afterTime,
  CALM,
  isCalm,
  isWorse,
  type NotificationLevel,
  type Reading,
  STEADY,
} from "./notification-state.ts";
import type { SilenceLabels } from "./silence-store.ts";
import {
  defined,
  isBeyondAck,
  newcomer,
  noteMilder,
  noticesOf,
  notificationAlertOf,
  type StoredNotificationAlert,
  type StoredNotifications,
  type Subject,
  subjectOf,
  type TrackedAlert,
  trackedAgain,
  usersOf,
  worseOf,
} from "./tracked-alert.ts";

/** Time after a start during which nothing is sent (decision D11). */
const NOTIFICATION_START_HOLD_MS = 30_000;
/** Keys that are watched at once; further ones are counted and not sent until others have cleared. */
export const NOTIFICATION_KEYS_MAX = 5_000;
/** Those of them that are about single users: however many quotas are full, a node's alert is sent. */
export const NOTIFICATION_USER_KEYS_MAX = 2_500;

/** Why an alert is not sent now. */
export type MuteReason = (typeof MUTE_REASONS)[number];

/** What the service needs. */
export interface NotificationServiceOptions {
  readonly groupBy: readonly GroupLabel[];
  readonly groupMs: number;
  readonly repeatMs: number;
  readonly startedSteadyMs: number;
  readonly isSilenced: (labels: SilenceLabels) => boolean;
  readonly isMaintained: (type: AlertType, nodeId: string | undefined) => boolean;
}

type News = "raised" | "worse" | "flapping" | "over";

/** One alert as the service shows it to operators. */
export interface ServiceAlert {
  readonly tracked: Pick<TrackedAlert, "key" | "type" | "subject" | "startsAtMs" | "isAcked">;
  readonly level: "warning" | "critical";
  readonly toldAtMs: number | undefined;
  readonly mutedBy: MuteReason | undefined;
}

/** The service. `observe` takes conditions; `tick` returns the messages that are due. */
export class NotificationService {
  readonly #options: NotificationServiceOptions;
  readonly #tracked = new Map<string, TrackedAlert>();
  /** Number of tracked alerts about single users. */
  #userKeys = 0;
  readonly #groups: NotificationGroups;
  /** Nodes that do not answer, which mutes all their other alerts. */
  readonly #down = new Set<string>();
  /** Events of the start and those that an earlier run has not told: they wait for the end of the hold. */
  readonly #held = new Map<string, Occurrence>();
  #unwatched = 0;

  constructor(options: NotificationServiceOptions) {
    this.#options = options;
    this.#groups = new NotificationGroups(options.groupBy);
  }

  /**
   * Bad readings of the last round that were ignored because of NOTIFICATION_KEYS_MAX and its part for users.
   */
  get unwatched(): number {
    return this.#unwatched;
  }

  /** Takes an evaluation's conditions and the events since the last one. */
  observe(conditions: readonly Condition[], occurrences: readonly Occurrence[], at: Moment): void {
    this.#unwatched = 0;
    const heard = new Set<string>();
    for (const condition of conditions) {
      const { level } = condition;
      heard.add(condition.key);
      if (level === "hold" || level === "unknown") continue;
      this.#read(condition, { level, value: condition.value }, at);
      if (condition.type === "node_offline") this.#noteNode(condition);
    }
    const happened = new Set<string>();
    for (const occurrence of this.#due(occurrences, at)) {
      happened.add(occurrence.key);
      // Muted events are never sent, because they are over before the mute is.
      if (occurrence.level === "info" || this.#outerMute(occurrence, occurrence.level) !== undefined)
        continue;
      this.#read(occurrence, occurrence, at, true);
    }
    for (const tracked of this.#tracked.values()) {
      const isSilent = tracked.isHappening
        ? !happened.has(tracked.key)
        : NOTIFICATION_RULES[tracked.type].clearComesOnce === true &&
          tracked.watch.underWarning !== undefined &&
          !heard.has(tracked.key);
      if (isSilent) this.#step(tracked, { level: "clear" }, at);
    }
  }

  /** An event has no later reading that would raise it after the start's hold, so it waits for its end. */
  #due(occurrences: readonly Occurrence[], at: Moment): readonly Occurrence[] {
    if (!this.#isStarting(at)) {
      const due = [...this.#held.values(), ...occurrences];
      this.#held.clear();
      return due;
    }
    for (const occurrence of occurrences) {
      const { key, level } = occurrence;
      if (level === "info" || this.#held.get(key)?.level === "critical") continue;
      if (this.#held.size < NOTIFICATION_KEYS_MAX || this.#held.has(key)) this.#held.set(key, occurrence);
      else this.#unwatched++;
    }
    return [];
  }

  #isStarting({ steadyMs }: Moment): boolean {
    return steadyMs - this.#options.startedSteadyMs < NOTIFICATION_START_HOLD_MS;
  }

  /**
   * Records an operator's acknowledgement: no repeats until the alert becomes worse. The console shows an
   * alert before its first message, which is sent all the same.
   */
  acked(key: string): boolean {
    const tracked = this.#tracked.get(key);
    if (tracked === undefined || tracked.isAcked) return false;
    if (tracked.told === undefined && isCalm(tracked.watch)) return false;
    tracked.isAcked = true;
    noteMilder(tracked);
    return true;
  }

  /**
   * Ends the alert of a key that is no longer evaluated. With isGone its subject has left the cluster, and
   * whether it is well again nobody knows.
   */
  forget(key: string, at: Moment, isGone = false): void {
    const tracked = this.#tracked.get(key);
    if (tracked === undefined || tracked.watch.level === "none") return;
    tracked.watch = CALM;
    tracked.endsAtMs = at.wallMs;
    if (tracked.told === undefined) tracked.isAcked = false;
    if (isGone) tracked.subject = { ...tracked.subject, detail: { ...tracked.subject.detail, gone: 1 } };
    if (tracked.type === "node_offline" && tracked.subject.nodeId !== undefined) {
      this.#down.delete(tracked.subject.nodeId);
    }
  }

  /** The nodes that open alerts are about. */
  nodeIds(): ReadonlySet<string> {
    return new Set(
      [...this.#tracked.values()].flatMap(({ subject: { nodeId }, watch }) =>
        nodeId === undefined || watch.level === "none" ? [] : [nodeId],
      ),
    );
  }

  /** Ends all alerts of a node that is gone. */
  forgetNode(nodeId: string, at: Moment): void {
    for (const { key, subject } of this.#tracked.values())
      if (subject.nodeId === nodeId) this.forget(key, at, true);
    this.#down.delete(nodeId);
  }

  /** Returns the messages that are due and marks them as sent. Called about once a second. */
  tick(at: Moment): Notice[] {
    if (this.#isStarting(at)) return [];
    const byGroup = new Map<string, TrackedAlert[]>();
    for (const tracked of this.#tracked.values()) {
      this.#age(tracked, at);
      if (tracked.told === undefined && tracked.flaps === STEADY && isCalm(tracked.watch)) {
        this.#tracked.delete(tracked.key);
        this.#userKeys -= usersOf(tracked);
        continue;
      }
      const name = this.#groups.nameOf(tracked);
      const members = byGroup.get(name);
      if (members === undefined) byGroup.set(name, [tracked]);
      else members.push(tracked);
    }
    this.#groups.keepOnly(byGroup);
    return [...byGroup].flatMap(([name, members]) => this.#tickGroup(name, members, at));
  }

  /** Every open alert, for operators. */
  alerts(at: Moment): ServiceAlert[] {
    const isStarting = this.#isStarting(at);
    return [...this.#tracked.values()].flatMap((tracked) => {
      const { level } = tracked.watch;
      if (level === "none") return [];
      const mutedBy = isStarting ? "starting" : this.#muteOf(tracked);
      return [{ tracked, level, toldAtMs: tracked.told?.atWallMs, mutedBy }];
    });
  }

  /** The state that survives a restart: what was sent, and when; and events that are still to be sent. */
  kept(at: Moment): StoredNotifications {
    const alerts = [...this.#tracked.values()].flatMap((tracked): StoredNotificationAlert[] => {
      const { key, type, isHappening, subject, told, startsAtMs, isAcked } = tracked;
      return told === undefined ? [] : [{ key, type, isHappening, ...subject, told, startsAtMs, isAcked }];
    });
    const untold = [...this.#tracked.values()].flatMap(({ key, type, isHappening, subject, told, watch }) =>
      !isHappening || told !== undefined || watch.level === "none"
        ? []
        : [{ key, type, level: watch.level, ...subject }],
    );
    const held = [...this.#held.values()].map(({ key, type, level, ...fact }) => ({
      key,
      type,
      level: worseOf(level === "info" ? "none" : level, undefined),
      ...subjectOf(fact),
    }));
    return { alerts, groups: this.#groups.kept(at), untold: [...untold, ...held] };
  }

  /** Restores what an earlier run sent: alerts stay open until readings clear them. */
  restore(kept: StoredNotifications, at: Moment): void {
    for (const stored of kept.alerts) this.#track(trackedAgain(stored, at));
    for (const { key, type, level, ...subject } of kept.untold) {
      this.#held.set(key, { key, type, level, ...defined(subject) });
    }
    this.#groups.restore(kept.groups, at);
  }

  #read(fact: Condition | Occurrence, reading: Reading, at: Moment, isHappening = false): void {
    const known = this.#tracked.get(fact.key);
    const isBad = reading.level === "warning" || reading.level === "critical";
    if (known === undefined && !isBad) return;
    if (known === undefined && !this.#hasRoom(fact)) {
      this.#unwatched++;
      return;
    }
    const tracked = known ?? newcomer(fact, isHappening);
    if (known === undefined) this.#track(tracked);
    if (isBad) {
      tracked.subject = subjectOf(fact);
      tracked.groupName = undefined;
    }
    const before = tracked.watch.level;
    this.#step(tracked, reading, at);
    // The message about the end contains the value of the clear reading.
    const isOver = before !== "none" && tracked.watch.level === "none";
    if (isOver) tracked.subject = { ...tracked.subject, ...subjectOf(fact) };
  }

  #track(tracked: TrackedAlert): void {
    this.#tracked.set(tracked.key, tracked);
    this.#userKeys += usersOf(tracked);
  }

  #hasRoom(fact: Pick<Condition, "type">): boolean {
    if (usersOf(fact) > 0 && this.#userKeys >= NOTIFICATION_USER_KEYS_MAX) return false;
    // A version before, which knew no such part, may have left more of them than that.
    const surplus = Math.max(0, this.#userKeys - NOTIFICATION_USER_KEYS_MAX);
    return this.#tracked.size - surplus < NOTIFICATION_KEYS_MAX;
  }

  #step(tracked: TrackedAlert, reading: Reading, at: Moment): void {
    const before = tracked.watch;
    const mayRaise = !this.#isStarting(at);
    const rule = tracked.isHappening ? HAPPENING : NOTIFICATION_RULES[tracked.type];
    tracked.watch = afterReading(before, reading, rule, { steadyMs: at.steadyMs, mayRaise });
    const { level } = tracked.watch;
    if (tracked.told === undefined && isBeyondAck(before, tracked.watch)) tracked.isAcked = false;
    if (tracked.told === undefined && before.level === "none" && before.overWarning === undefined) {
      tracked.startsAtMs = at.wallMs;
    }
    if (level === before.level) return;
    if (level === "none") tracked.endsAtMs = at.wallMs;
    if (tracked.flaps.unstableMs !== undefined || this.#muteOf(tracked) === undefined) {
      tracked.flaps = afterChange(tracked.flaps, isWorse(before.level, level), at.steadyMs);
    }
  }

  #noteNode({ key, nodeId, level }: Condition): void {
    if (nodeId === undefined) return;
    const standing = this.#tracked.get(key)?.watch.level ?? "none";
    if (level === "clear" && standing === "none") this.#down.delete(nodeId);
    else this.#down.add(nodeId);
  }

  #age(tracked: TrackedAlert, at: Moment): void {
    tracked.flaps = afterTime(tracked.flaps, at.steadyMs);
    if (tracked.told?.isFlapping === true && tracked.flaps.unstableMs === undefined) {
      tracked.told.isFlapping = false;
    }
  }

  #tickGroup(name: string, members: readonly TrackedAlert[], at: Moment): Notice[] {
    const group = this.#groups.of(name, members);
    const news = members.flatMap((tracked) => {
      const what = this.#newsOf(tracked);
      return what === undefined ? [] : [{ tracked, what }];
    });
    if (news.length === 0) {
      group.dueMs = undefined;
      return this.#repeat(group, members, at);
    }
    group.dueMs ??= at.steadyMs + this.#options.groupMs;
    if (at.steadyMs < group.dueMs) return [];
    group.dueMs = undefined;
    group.lastSentMs = at.steadyMs;
    const told = news.map(({ tracked, what }) => this.#tell(tracked, what, at));
    const fresh = new Set(news.map(({ tracked }) => tracked));
    const others = this.#standing(members.filter((each) => !fresh.has(each)));
    const standing = others.map((tracked) => notificationAlertOf(tracked, "standing"));
    return noticesOf(group.labels, told, standing);
  }

  #repeat(group: Group, members: readonly TrackedAlert[], at: Moment): Notice[] {
    if (group.lastSentMs === undefined || at.steadyMs - group.lastSentMs < this.#options.repeatMs) return [];
    const repeated = this.#standing(members.filter(({ isAcked }) => !isAcked));
    if (repeated.length === 0) return [];
    group.lastSentMs = at.steadyMs;
    for (const tracked of repeated) noteMilder(tracked);
    const told = repeated.map((tracked) => notificationAlertOf(tracked, "repeat"));
    return noticesOf(group.labels, told, []);
  }

  /** The open alerts that were sent, without muted ones. */
  #standing(members: readonly TrackedAlert[]): TrackedAlert[] {
    return members
      .filter((tracked) => tracked.told !== undefined && tracked.watch.level !== "none")
      .filter((tracked) => this.#muteOf(tracked) === undefined);
  }

  /** The news of an alert that may be sent. */
  #newsOf(tracked: TrackedAlert): News | undefined {
    const { told, flaps, watch } = tracked;
    if (flaps.unstableMs !== undefined) {
      return told?.isFlapping === true || this.#muteOf(tracked) !== undefined ? undefined : "flapping";
    }
    // A sent alert's end is always sent, even while muted.
    if (watch.level === "none") return told === undefined ? undefined : "over";
    if (told !== undefined && !isWorse(told.level, watch.level)) return undefined;
    if (this.#muteOf(tracked) !== undefined) return undefined;
    return told === undefined ? "raised" : "worse";
  }

  #tell(tracked: TrackedAlert, what: News, at: Moment): NotificationAlert {
    if (what === "over") {
      const alert = notificationAlertOf(tracked, what);
      tracked.told = undefined;
      tracked.isAcked = false;
      return alert;
    }
    const level = worseOf(tracked.watch.level, tracked.told?.level);
    const worst = worseOf(level, tracked.told?.worst);
    tracked.told = { level, worst, atWallMs: at.wallMs, isFlapping: what === "flapping" };
    if (what !== "raised") tracked.isAcked = false;
    return notificationAlertOf(tracked, what);
  }

  #muteOf(tracked: TrackedAlert): Exclude<MuteReason, "starting"> | undefined {
    if (tracked.told?.isFlapping === true) return "flapping";
    return this.#outerMute({ ...tracked.subject, type: tracked.type }, tracked.watch.level);
  }

  #outerMute(
    { type, nodeId, username }: Pick<TrackedAlert, "type"> & Subject,
    level: NotificationLevel,
  ): "silence" | "node_offline" | "maintenance" | undefined {
    if (!TOLD_OF_ABSENT_NODES.has(type) && nodeId !== undefined && this.#down.has(nodeId))
      return "node_offline";
    if (this.#options.isMaintained(type, nodeId)) return "maintenance";
    const labels = { type, severity: level, ...defined({ node_id: nodeId, username }) };
    return this.#options.isSilenced(labels) ? "silence" : undefined;
  }
}
