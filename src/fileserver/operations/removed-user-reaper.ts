// Removes a removed user's files, trash, quota and received shares from this node after the grace period.
import type { AuditSink } from "#base/audit-act.ts";
import type { Clock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";
import { GRANTS_PER_INODE, LIST_PAGE_MAX, TRASH_PURGE_BATCH } from "#base/limits.ts";
import { errorText, type Logger } from "#base/log.ts";
import { joinPath, splitPath } from "#base/names.ts";
import { isDue, type Removal } from "#base/removal.ts";
import type { QuotaStore } from "#quota/quota-store.ts";
import type { UserStateStore } from "#security/identity/user-state-store.ts";
import type { Inode } from "#storage/contract/inode.ts";
import { againWhenRowsCome } from "#storage/contract/rows-to-come.ts";
import type { ListPage, SharedPath, Storage } from "#storage/contract/storage.ts";
import type { Changes } from "./changes.ts";
import type { OperatorLooks } from "./operator-looks.ts";
import { WallClockTrust } from "./wall-clock-trust.ts";

/** Interval of the checks for removed users whose files are due. */
const REMOVAL_LOOK_INTERVAL_MS = 60_000;
/** Delay of the first check after the start: the node's clock may be wrong until it is synchronized. */
export const REMOVAL_SETTLE_MS = 10 * 60_000;

/** Dependencies of the reaper. */
export interface RemovedUserReaperDeps {
  readonly storage: Pick<
    Storage,
    | "failure"
    | "list"
    | "oldestTrash"
    | "properties"
    | "purgeTrash"
    | "remove"
    | "resolve"
    | "root"
    | "shares"
  >;
  readonly userStates: UserStateStore;
  readonly quotas: Pick<QuotaStore, "set">;
  readonly looks: Pick<OperatorLooks, "forget">;
  readonly changes: Changes;
  /**
   * False while this node may not know what was decided elsewhere: the removal may have been undone. Left
   * out, nobody else decides.
   */
  readonly knowsCluster?: (() => boolean) | undefined;
  readonly clock: Clock;
  readonly audit: AuditSink;
  readonly log: Logger;
}

/** A removal that is being carried out. */
interface Order {
  readonly username: string;
  readonly removal: Removal;
  /** What is not younger goes. */
  readonly untilMs: number;
}

interface Gone {
  files: number;
  bytes: number;
  shares: number;
}

/** Where an entry has gone by itself. */
const NOTHING_GONE = { inodeCount: 0, freedBytes: 0 };

/** Checks every minute; repeats are harmless, since entries newer than the due time are the next user's. */
export class RemovedUserReaper {
  readonly #deps: RemovedUserReaperDeps;
  readonly #stop: () => void;
  readonly #wallClock: WallClockTrust;
  readonly #startedAtMs: number;
  /** The removals carried out by this process, by user: the due time of each. */
  readonly #done = new Map<string, number>();
  /** Roots of removed users that have come from other nodes. */
  #arrivals = 0;
  #running: Promise<void> | undefined;
  #isStopped = false;

  constructor(deps: RemovedUserReaperDeps) {
    this.#deps = deps;
    const { userStates, clock, log } = deps;
    this.#startedAtMs = clock.steadyMs();
    this.#wallClock = new WallClockTrust(clock, (jumpedMs, distrustMs) =>
      log.error("removal_clock_jumped", { jumped_ms: jumpedMs, no_removal_for_ms: distrustMs }),
    );
    this.#stop = clock.every(REMOVAL_LOOK_INTERVAL_MS, () => void this.sweep());
    // The next user of a released address waits for this.
    userStates.onNews((news) => {
      if (news.some(({ removal }) => removal?.isReleased === true)) void this.sweep();
    });
    void this.sweep();
  }

  /** Throws USER_DISABLED while this node still holds data of a released address's former user. */
  requireClear(username: string): void {
    const { userStates, clock } = this.#deps;
    const removal = userStates.states.find(username)?.removal;
    if (removal?.isReleased !== true) return;
    // By a clock that is behind the one which released it, what a newcomer makes would look old.
    if (this.#isDone(username, removal) && clock.wallMs() > removal.dueAtMs) return;
    throw new GroveError(
      "STARTING",
      "the files of who had this address before are still being removed; try again in a minute",
    );
  }

  /** Carries out the removal of a released address's former user. Throws as `requireClear` while it does not succeed. */
  async clear(username: string): Promise<void> {
    const { removal } = this.#deps.userStates.states.find(username) ?? {};
    if (removal?.isReleased === true && !this.#isDone(username, removal)) await this.sweep();
    this.requireClear(username);
  }

  /** A root has come from another node, which may not have carried out its owner's removal. */
  arrived(username: string): void {
    if (this.#deps.userStates.states.find(username)?.removal === undefined) return;
    this.#arrivals++;
    this.#done.delete(username);
    void this.sweep();
  }

  /** Carries out what is due; waits for a sweep that runs already. Never rejects. */
  async sweep(): Promise<void> {
    const before = this.#running;
    if (before !== undefined) await before;
    if (this.#running !== undefined) return this.#running;
    if (this.#isStopped || this.#deps.storage.failure !== undefined) return;
    this.#running = this.#sweep()
      .catch((error: unknown) => this.#deps.log.error("removal_failed", { error: errorText(error) }))
      .finally(() => {
        this.#running = undefined;
      });
    await this.#running;
  }

  /** Stops the checks; resolves when a running sweep reaches its next stop. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#stop();
    await this.#running;
  }

  async #sweep(): Promise<void> {
    const { userStates, clock, log, knowsCluster } = this.#deps;
    const isSettled =
      this.#wallClock.isTrusted() && clock.steadyMs() - this.#startedAtMs >= REMOVAL_SETTLE_MS;
    // All shares are read once for all removals, and again for those whom any of them concerns.
    let sharing: ReadonlySet<string> | undefined;
    for (const { username, removal } of userStates.states.list()) {
      if (this.#isStopped) return;
      if (removal === undefined || this.#isDone(username, removal)) continue;
      // Who released it has said by another clock that it was due.
      if (!removal.isReleased && !(isSettled && isDue(removal, clock.wallMs()) && knowsCluster?.() !== false))
        continue;
      try {
        sharing ??= await againWhenRowsCome(() => this.#sharing());
        await this.#carryOut(username, removal, sharing.has(username));
      } catch (error) {
        log.error("removal_failed", { user: username, error: errorText(error) });
      }
    }
  }

  #isDone(username: string, { dueAtMs }: Removal): boolean {
    return this.#done.get(username) === dueAtMs;
  }

  async #carryOut(username: string, removal: Removal, hasShares: boolean): Promise<void> {
    const { quotas, looks, audit, log } = this.#deps;
    const gone: Gone = { files: 0, bytes: 0, shares: 0 };
    // While the address is closed all of its data is old, by any clock; later newer data is the next user's.
    const untilMs = removal.isReleased ? removal.dueAtMs : Number.MAX_SAFE_INTEGER - 1;
    const order = { username, removal, untilMs };
    const arrivals = this.#arrivals;
    await this.#removeFiles(order, gone);
    await this.#purgeTrash(order, gone);
    if (hasShares) await this.#endShares(order, gone);
    if (this.#hasEnded(order)) return;
    await looks.forget(username, untilMs);
    // Once nothing of before is left here, these are of whoever comes with the released address.
    if (!removal.isReleased || gone.files + gone.bytes > 0) {
      await quotas.set(username, { quotaBytes: 0n, inodeLimit: 0 });
      await this.#dropProperties(order);
    }
    if (arrivals === this.#arrivals) this.#done.set(username, removal.dueAtMs);
    if (gone.files + gone.bytes + gone.shares === 0) return;
    audit({ act: "user.gone", actor: "node", subject: username, detail: { ...gone } });
    log.info("user_gone", { user: username, ...gone });
  }

  /** True where another decision has come meanwhile, or this process is to end. */
  #hasEnded({ username, removal }: Order): boolean {
    return (
      this.#isStopped || this.#deps.userStates.states.find(username)?.removal?.dueAtMs !== removal.dueAtMs
    );
  }

  async #removeFiles(order: Order, gone: Gone): Promise<void> {
    const { storage, changes } = this.#deps;
    const owner = order.username;
    for await (const entry of this.#oldEntries(order)) {
      const done = await againWhenRowsCome(() => {
        const root = storage.root(owner);
        if (root === undefined || this.#hasEnded(order)) return undefined;
        if (this.#at(owner, [entry.name])?.last.id !== entry.id) return NOTHING_GONE;
        return changes.runFor(root, () =>
          storage.remove({ ...this.#context(owner), inodeId: entry.id, recursive: true }),
        );
      });
      if (done === undefined) return;
      gone.files += done.inodeCount;
      gone.bytes += done.freedBytes;
    }
  }

  /** What lies in the root directory and has not changed since a moment, read page by page. */
  async *#oldEntries({ username, untilMs }: Order): AsyncGenerator<Inode> {
    const pageAt = (pageToken: string): ListPage | undefined => {
      const directory = this.#at(username, [])?.last;
      return (
        directory && this.#deps.storage.list(directory.id, { limit: LIST_PAGE_MAX, pageToken, sort: "name" })
      );
    };
    for (let pageToken: string | undefined = ""; pageToken !== undefined; ) {
      const token: string = pageToken;
      const page: ListPage | undefined = await againWhenRowsCome(() => pageAt(token));
      if (page === undefined) return;
      yield* page.entries.filter(({ ctimeMs }) => ctimeMs <= untilMs);
      pageToken = page.nextPageToken;
    }
  }

  async #purgeTrash(order: Order, gone: Gone): Promise<void> {
    const { storage, changes } = this.#deps;
    const { username: owner, untilMs } = order;
    for (;;) {
      const done = await againWhenRowsCome(() => {
        const root = storage.root(owner);
        if (root === undefined || this.#hasEnded(order)) return undefined;
        const trashIds = storage.oldestTrash(owner, untilMs + 1, TRASH_PURGE_BATCH).map(({ id }) => id);
        if (trashIds.length === 0) return undefined;
        return changes.runFor(root, () => storage.purgeTrash({ owner, trashIds }));
      });
      if (done === undefined) return;
      gone.bytes += done.freedBytes;
    }
  }

  /** The root directory stays for whoever comes next, but not what programs have kept with it. */
  async #dropProperties(order: Order): Promise<void> {
    const { storage, changes } = this.#deps;
    const owner = order.username;
    await againWhenRowsCome(() => {
      const [root, directory] = [storage.root(owner), this.#at(owner, [])?.last];
      if (root === undefined || directory === undefined || this.#hasEnded(order)) return undefined;
      const edits = storage.properties.of(directory.id).map((each) => ({ ...each, kind: "remove" as const }));
      if (edits.length === 0) return undefined;
      return changes.runFor(root, () =>
        storage.properties.change({ ...this.#context(owner), inodeId: directory.id, edits }),
      );
    });
  }

  /**
   * Ends what others on this node have shared with the address up to a moment, and what of the root itself
   * was shared with others.
   */
  async #endShares(order: Order, gone: Gone): Promise<void> {
    const { storage, changes, audit } = this.#deps;
    for (const { owner, path, username } of await againWhenRowsCome(() => this.#sharesOf(order.username))) {
      if (this.#hasEnded(order)) return;
      const done = await againWhenRowsCome(() => {
        const root = storage.root(owner);
        const inodeId = this.#at(owner, splitPath(path))?.last.id;
        if (root === undefined || inodeId === undefined) return undefined;
        if (this.#sharedAtMs(owner, path, username) > order.untilMs) return undefined;
        return changes.runFor(root, () =>
          storage.shares.revoke({ ...this.#context(owner), inodeId, username }),
        );
      });
      if (done === undefined || done.affectedInodes === 0) continue;
      gone.shares++;
      const subject = `${owner}:${path}`;
      audit({ act: "share.remove", actor: "node", subject, detail: { user: username, reason: "removed" } });
    }
  }

  /** Who shares anything, or is shared anything. */
  #sharing(): Set<string> {
    const users = new Set<string>();
    for (const [owner, shares] of this.#deps.storage.shares.all()) {
      users.add(owner);
      for (const { username } of shares) users.add(username);
    }
    return users;
  }

  /** The root directory stays for whoever comes next, and with it whoever it was shared with. */
  #sharesOf(username: string): (SharedPath & { readonly owner: string })[] {
    return [...this.#deps.storage.shares.all()].flatMap(([owner, shares]) =>
      shares
        .filter((share) => share.username === username || owner === username)
        .map((share) => ({ ...share, owner })),
    );
  }

  /** When a share was made; shares at the path itself come before those below it. */
  #sharedAtMs(owner: string, path: string, username: string): number {
    const place = { path, after: { path: "", username: "" }, limit: GRANTS_PER_INODE };
    const { shares } = this.#deps.storage.shares.listed(owner, place);
    return shares.find((share) => share.path === path && share.username === username)?.atMs ?? 0;
  }

  #context(owner: string): { owner: string; accessVersion: undefined; by: string } {
    return { owner, accessVersion: undefined, by: owner };
  }

  /** The inode at a path; undefined where there is none. */
  #at(owner: string, names: readonly string[]): { readonly last: Inode } | undefined {
    const { storage } = this.#deps;
    if (storage.root(owner) === undefined) return undefined;
    const { chain, missing } = storage.resolve(owner, splitPath(joinPath(names)));
    const last = chain.at(-1);
    return missing.length > 0 || last === undefined ? undefined : { last };
  }
}
