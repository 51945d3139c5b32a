// Used and promised bytes and inodes of roots and disk: no change passes a limit or the reserve (D16).
import { GroveError } from "#base/errors.ts";
import { QUOTA_EXCEEDED_TEXT, reserveText } from "#base/refusal-texts.ts";
import { headroomBytes, mayCreate, mayWrite } from "./headroom.ts";
import { leavesReserve, usableBytes } from "./reserve.ts";

/** Usage of a root, as storage counts it. */
export interface RootUsage {
  readonly liveBytes: number;
  readonly trashBytes: number;
  readonly stagingBytes: number;
  readonly liveInodes: number;
  readonly trashInodes: number;
}

/** A root at the moment when a change of it begins. */
export interface RootAtStart {
  readonly owner: string;
  readonly usage: RootUsage;
}

/** Dependencies of the ledger. */
export interface LedgerDeps {
  /** The quota in force for a user, in bytes; read at every check, so that a change takes effect at once. */
  readonly quotaBytes: (owner: string) => bigint;
  /** Files and directories that a user's root may hold, its trash included; read like the quota. */
  readonly inodeLimit: (owner: string) => number;
  /** Free space of the data directory's filesystem in bytes; read at every check (spec 4.6.3). */
  readonly freeBytes: () => bigint;
  /** Free space that no write may consume (spec 4.6.3). */
  readonly reserveBytes: bigint;
}

/** What a change did to its root. */
export interface Effect {
  /** Of the root after it. */
  readonly usage: Omit<RootUsage, "liveBytes" | "liveInodes">;
  readonly usedDeltaBytes: number;
  readonly inodeDelta: number;
}

/** The most files and directories that a change makes. */
export interface Making {
  /** New ones in the tree: the root must be below its quota for them, even for an empty one (spec 4.6.1). */
  readonly creates: number;
  /** Rows of the trash alone, for files that a user other than the owner replaces (D13). */
  readonly keeps?: number;
}

/** The claim of a change before it runs. */
export interface Claim extends Making {
  /** Bytes that it may add to the root. */
  readonly addsBytes: number;
  /** Bytes that it may write to the disk when these are more than it adds: a range overwritten by copy. */
  readonly writesBytes?: number;
}

/** One root while a change of it is under way. */
interface Account {
  readonly owner: string;
  usedBytes: bigint;
  trashBytes: number;
  stagingBytes: number;
  reservedBytes: bigint;
  inodes: number;
  trashInodes: number;
  reservedInodes: number;
  holdings: number;
}

/** State that the ledger shares with its holdings. */
interface Pages {
  readonly deps: LedgerDeps;
  readonly accounts: Map<string, Account>;
  promisedBytes: bigint;
}

/**
 * The ledger of D16. A root has an account only while changes of it are under way. The account starts from
 * what storage has committed, then adds the effect that each change reports. Reading storage again in between
 * would count bytes twice that are committed there and still promised here. It runs on one thread, so that a
 * check and its reservation are one step.
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

  /**
   * Begins a change. The caller reads the usage from storage in the same turn, and must settle or release.
   */
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
   * Claims for one change of a root, then runs it. Without a claim nothing is checked: changes that free or
   * move work over quota and on a full disk (D14), and make no inode. Throws QUOTA_EXCEEDED, INODE_LIMIT or
   * DISK_RESERVE before run is called; nothing stays reserved when run fails.
   */
  async change<T extends Effect>(
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

/** The reservations of one change. Ends once, by settle or by release; a later release has no effect. */
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

  /** Used bytes of the root, without reservations. */
  get usedBytes(): bigint {
    return this.#account.usedBytes;
  }

  /** Files and directories that may be made on this claim. */
  get inodes(): number {
    return this.#inodes;
  }

  /**
   * The one rule for making files or directories, which reserves them. Throws QUOTA_EXCEEDED for creates in a
   * root at or over its quota, by its used size alone (spec 4.6.1). Throws INODE_LIMIT when the root may not
   * hold so many. Earlier claims of this holding count towards the request. `ownBytes` are used bytes that
   * the same upload has staged: they do not count against it.
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
   * Reserves bytes of the quota and of the disk, or throws QUOTA_EXCEEDED or DISK_RESERVE and reserves
   * nothing (D16, spec 4.6.2 and 4.6.3). Zero bytes are checked too. The disk check uses diskBytes when they
   * are more.
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

  /** Checks the disk before a write of reserved bytes. Throws DISK_RESERVE (spec 4.6.3, each chunk write). */
  checkChunk(bytes: number): void {
    // Later promises counted this one in their sum, so that only a change from outside can have taken its
    // bytes.
    this.#checkDisk(BigInt(bytes), 0n);
  }

  /** Reserved bytes have reached the disk: statfs counts them now, so that they stop counting as promised. */
  wrote(bytes: number): void {
    const written = BigInt(bytes) < this.#promisedBytes ? BigInt(bytes) : this.#promisedBytes;
    this.#promisedBytes -= written;
    this.#pages.promisedBytes -= written;
  }

  /**
   * Moves reserved bytes that are staged on stable storage to the used ones at once (D16). Negative when
   * dropped.
   */
  staged(usedDeltaBytes: number): void {
    const bytes = BigInt(usedDeltaBytes);
    this.#account.usedBytes += bytes;
    this.#account.stagingBytes += usedDeltaBytes;
    if (bytes <= 0n) return;
    const moved = bytes < this.#reservedBytes ? bytes : this.#reservedBytes;
    this.#account.reservedBytes -= moved;
    this.#reservedBytes -= moved;
  }

  /** Commits the change: its effect enters the root's usage and its reservation ends, in one step (D16). */
  settle({ usage, usedDeltaBytes, inodeDelta }: Effect): void {
    if (!this.#open) return;
    this.#account.usedBytes += BigInt(usedDeltaBytes);
    this.#account.inodes += inodeDelta;
    // Of what fills the root refusals tell as it is now, not as it was when the first of its changes began.
    this.#account.trashBytes = usage.trashBytes;
    this.#account.stagingBytes = usage.stagingBytes;
    this.#account.trashInodes = usage.trashInodes;
    this.release();
  }

  /** Ends the change without effect and frees its reservation. */
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
    const usable = usableBytes(disk);
    const numbers = { writeBytes: bytes, usableBytes: usable, reserveBytes: disk.reserveBytes };
    throw new GroveError("DISK_RESERVE", reserveText(numbers), {
      metadata: {
        requested: String(bytes),
        usable_bytes: String(usable),
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
