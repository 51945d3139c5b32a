// Purges expired items, and on a filling disk the oldest items of the users who hold the most (D14).

import type { AuditSink } from "#base/audit-act.ts";
import type { Clock } from "#base/clock.ts";
import { TRASH_PURGE_BATCH } from "#base/limits.ts";
import { errorText, type Logger } from "#base/log.ts";
import { againWhenRowsCome } from "#storage/contract/rows-to-come.ts";
import type { RootRecord, Storage } from "#storage/contract/storage.ts";
import type { TrashHead } from "#storage/contract/trash.ts";
import type { Changes } from "./changes.ts";
import type { RootUsage } from "./root-usage.ts";
import { WallClockTrust } from "./wall-clock-trust.ts";

/** How long the trash keeps items by default (decision D14): 30 days. */
export const TRASH_RETENTION_MS: number = 30 * 24 * 3_600_000;
/** The trash is never purged for space before this age (decision D14): 24 hours. */
export const TRASH_MIN_AGE_MS: number = 24 * 3_600_000;
/** The trash is purged when less than this is free above the reserve (decision D14): 5 GiB. */
export const TRASH_SPACE_MARGIN_BYTES: bigint = 5_368_709_120n;
/** Users above this share of their quota, in percent, lose trash when space is needed (decision D14). */
const TRASH_SPACE_QUOTA_PERCENT = 80;
/** Nothing is purged for so long after the start: the machine's clock may be wrong until it is synchronized. */
export const TRASH_SETTLE_MS: number = 60_000;
/** Interval of the search for expired items. */
const TRASH_EXPIRY_INTERVAL_MS: number = 10 * 60_000;
/** Interval of the check of free space. */
const TRASH_SPACE_INTERVAL_MS = 5_000;

/** Dependencies of the reaper. */
export interface TrashReaperDeps {
  readonly storage: Pick<Storage, "root" | "trashBefore" | "oldestTrash" | "purgeTrash" | "failure">;
  readonly changes: Changes;
  readonly usage: RootUsage;
  readonly quotaBytes: (owner: string) => bigint;
  readonly freeBytes: () => bigint;
  readonly reserveBytes: bigint;
  /** 0 means until space is needed. */
  readonly retentionMs: number;
  readonly clock: Clock;
  readonly audit: AuditSink;
  readonly log: Logger;
}

type Reason = "trash.expire" | "trash.space";

/** Time for the disk to show a purge's effect; it begins anew while free space grows. */
const SETTLE_MS = 15_000;
/** Purges by the clock and by free space, in small transactions, so that no other change waits long. */
export class TrashReaper {
  readonly #deps: TrashReaperDeps;
  readonly #stops: readonly (() => void)[];
  #running: Promise<void> | undefined;
  #isStopped = false;
  readonly #wallClock: WallClockTrust;
  readonly #startedAtMs: number;
  #freeBytesSeen = 0n;
  #settlesAtMs = 0;

  constructor(deps: TrashReaperDeps) {
    this.#deps = deps;
    const { clock, log } = deps;
    this.#wallClock = new WallClockTrust(clock, (jumpedMs, distrustMs) =>
      log.error("trash_clock_jumped", { jumped_ms: jumpedMs, no_purge_for_ms: distrustMs }),
    );
    this.#stops = [
      clock.after(TRASH_SETTLE_MS, () => void this.expire()),
      clock.every(TRASH_EXPIRY_INTERVAL_MS, () => void this.expire()),
      clock.every(TRASH_SPACE_INTERVAL_MS, () => void this.makeRoom()),
    ];
    this.#startedAtMs = this.#sinceBootMs();
  }

  /** Purges what is older than the retention, of all roots. A purge that runs is waited for instead. */
  expire(): Promise<void> {
    return this.#alone(async () => {
      await this.#expire();
    });
  }

  /** Purges below reserve + 5 GiB: expired items, then the oldest of users above 80 % of their quota. */
  makeRoom(): Promise<void> {
    return this.#alone(() => this.#makeRoom());
  }

  /** Stops the reaper; resolves when a running purge reaches its next stop. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    for (const stop of this.#stops) stop();
    await this.#running;
  }

  async #alone(purge: () => Promise<void>): Promise<void> {
    if (this.#running !== undefined) return this.#running;
    if (this.#isStopped || this.#deps.storage.failure !== undefined) return;
    this.#running = purge()
      .catch((error: unknown) => {
        this.#deps.log.error("trash_purge_failed", { error: errorText(error) });
      })
      .finally(() => {
        this.#running = undefined;
      });
    await this.#running;
  }

  async #expire(neededBytes = Number.POSITIVE_INFINITY): Promise<number> {
    const { retentionMs, clock } = this.#deps;
    if (retentionMs === 0 || !this.#isClockRight()) return 0;
    const beforeMs = clock.wallMs() - retentionMs;
    const passedOver = new Set<string>();
    let freedBytes = 0;
    while (!this.#isStopped && freedBytes < neededBytes) {
      const heads = await againWhenRowsCome(() => this.#expired(beforeMs, passedOver));
      if (heads.length === 0) break;
      for (const [owner, ids] of byOwner(heads)) {
        freedBytes += await this.#tryToPurge(owner, ids, { act: "trash.expire", passedOver });
      }
    }
    return freedBytes;
  }

  /** The oldest expired items, or those of one root after another once the oldest are passed over. */
  #expired(beforeMs: number, passedOver: ReadonlySet<string>): readonly TrashHead[] {
    const { storage, usage } = this.#deps;
    if (passedOver.size === 0) return storage.trashBefore(beforeMs, TRASH_PURGE_BATCH);
    for (const [owner, { trashInodes }] of usage.entries()) {
      if (trashInodes === 0 || passedOver.has(owner)) continue;
      const heads = storage.oldestTrash(owner, beforeMs, TRASH_PURGE_BATCH);
      if (heads.length > 0) return heads;
    }
    return [];
  }

  async #makeRoom(): Promise<void> {
    const { clock, freeBytes, reserveBytes, log } = this.#deps;
    const free = freeBytes();
    const nowMs = clock.steadyMs();
    if (free > this.#freeBytesSeen && this.#settlesAtMs > 0) this.#settlesAtMs = nowMs + SETTLE_MS;
    this.#freeBytesSeen = free;
    const wanted = reserveBytes + TRASH_SPACE_MARGIN_BYTES;
    if (free >= wanted) {
      this.#settlesAtMs = 0;
      return;
    }
    if (nowMs < this.#settlesAtMs) return;
    const neededBytes = Number(wanted - free);
    let freedBytes = await this.#expire(neededBytes);
    if (freedBytes < neededBytes) freedBytes += await this.#purgeOldest(neededBytes - freedBytes);
    if (freedBytes === 0) return;
    this.#settlesAtMs = clock.steadyMs() + SETTLE_MS;
    log.warn("trash_purged_for_space", { free_bytes: free, wanted_bytes: wanted, freed_bytes: freedBytes });
  }

  /** False while the ages of items are not certain: shortly after the start, and for a day after a jump. */
  #isClockRight(): boolean {
    const isSettled = this.#sinceBootMs() - this.#startedAtMs >= TRASH_SETTLE_MS;
    return this.#wallClock.isTrusted() && isSettled;
  }

  #sinceBootMs(): number {
    const { clock } = this.#deps;
    return clock.bootMs?.() ?? clock.steadyMs();
  }

  /** Purges the oldest item of all users above their share, one by one, until enough or all are gone. */
  async #purgeOldest(neededBytes: number): Promise<number> {
    if (!this.#isClockRight()) return 0;
    const heads = new Map<string, TrashHead>();
    const note = (owner: string): Promise<void> => againWhenRowsCome(() => this.#note(heads, owner));
    for (const [owner] of this.#deps.usage.entries()) await note(owner);
    const passedOver = new Set<string>();
    let freedBytes = 0;
    while (!this.#isStopped && freedBytes < neededBytes && heads.size > 0) {
      const oldest = [...heads.values()].reduce((a, b) => (b.trashedAtMs < a.trashedAtMs ? b : a));
      freedBytes += await this.#tryToPurge(oldest.owner, [oldest.id], { act: "trash.space", passedOver });
      if (passedOver.has(oldest.owner)) heads.delete(oldest.owner);
      else await note(oldest.owner);
    }
    return freedBytes;
  }

  /** Records the oldest item of a user that may be purged for space, or that there is none. */
  #note(heads: Map<string, TrashHead>, owner: string): void {
    const { storage, clock } = this.#deps;
    const beforeMs = clock.wallMs() - TRASH_MIN_AGE_MS;
    const [head] = this.#isAboveShare(owner) ? storage.oldestTrash(owner, beforeMs, 1) : [];
    if (head === undefined) heads.delete(owner);
    else heads.set(owner, head);
  }

  #isAboveShare(owner: string): boolean {
    const usage = this.#deps.usage.of(owner);
    if (usage === undefined || usage.trashBytes === 0) return false;
    const usedBytes = BigInt(usage.liveBytes + usage.trashBytes + usage.stagingBytes);
    return usedBytes * 100n > this.#deps.quotaBytes(owner) * BigInt(TRASH_SPACE_QUOTA_PERCENT);
  }

  /** Passes over a root that refuses, as one that moves away does: the trash of others goes all the same. */
  async #tryToPurge(
    owner: string,
    trashIds: readonly string[],
    look: { readonly act: Reason; readonly passedOver: Set<string> },
  ): Promise<number> {
    const { storage, log } = this.#deps;
    try {
      const freedBytes = await againWhenRowsCome(() => {
        const root = storage.root(owner);
        return root && this.#purge(root, trashIds, look.act);
      });
      if (freedBytes !== undefined) return freedBytes;
    } catch (error) {
      if (storage.failure !== undefined) throw error;
      log.warn("trash_purge_put_off", { user: owner, error: errorText(error) });
    }
    look.passedOver.add(owner);
    return 0;
  }

  async #purge(root: RootRecord, trashIds: readonly string[], act: Reason): Promise<number> {
    const { storage, changes, audit } = this.#deps;
    const { owner } = root;
    const done = await changes.runFor(root, () => storage.purgeTrash({ owner, trashIds }));
    for (const { id, originalPath, sizeBytes, inodeCount } of done.items) {
      const detail = { trash_id: id, bytes: sizeBytes, inodes: inodeCount };
      audit({ act, actor: "node", subject: `${owner}:${originalPath}`, detail });
    }
    return done.freedBytes;
  }
}

function byOwner(heads: readonly TrashHead[]): Map<string, string[]> {
  const ids = new Map<string, string[]>();
  for (const { owner, id } of heads) ids.set(owner, [...(ids.get(owner) ?? []), id]);
  return ids;
}
