// Bytes and inodes in use and promised, of every root and of the disk (decision D16), so that no change passes a limit or the reserve.
import { GroveError, QUOTA_EXCEEDED_TEXT } from "#base/errors.ts";
import { headroomBytes, mayCreate, mayWrite } from "./headroom.ts";
import { leavesReserve, reserveText, usableBytes } from "./reserve.ts";

/** What a root holds, as storage counts it. */
export interface RootUsage {
  readonly liveBytes: number;
  readonly trashBytes: number;
  readonly stagingBytes: number;
  readonly liveInodes: number;
  readonly trashInodes: number;
}

/** A root at the moment at which a change of it begins. */
export interface RootAtStart {
  readonly owner: string;
  readonly usage: RootUsage;
}

/** What the ledger needs to know of the world. */
export interface LedgerDeps {
  /** The quota in force for a user, in bytes; asked for at every check, so that a change of it takes effect at once. */
  readonly quotaBytes: (owner: string) => bigint;
  /** Files and directories that a user's root may hold, its trash included; asked for like the quota. */
  readonly inodeLimit: (owner: string) => number;
  /** Free space of the data directory's filesystem in bytes; asked for at every check (spec 4.6.3). */
  readonly freeBytes: () => bigint;
  /** Free space that no write may consume (spec 4.6.3). */
  readonly reserveBytes: bigint;
}

/** Files and directories that a change makes, at most. */
export interface Making {
  /** Those that come into the tree: for them the root must be below its quota, even for an empty one (spec 4.6.1). */
  readonly creates: number;
  /** Those that only the trash gets, for what somebody else than the owner replaces (D13). */
  readonly keeps?: number;
}

/** What a change asks for before it runs. */
export interface Claim extends Making {
  /** Bytes that it may add to the root. */
  readonly addsBytes: number;
  /** Bytes that it may write to the disk when they are more than it adds: a range that is written over, by copy. */
  readonly writesBytes?: number;
}

/** One root while at least one change of it is under way. */
interface Account {
  readonly owner: string;
  usedBytes: bigint;
  trashBytes: number;
  stagingBytes: number;
  reservedBytes: bigint;
  inodes: number;
  readonly trashInodes: number;
  reservedInodes: number;
  holdings: number;
}

/** What the ledger and its holdings write in. */
interface Pages {
  readonly deps: LedgerDeps;
  readonly accounts: Map<string, Account>;
  promisedBytes: bigint;
}

/**
 * The ledger of D16. A root has an account only while changes of it are under way: it starts from what storage has committed, then
 * follows what each change says it did. Reading storage again in between would count bytes twice that are committed there and still
 * promised here. Used from one thread, so that each check and what follows from it is one step.
 */
export class QuotaLedger {
  readonly #pages: Pages;

  constructor(deps: LedgerDeps) {
    this.#pages = { deps, accounts: new Map(), promisedBytes: 0n };
  }

  /** Bytes promised to writes that have not reached the disk, over all roots (D16). */
  get promisedBytes(): bigint {
    return this.#pages.promisedBytes;
  }

  /** Roots with changes under way. */
  get openAccounts(): number {
    return this.#pages.accounts.size;
  }

  /** Begins a change. The usage must have been read from storage in the same turn. Whoever opens must settle or release. */
  open(root: RootAtStart): Holding {
    let account = this.#pages.accounts.get(root.owner);
    if (account === undefined) {
      const { liveBytes, trashBytes, stagingBytes, liveInodes, trashInodes } = root.usage;
      account = {
        owner: root.owner,
        usedBytes: BigInt(liveBytes + trashBytes + stagingBytes),
        trashBytes,
        stagingBytes,
        reservedBytes: 0n,
        inodes: liveInodes + trashInodes,
        trashInodes,
        reservedInodes: 0,
        holdings: 0,
      };
      this.#pages.accounts.set(root.owner, account);
    }
    account.holdings++;
    return new Holding(account, this.#pages);
  }

  /**
   * Runs one change of a root between its checks and its entry: what it makes and adds is claimed first. Without a claim nothing is
   * checked, as for what frees or moves: that works over quota and on a full disk (D14), and may make no inode. Throws QUOTA_EXCEEDED,
   * INODE_LIMIT or DISK_RESERVE before run is called; nothing stays reserved when run fails.
   */
  async change<T extends { readonly usedDeltaBytes: number; readonly inodeDelta: number }>(
    root: RootAtStart,
    claim: Claim | undefined,
    run: (holding: Holding) => Promise<T>,
  ): Promise<T> {
    const holding = this.open(root);
    try {
      if (claim !== undefined) {
        holding.claimInodes(claim, { requestedBytes: BigInt(claim.addsBytes) });
        holding.reserve(BigInt(claim.addsBytes), BigInt(claim.writesBytes ?? 0));
      }
      const done = await run(holding);
      holding.settle(done);
      return done;
    } finally {
      holding.release();
    }
  }
}

/** What one change has reserved. Ends exactly once, by settle or by release; release after either does nothing. */
export class Holding {
  readonly #account: Account;
  readonly #pages: Pages;
  #reservedBytes = 0n;
  #promisedBytes = 0n;
  #creates = 0;
  #inodes = 0;
  #open = true;

  constructor(account: Account, pages: Pages) {
    this.#account = account;
    this.#pages = pages;
  }

  /** Bytes of the root that are in use, without what is reserved. */
  get usedBytes(): bigint {
    return this.#account.usedBytes;
  }

  /** Files and directories that may be made on this claim. */
  get inodes(): number {
    return this.#inodes;
  }

  /**
   * The one rule for whatever makes files or directories. Throws QUOTA_EXCEEDED when some come into the tree of a root that is at or over
   * its quota, by its used size alone (spec 4.6.1), and INODE_LIMIT when they would be more than the root may hold; else that many are
   * reserved. What was claimed before on this holding is not asked for again. `ownBytes` are used ones that the same upload has staged:
   * they are what is being created, and not held against it.
   */
  claimInodes(
    { creates, keeps = 0 }: Making,
    bytes: { readonly requestedBytes?: bigint; readonly ownBytes?: bigint } = {},
  ): void {
    const account = this.#account;
    const { deps } = this.#pages;
    if (creates > this.#creates) {
      const quotaBytes = deps.quotaBytes(account.owner);
      const usedBytes = account.usedBytes - (bytes.ownBytes ?? 0n);
      if (!mayCreate(quotaBytes, usedBytes))
        throw this.#quotaExceeded(quotaBytes, bytes.requestedBytes ?? 0n);
    }
    const more = creates + keeps - this.#inodes;
    if (more > 0) {
      const limit = deps.inodeLimit(account.owner);
      if (account.inodes + account.reservedInodes + more > limit) throw this.#inodeLimit(limit, more);
      account.reservedInodes += more;
      this.#inodes += more;
    }
    this.#creates = Math.max(this.#creates, creates);
  }

  /**
   * Reserves bytes of the quota and of the disk, or throws QUOTA_EXCEEDED or DISK_RESERVE and reserves nothing (D16, spec 4.6.2 and
   * 4.6.3). Zero bytes are checked too. The disk is asked for diskBytes when they are more.
   */
  reserve(bytes: bigint, diskBytes = 0n): void {
    const account = this.#account;
    const quotaBytes = this.#pages.deps.quotaBytes(account.owner);
    const availableBytes = headroomBytes(quotaBytes, account.usedBytes + account.reservedBytes);
    if (!mayWrite(quotaBytes, account.usedBytes, bytes) || bytes > availableBytes) {
      throw this.#quotaExceeded(quotaBytes, bytes);
    }
    const writtenBytes = diskBytes > bytes ? diskBytes : bytes;
    this.#checkDisk(writtenBytes, this.#pages.promisedBytes);
    account.reservedBytes += bytes;
    this.#reservedBytes += bytes;
    this.#promisedBytes += writtenBytes;
    this.#pages.promisedBytes += writtenBytes;
  }

  /** Checks the disk again before a write of bytes that are reserved already. Throws DISK_RESERVE (spec 4.6.3, each chunk write). */
  checkChunk(bytes: number): void {
    // Promises of others were made with ours in the sum: only a change from outside can have taken what is ours.
    this.#checkDisk(BigInt(bytes), 0n);
  }

  /** Reserved bytes have reached the disk: statfs sees them now, so they must not be counted as promised any longer. */
  wrote(bytes: number): void {
    const written = BigInt(bytes) < this.#promisedBytes ? BigInt(bytes) : this.#promisedBytes;
    this.#promisedBytes -= written;
    this.#pages.promisedBytes -= written;
  }

  /** Reserved bytes are staged on stable storage: they move to the used ones and are in both at no time (D16). Negative when dropped. */
  staged(usedDeltaBytes: number): void {
    const bytes = BigInt(usedDeltaBytes);
    this.#account.usedBytes += bytes;
    if (bytes <= 0n) return;
    const moved = bytes < this.#reservedBytes ? bytes : this.#reservedBytes;
    this.#account.reservedBytes -= moved;
    this.#reservedBytes -= moved;
  }

  /** The change is committed: its effect enters what the root holds and what was reserved is free again, in one step (D16). */
  settle({
    usedDeltaBytes,
    inodeDelta,
  }: {
    readonly usedDeltaBytes: number;
    readonly inodeDelta: number;
  }): void {
    if (!this.#open) return;
    this.#account.usedBytes += BigInt(usedDeltaBytes);
    this.#account.inodes += inodeDelta;
    this.release();
  }

  /** The change is over without effect: what was reserved is free again. */
  release(): void {
    if (!this.#open) return;
    this.#open = false;
    this.#account.reservedBytes -= this.#reservedBytes;
    this.#account.reservedInodes -= this.#inodes;
    this.#pages.promisedBytes -= this.#promisedBytes;
    this.#account.holdings--;
    if (this.#account.holdings === 0) this.#pages.accounts.delete(this.#account.owner);
  }

  #checkDisk(bytes: bigint, promisedBytes: bigint): void {
    const { deps } = this.#pages;
    const disk = { freeBytes: deps.freeBytes(), reserveBytes: deps.reserveBytes, promisedBytes };
    if (leavesReserve(disk, bytes)) return;
    throw new GroveError("DISK_RESERVE", reserveText(disk, bytes), {
      metadata: {
        requested: String(bytes),
        usable_bytes: String(usableBytes(disk)),
        free_bytes: String(disk.freeBytes),
        reserve_bytes: String(disk.reserveBytes),
      },
    });
  }

  #inodeLimit(limit: number, requested: number): GroveError {
    const { owner, inodes, reservedInodes, trashInodes } = this.#account;
    const text = `inode limit reached: ${inodes} of ${limit} files and folders are there, trash included`;
    return new GroveError("INODE_LIMIT", text, {
      metadata: {
        inodes: String(inodes),
        reserved: String(reservedInodes),
        inode_limit: String(limit),
        requested: String(requested),
        trash_inodes: String(trashInodes),
        root_owner: owner,
      },
    });
  }

  #quotaExceeded(quotaBytes: bigint, requestedBytes: bigint): GroveError {
    return new GroveError("QUOTA_EXCEEDED", QUOTA_EXCEEDED_TEXT, {
      metadata: {
        used: String(this.#account.usedBytes),
        reserved: String(this.#account.reservedBytes),
        quota: String(quotaBytes),
        requested: String(requestedBytes),
        trash_bytes: String(this.#account.trashBytes),
        staging_bytes: String(this.#account.stagingBytes),
        root_owner: this.#account.owner,
      },
    });
  }
}
