// All users of the cluster, merged from nodes and store once per round and on request (decision D5).
import { LRUCache } from "lru-cache";
import type { Clock } from "#base/clock.ts";
import { stringify64 } from "#base/json64.ts";
import { POLL_INTERVAL_MS } from "#base/limits.ts";
import type { UserRow } from "#wire/webapi/user.ts";
import {
  type ClusterState,
  CONSOLE_USERS_MAX,
  type NodeReading,
  type PollOutcome,
  type UserDetail,
} from "./cluster-state.ts";
import type { DecidedUsers } from "./decided-users.ts";
import type { HomeNodes } from "./home-nodes.ts";
import { quotaInEffect, sourceOfQuota } from "./quota-in-effect.ts";
import { SortedOrder } from "./sorted-order.ts";
import { inTimeSlices } from "./time-slices.ts";
import { compareNames, compareUsage, cursorBehind, parseCursor, type UsersQuery } from "./user-query.ts";
import { type MergedUser, userRowOf } from "./user-row.ts";

/** Bytes of finished pages that are cached until the list of users changes. */
const USERS_PAGES_KEPT_BYTES = 16_777_216;
/** Time that one turn of the event loop spends on updating the list of users. */
export const USERS_SLICE_MS = 4;
/** Quotas that were set here and that their nodes' metrics do not show yet. */
const QUOTAS_AHEAD_MAX = 10_000;

/** Users that a merge takes between two looks at the clock. */
const STEP = 256;

/** What the list is made from. */
export interface UserListDeps {
  readonly clock: Clock;
  readonly cluster: ClusterState;
  readonly homes: HomeNodes;
  readonly decided: Pick<DecidedUsers, "locked" | "refresh" | "version">;
  /** Forecast of the days until a user's quota is full. */
  readonly fullInDays: (username: string) => number | undefined;
}

/** A quota that was set here, until the node's metrics show it. */
interface QuotaAhead {
  readonly nodeId: string;
  readonly quotaBytes: bigint;
  readonly source: "explicit" | "default";
  /** The inode limit, where the change set one. */
  readonly inodes?: Pick<UserDetail, "inodeLimit" | "inodeLimitExplicit">;
  readonly setAtMs: number;
}

/** The result of a merge for one user. */
type Finding = Pick<MergedUser, "nodeId" | "usedBytes" | "quotaBytes" | "source" | "detail">;

/** One page, as it is answered. */
interface Page {
  readonly users: readonly UserRow[];
  readonly total_users: number;
  readonly next_cursor: string | null;
}

/** The list. It computes only on request. */
export class UserList {
  readonly #deps: UserListDeps;
  readonly #users = new Map<string, MergedUser>();
  readonly #orders = {
    name: new SortedOrder<MergedUser>(compareNames),
    usage: new SortedOrder<MergedUser>(compareUsage),
  };
  readonly #pages = new LRUCache<string, { readonly body: Buffer }>({
    maxSize: USERS_PAGES_KEPT_BYTES,
    sizeCalculation: ({ body }) => body.length + 1,
  });
  readonly #ahead = new Map<string, QuotaAhead>();
  readonly #heardNodes = new Set<string>();
  readonly #ends: readonly (() => void)[];
  #merges = 0;
  #isStale = true;
  #merging: Promise<void> | undefined;

  constructor(deps: UserListDeps) {
    this.#deps = deps;
    this.#ends = [
      deps.cluster.onRound(() => {
        this.#isStale = true;
      }, "first"),
      deps.cluster.onPoll((outcome) => this.#polled(outcome)),
    ];
  }

  /** One page as the JSON of the answer. */
  async page(query: UsersQuery): Promise<Buffer> {
    await this.#bringUpToDate();
    return this.#pageNow(query).body;
  }

  /** The same at once; undefined when a merge must come first. */
  kept(query: UsersQuery): { readonly body: Buffer } | undefined {
    if (this.#merges === 0 || this.#isStale || this.#merging !== undefined) return undefined;
    void this.#deps.homes.refresh();
    void this.#deps.decided.refresh();
    return this.#pageNow(query);
  }

  #pageNow(query: UsersQuery): { readonly body: Buffer } {
    const key = JSON.stringify([
      query.sort,
      query.limit,
      query.cursor,
      query.q,
      query.username,
      query.node,
      query.locked,
      this.#deps.decided.version,
    ]);
    let page = this.#pages.get(key);
    if (page === undefined) {
      page = { body: Buffer.from(stringify64(this.#page(query))) };
      this.#pages.set(key, page);
    }
    return page;
  }

  /** All users by name, and the number of their merge; the same number means no change. */
  async everybody(): Promise<{ readonly users: readonly Readonly<MergedUser>[]; readonly merge: number }> {
    await this.#bringUpToDate();
    return { users: this.#orders.name.items, merge: this.#merges };
  }

  /** The current data of one user; undefined for an unknown one. */
  async find(username: string): Promise<Readonly<MergedUser> | undefined> {
    await this.#bringUpToDate();
    return this.#users.get(username);
  }

  /** Shows a quota that a node has just set, because its metrics are up to one poll behind. */
  quotaWasSet(username: string, quota: Omit<QuotaAhead, "setAtMs">): void {
    const oldest = this.#ahead.keys().next();
    if (this.#ahead.size >= QUOTAS_AHEAD_MAX && oldest.done !== true) this.#ahead.delete(oldest.value);
    this.#ahead.delete(username);
    this.#ahead.set(username, { ...quota, setAtMs: this.#deps.clock.steadyMs() });
    this.#isStale = true;
  }

  /** Unsubscribes from the cluster. */
  close(): void {
    for (const end of this.#ends) end();
  }

  #polled({ node, reading, steadyMs }: PollOutcome): void {
    if (reading === undefined) return;
    // The first report of a node shows at once, so that a started console shows users without waiting a
    // round.
    if (!this.#heardNodes.has(node.id)) this.#isStale = true;
    this.#heardNodes.add(node.id);
    for (const [username, { nodeId, setAtMs }] of this.#ahead) {
      // A poll that ended this much later also began after the change.
      if (nodeId === node.id && steadyMs - setAtMs > 2 * POLL_INTERVAL_MS) this.#ahead.delete(username);
    }
  }

  async #bringUpToDate(): Promise<void> {
    const { homes, decided } = this.#deps;
    const before = homes.current;
    await Promise.all([homes.refresh(), decided.refresh()]);
    if (homes.current !== before) this.#isStale = true;
    while (this.#isStale || this.#merging !== undefined) {
      this.#merging ??= inTimeSlices(this.#merge(), USERS_SLICE_MS).finally(() => {
        this.#merging = undefined;
      });
      await this.#merging;
    }
  }

  *#merge(): Generator<void, void> {
    this.#isStale = false;
    const merge = ++this.#merges;
    const moved = { name: new Set<MergedUser>(), usage: new Set<MergedUser>() };
    const put = (username: string, finding: Finding): void => {
      const known = this.#users.get(username);
      if (known?.metInMerge === merge) return;
      if (known === undefined && this.#users.size >= CONSOLE_USERS_MAX) return;
      const user = known ?? newUser(username, finding);
      if (known === undefined) {
        this.#users.set(username, user);
        moved.name.add(user);
      }
      if (known === undefined || hasMoved(known, finding)) moved.usage.add(user);
      Object.assign(user, finding, { metInMerge: merge, usedShare: shareOf(finding) });
    };
    yield* this.#findings(put);
    const gone = new Set<MergedUser>();
    for (const user of this.#users.values()) if (user.metInMerge !== merge) gone.add(user);
    for (const user of gone) this.#users.delete(user.username);
    yield;
    yield* this.#orders.name.update(moved.name, gone);
    yield* this.#orders.usage.update(moved.usage, gone);
    this.#pages.clear();
  }

  /**
   * Every user once: as the home node reports, and with the default quota before it has reported (spec 5.9).
   */
  *#findings(put: (username: string, finding: Finding) => void): Generator<void, void> {
    const homes = this.#deps.homes.current;
    let steps = 0;
    for (const { id, lastGood } of this.#deps.cluster.nodes()) {
      if (lastGood === undefined) continue;
      for (const [username, usedBytes] of lastGood.perUserStorage) {
        if (++steps % STEP === 0) yield;
        const home = homes.get(username);
        // The store's home decides, because a node cannot speak for users of another (M-05).
        if (home === undefined || home === id)
          put(username, this.#reported(username, usedBytes, id, lastGood));
      }
    }
    for (const [username, nodeId] of homes) {
      if (++steps % STEP === 0) yield;
      if (this.#users.get(username)?.metInMerge === this.#merges) continue;
      put(username, this.#pending(username, nodeId));
    }
  }

  #reported(username: string, usedBytes: bigint, nodeId: string, reading: NodeReading): Finding {
    const reported = reading.perUserQuota.get(username);
    const detail = reading.perUserDetail.get(username);
    const quotaBytes = quotaInEffect(reported);
    const ahead = this.#aheadOf(username, nodeId);
    if (ahead !== undefined) {
      const { inodes, ...quota } = ahead;
      return { nodeId, usedBytes, ...quota, detail: detail && inodes ? { ...detail, ...inodes } : detail };
    }
    return {
      nodeId,
      usedBytes,
      quotaBytes,
      source: sourceOfQuota(quotaBytes, detail?.quotaExplicit),
      detail,
    };
  }

  #pending(username: string, nodeId: string): Finding {
    const ahead = this.#aheadOf(username, nodeId);
    const unknown = { quotaBytes: quotaInEffect(undefined), source: "pending" as const };
    const { quotaBytes, source } = ahead ?? unknown;
    return { nodeId, usedBytes: 0n, quotaBytes, source, detail: undefined };
  }

  #aheadOf(
    username: string,
    nodeId: string,
  ): Pick<QuotaAhead, "quotaBytes" | "source" | "inodes"> | undefined {
    const ahead = this.#ahead.get(username);
    if (ahead?.nodeId !== nodeId) return undefined;
    const { quotaBytes, source, inodes } = ahead;
    return { quotaBytes, source, ...(inodes === undefined ? {} : { inodes }) };
  }

  #page(query: UsersQuery): Page {
    if (query.username !== undefined) return this.#pageOfOne(query, query.username);
    const order = this.#orders[query.sort];
    const isWanted = matcherOf(query, this.#deps.decided.locked);
    const place = query.cursor === undefined ? undefined : parseCursor(query.cursor);
    const compare = query.sort === "name" ? compareNames : compareUsage;
    const from = place === undefined ? 0 : order.firstFrom((user) => compare(user, place) <= 0);
    const found: MergedUser[] = [];
    for (let at = from; at < order.items.length && found.length <= query.limit; at++) {
      const user = order.items[at] as MergedUser;
      if (isWanted(user)) found.push(user);
    }
    const shown = found.slice(0, query.limit);
    const last = found.length > query.limit ? shown.at(-1) : undefined;
    return {
      users: shown.map((user) => this.#row(user)),
      total_users: isWanted === everybody ? order.items.length : order.items.filter(isWanted).length,
      next_cursor: last === undefined ? null : cursorBehind(last),
    };
  }

  /** A user by name, without a look at all others. */
  #pageOfOne(query: UsersQuery, username: string): Page {
    const user = this.#users.get(username);
    const isFound = user !== undefined && matcherOf(query, this.#deps.decided.locked)(user);
    const users = isFound ? [this.#row(user)] : [];
    return { users, total_users: users.length, next_cursor: null };
  }

  #row(user: MergedUser): UserRow {
    const { cluster, fullInDays, decided } = this.#deps;
    const nodeName = cluster.node(user.nodeId)?.name ?? user.nodeId;
    const isLocked = decided.locked.has(user.username);
    return userRowOf(user, { nodeName, fullInDays: fullInDays(user.username), isLocked });
  }
}

function newUser(username: string, finding: Finding): MergedUser {
  return { username, ...finding, usedShare: 0, metInMerge: 0 };
}

function hasMoved(known: MergedUser, finding: Finding): boolean {
  return known.usedBytes !== finding.usedBytes || known.quotaBytes !== finding.quotaBytes;
}

function shareOf({ usedBytes, quotaBytes }: Finding): number {
  return Number(usedBytes) / Number(quotaBytes);
}

type Matcher = (user: MergedUser) => boolean;

const everybody: Matcher = () => true;

function matcherOf({ q, node, locked }: UsersQuery, isLocked: ReadonlySet<string>): Matcher {
  if ((q === undefined || q === "") && node === undefined && locked === undefined) return everybody;
  const part = q?.normalize("NFC").toLowerCase() ?? "";
  return ({ username, nodeId }) =>
    (node === undefined || nodeId === node) &&
    (locked === undefined || isLocked.has(username)) &&
    username.includes(part);
}
