// The trends of all disks and users: bounded, sampled at intervals, named for their file (decisions D4, D5).
import type { Clock } from "#base/clock.ts";
import { USERNAME_MAX_LENGTH } from "#base/limits.ts";
import type { NodeSample, UserUsage } from "./node-sample.ts";
import { HISTORY_NODES_MAX } from "./recent-hour.ts";
import type { SeriesRows } from "./series-format.ts";
import type { SlotRing } from "./slot-ring.ts";
import { slotOf } from "./slots.ts";
import { Trend } from "./trend.ts";

/** Points of a node's disk at five minutes, for two days. */
const TREND_FINE_POINTS = 576;
/** Distance of those points. */
export const TREND_FINE_MS: number = 5 * 60_000;
/** Points of a node's disk at one hour, for 90 days. */
export const TREND_POINTS = 2_160;
/** Points of a user's usage at one hour, for a week. */
export const TREND_USER_POINTS = 168;
/** Distance of those points. */
export const TREND_MS = 3_600_000;
/** Users whose usage is kept for a forecast, 1.5 kB each. */
const TREND_USERS_MAX = 10_000;
/** New users that one read of a node adds, so that a node with many does not delay the rest. */
const TREND_NEW_USERS_AT_ONCE = 500;
/** Points of a disk between which slopes are computed, each with each: about 0.2 ms. */
const FORECAST_DISK_POINTS = 64;
/** The same for a user: a page of 500 users must take few milliseconds. */
const FORECAST_USER_POINTS = 32;

const NODE_TIERS = [
  { slotMs: TREND_FINE_MS, points: TREND_FINE_POINTS },
  { slotMs: TREND_MS, points: TREND_POINTS },
];
const USER_TIERS = [{ slotMs: TREND_MS, points: TREND_USER_POINTS }];

/** Prefixes of names in the file, by the index of the tier. */
const NODE_PREFIXES = ["5m:", "1h:"] as const;
const USER_PREFIX = "user:";

/** Data for forecasts. */
export class Trends {
  readonly #clock: Clock;
  readonly #nodes = new Map<string, Trend>();
  readonly #users = new Map<string, Trend>();
  /** Steady time of the last read of a node's users. */
  readonly #lookedAtMs = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Records a node's disk, which is full when only the reserve is left (spec 4.6.3). */
  recordDisk(sample: NodeSample): void {
    const { diskUsedBytes: used, diskFreeBytes: free, reserveBytes } = sample;
    if (used === null || free === null || !isAmount(used) || !isAmount(free)) return;
    const node = this.#node(sample.nodeId);
    const isNew = node?.record(sample.wallMs, used, Math.max(0, used + free - (reserveBytes ?? 0)));
    // Computed here, where nodes come one after another, rather than in a request for all of them.
    if (isNew === true) node?.daysLeft(sample.wallMs);
  }

  /** Records the users of a node, at most every five minutes. */
  recordUsers(nodeId: string, wallMs: number, users: Iterable<UserUsage>): void {
    const nowMs = this.#clock.steadyMs();
    const lookedAtMs = this.#lookedAtMs.get(nodeId);
    if (lookedAtMs !== undefined && nowMs - lookedAtMs < TREND_FINE_MS) return;
    let newUsers = 0;
    for (const [username, usedBytes, quotaBytes] of users) {
      let user = this.#users.get(username);
      if (user === undefined) {
        // The others follow with the next polls.
        if (newUsers >= TREND_NEW_USERS_AT_ONCE) return;
        user = this.#newUser(username);
        if (user !== undefined) newUsers++;
      }
      if (user !== undefined && user.heardAtMs !== wallMs) {
        user.record(wallMs, Number(usedBytes), Number(quotaBytes));
      }
    }
    this.#lookedAtMs.set(nodeId, nowMs);
  }

  /** Days until a node's disk is full; undefined when unknown or not expected. */
  diskFullDays(nodeId: string): number | undefined {
    return this.#nodes.get(nodeId)?.daysLeft(this.#clock.wallMs());
  }

  /** True when the data suffices to tell whether a node's disk fills. */
  isDiskTrendKnown(nodeId: string): boolean {
    return this.#nodes.get(nodeId)?.isKnown(this.#clock.wallMs()) === true;
  }

  /** Days until a user's quota is full; undefined when unknown or not expected. */
  userFullDays(username: string): number | undefined {
    return this.#users.get(username)?.daysLeft(this.#clock.wallMs());
  }

  /** All rings by their names in the file. */
  *series(): Generator<readonly [id: string, ring: SlotRing]> {
    for (const [nodeId, { tiers }] of this.#nodes) {
      for (const [index, { ring }] of tiers.entries()) yield [`${NODE_PREFIXES[index]}${nodeId}`, ring];
    }
    for (const [username, { tiers }] of this.#users) {
      for (const { ring } of tiers) yield [`${USER_PREFIX}${username}`, ring];
    }
  }

  /** Adds rows that were read back; those of an unknown kind are dropped. */
  take(rows: SeriesRows): void {
    for (const [index, prefix] of NODE_PREFIXES.entries()) {
      if (rows.id.startsWith(prefix))
        this.#node(rows.id.slice(prefix.length))?.tiers[index]?.ring.restore(rows);
    }
    if (!rows.id.startsWith(USER_PREFIX)) return;
    const username = rows.id.slice(USER_PREFIX.length);
    (this.#users.get(username) ?? this.#newUser(username))?.tiers[0]?.ring.restore(rows);
  }

  /** Removes all trends. */
  reset(): void {
    this.#nodes.clear();
    this.#users.clear();
  }

  /** Removes trends without a point in the kept time. */
  forgetOld(): void {
    const nowSlot = slotOf(this.#clock.wallMs(), TREND_MS);
    for (const trends of [this.#nodes, this.#users]) {
      for (const [name, { tiers }] of trends) {
        const ring = tiers.at(-1)?.ring;
        if (ring !== undefined && ring.newestSlot <= nowSlot - ring.capacity) trends.delete(name);
      }
    }
    for (const nodeId of this.#lookedAtMs.keys()) {
      if (!this.#nodes.has(nodeId)) this.#lookedAtMs.delete(nodeId);
    }
  }

  /** Nodes beyond the limit have no forecast until others are removed. */
  #node(nodeId: string): Trend | undefined {
    let node = this.#nodes.get(nodeId);
    if (node === undefined && this.#nodes.size < HISTORY_NODES_MAX) {
      node = new Trend(NODE_TIERS, FORECAST_DISK_POINTS);
      this.#nodes.set(nodeId, node);
    }
    return node;
  }

  #newUser(username: string): Trend | undefined {
    if (this.#users.size >= TREND_USERS_MAX || username.length > USERNAME_MAX_LENGTH) return undefined;
    const user = new Trend(USER_TIERS, FORECAST_USER_POINTS);
    this.#users.set(username, user);
    return user;
  }
}

function isAmount(value: number): boolean {
  return Number.isFinite(value) && value >= 0;
}
