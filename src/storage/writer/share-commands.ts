// Share and Unshare in the writer: one grant or exclusion on one inode, independent of the size below it
// (spec 4.5, T24).
import { GroveError } from "#base/errors.ts";
import type { InodeId } from "#storage/contract/inode.ts";
import { rootNumberOf } from "#storage/contract/inode.ts";
import { holdToPath } from "#storage/metadata/followed-path.ts";
import type { InodeRows } from "#storage/metadata/inode-rows.ts";
import { type PlacedGrant, pathBelow, type ShareRows, shareLimit } from "#storage/metadata/share-rows.ts";
import {
  type DirectoryState,
  type Ledger,
  noLongerThere,
  type RootState,
  usageOf,
} from "#storage/metadata/unit-of-work.ts";
import type { ShareCommand, SharingReply, UnshareCommand } from "./write-commands.ts";

/** The target of a share: its place and its number of inodes. */
interface Target {
  readonly path: string;
  /** Directories above it, the nearest first. */
  readonly above: readonly DirectoryState[];
  readonly inodeCount: number;
}

/** Commands on grants; run one at a time within a transaction. */
export class ShareCommands {
  readonly #ledger: Ledger;
  readonly #inodes: InodeRows;
  readonly #shares: ShareRows;

  constructor(ledger: Ledger, inodes: InodeRows, shares: ShareRows) {
    this.#ledger = ledger;
    this.#inodes = inodes;
    this.#shares = shares;
  }

  /**
   * Lets a user read and write an inode and everything below it. Removes the user's exclusions there, and
   * adds a grant where there was no exclusion or no share above gives access then. Throws SHARE_LIMIT, and
   * BAD_ARGUMENT for the owner's own name.
   */
  share(command: ShareCommand): SharingReply {
    const root = this.#ledger.root(command.owner, command.accessVersion);
    const { path, above, inodeCount } = this.#target(root, command);
    const { inodeId, username } = command;
    if (username === root.owner) {
      throw new GroveError("BAD_ARGUMENT", "this belongs to that user already");
    }
    const shares = this.#shares;
    const own = shares.at(inodeId, username);
    const excluded = shares
      .below(root, path)
      .filter((row) => row.username === username && row.excluded === 1);
    const isInherited = own === "exclusion" && shares.letsIn(above, username);
    if (own === "grant" || isInherited) {
      shares.take(root, excluded);
      return replyOf(root, excluded.length === 0 ? 0 : inodeCount);
    }
    if (own === undefined) this.#requireRoom(root, inodeId, excluded.length);
    shares.take(root, excluded);
    shares.add(root, placed(command, path, 0));
    return replyOf(root, inodeCount);
  }

  /**
   * Ends a user's access to an inode and everything below it, grants further down included. Adds an exclusion
   * where a grant above would continue the access; an existing one stays. Throws SHARE_LIMIT when there is no
   * room for it, and BAD_ARGUMENT.
   */
  unshare(command: UnshareCommand): SharingReply {
    const root = this.#ledger.root(command.owner, command.accessVersion);
    const { path, above, inodeCount } = this.#target(root, command);
    const { inodeId, username } = command;
    if (username === root.owner) throw new GroveError("BAD_ARGUMENT", "the owner cannot be shut out");
    const shares = this.#shares;
    const own = shares.at(inodeId, username);
    const ofUser = shares.below(root, path).filter((row) => row.username === username);
    if (own === "exclusion") {
      const below = ofUser.filter((row) => row.inodeId !== inodeId);
      shares.take(root, below);
      return replyOf(root, this.#letIn(below));
    }
    const isInherited = shares.letsIn(above, username);
    if (isInherited && own === undefined) this.#requireRoom(root, inodeId, ofUser.length);
    shares.take(root, ofUser);
    if (isInherited) shares.add(root, placed(command, path, 1));
    return replyOf(root, isInherited || own === "grant" ? inodeCount : this.#letIn(ofUser));
  }

  /** Inodes that the outermost grants of rows cover; the rows are in the order of their paths. */
  #letIn(rows: readonly PlacedGrant[]): number {
    let inodes = 0;
    const counted: string[] = [];
    for (const { path, inodeId, excluded } of rows) {
      if (excluded === 1 || counted.some((outer) => path.startsWith(`${outer}/`))) continue;
      counted.push(path);
      inodes += this.#inodesAt(inodeId);
    }
    return inodes;
  }

  #requireRoom(root: RootState, inodeId: InodeId, gone: number): void {
    const passed = this.#shares.limitPassed(root, inodeId, gone);
    if (passed !== undefined) throw shareLimit(passed);
  }

  #target(root: RootState, { inodeId, at }: ShareCommand | UnshareCommand): Target {
    if (rootNumberOf(inodeId) !== root.number) throw noLongerThere();
    const inodeCount = this.#inodesAt(inodeId);
    if (inodeId === root.directoryId) return { path: "/", above: [], inodeCount };
    const row = this.#inodes.byId(inodeId);
    if (row === undefined || row.parentId === null) throw noLongerThere();
    const above = this.#ledger.chain(root, row.parentId);
    holdToPath(at, above, row.name);
    return { path: pathBelow(above, row.name), above, inodeCount };
  }

  /** Taken from the counters of each directory, so that a share costs the same at any size. */
  #inodesAt(inodeId: InodeId): number {
    return 1 + (this.#ledger.directory(inodeId)?.treeInodes ?? 0);
  }
}

function replyOf(root: RootState, affectedInodes: number): SharingReply {
  return { affectedInodes, usage: usageOf(root), usedDeltaBytes: 0 };
}

function placed(command: ShareCommand | UnshareCommand, path: string, excluded: 0 | 1): PlacedGrant {
  const { inodeId, username, by, nowMs } = command;
  return { inodeId, username, grantedBy: by, grantedAtMs: nowMs, path, excluded };
}
