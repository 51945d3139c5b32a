// The groups of notifications: alerts with the same labels go out in one message (decision D11).
import type { Moment } from "./condition.ts";
import type { StoredNotifications, TrackedAlert } from "./tracked-alert.ts";

/** Labels by which alerts are grouped. */
export type GroupLabel = "alertname" | "node_id" | "username";

/** One group: when its news are due, and when it was last sent; steady milliseconds. */
export interface Group {
  readonly labels: Readonly<Record<string, string>>;
  dueMs: number | undefined;
  lastSentMs: number | undefined;
}

/** The groups with open or sent alerts, by name. */
export class NotificationGroups {
  readonly #groupBy: readonly GroupLabel[];
  readonly #groups = new Map<string, Group>();

  constructor(groupBy: readonly GroupLabel[]) {
    this.#groupBy = groupBy;
  }

  /** The name of an alert's group, which the alert caches. */
  nameOf(tracked: TrackedAlert): string {
    tracked.groupName ??= nameOf(this.#labelsOf(tracked));
    return tracked.groupName;
  }

  /** The group of a name; a new one has the labels of its members. */
  of(name: string, [first]: readonly TrackedAlert[]): Group {
    const known = this.#groups.get(name);
    if (known !== undefined) return known;
    const labels = first === undefined ? {} : this.#labelsOf(first);
    const group: Group = { labels, dueMs: undefined, lastSentMs: undefined };
    this.#groups.set(name, group);
    return group;
  }

  /** Forgets the groups of other names. */
  keepOnly(names: { has(name: string): boolean }): void {
    for (const name of this.#groups.keys()) if (!names.has(name)) this.#groups.delete(name);
  }

  /** The groups that were sent, for a file. */
  kept(at: Moment): StoredNotifications["groups"] {
    return [...this.#groups.values()].flatMap(({ labels, lastSentMs }) =>
      lastSentMs === undefined ? [] : [{ labels, lastSentWallMs: at.wallMs - (at.steadyMs - lastSentMs) }],
    );
  }

  /** Restores the groups that an earlier run sent. */
  restore(kept: StoredNotifications["groups"], at: Moment): void {
    for (const { labels, lastSentWallMs } of kept) {
      const agoMs = Math.max(0, at.wallMs - lastSentWallMs);
      this.#groups.set(nameOf(labels), { labels, dueMs: undefined, lastSentMs: at.steadyMs - agoMs });
    }
  }

  #labelsOf({ type, subject }: TrackedAlert): Record<string, string> {
    const all = { alertname: type, node_id: subject.nodeId ?? "", username: subject.username ?? "" };
    return Object.fromEntries(this.#groupBy.map((label) => [label, all[label]]));
  }
}

function nameOf(labels: Readonly<Record<string, string>>): string {
  return JSON.stringify(Object.entries(labels).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}
