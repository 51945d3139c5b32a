// Share and Unshare as the writer runs them: one grant at one inode, whatever lies below it (spec 4.5, T24).
import { GroveError } from "#base/errors.ts";
import { GRANTS_PER_INODE, GRANTS_PER_ROOT } from "#base/limits.ts";
import { holdToPath } from "./followed-path.ts";
import type { InodeId } from "./inode.ts";
import type { InodeRows } from "./inode-rows.ts";
import {
  type DirectoryState,
  type Ledger,
  noLongerThere,
  ROOT_STRIDE,
  type RootState,
  usageOf,
} from "./ledger.ts";
import { pathBelow, type ShareRows } from "./share-rows.ts";
import type { ShareCommand, SharingReply, UnshareCommand } from "./write-commands.ts";

/** What is shared: where it hangs, and how many inodes it stands for. */
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

  /** Grants read and write on an inode and everything below it. Throws SHARE_LIMIT, and BAD_ARGUMENT for the owner's own name. */
  share(command: ShareCommand): SharingReply {
    const root = this.#ledger.root(command.owner, command.accessVersion);
    const { path, inodeCount } = this.#target(root, command);
    const { inodeId, username, by, nowMs } = command;
    if (username === root.owner) {
      throw new GroveError("BAD_ARGUMENT", "this belongs to that user already");
    }
    if (this.#shares.has(inodeId, username)) return replyOf(root, 0);
    const passed = this.#shares.limitPassed(root, inodeId);
    if (passed !== undefined) throw shareLimit(passed);
    this.#shares.add(root, { inodeId, username, grantedBy: by, grantedAtMs: nowMs, path });
    return replyOf(root, inodeCount);
  }

  /**
   * Ends what a user may reach at an inode and below it, grants of their own further down included. Throws SHARED_ABOVE while a grant on a
   * directory above it would go on letting the user in.
   */
  unshare(command: UnshareCommand): SharingReply {
    const root = this.#ledger.root(command.owner, command.accessVersion);
    const { path, above, inodeCount } = this.#target(root, command);
    const { inodeId, username } = command;
    if (username === root.owner) throw new GroveError("BAD_ARGUMENT", "the owner cannot be shut out");
    const holding = above.findIndex((state) => this.#shares.has(state.id, username));
    if (holding >= 0) throw sharedAbove(above.slice(holding), username);
    const taken = this.#shares.takeBelow(root, path, username);
    if (taken.some((grant) => grant.inodeId === inodeId)) return replyOf(root, inodeCount);
    let affected = 0;
    const counted: string[] = [];
    // In the order of their paths, so that what lies below another comes after it.
    for (const grant of taken) {
      if (counted.some((outer) => grant.path.startsWith(`${outer}/`))) continue;
      counted.push(grant.path);
      affected += this.#inodesAt(grant.inodeId);
    }
    return replyOf(root, affected);
  }

  #target(root: RootState, { inodeId, at }: ShareCommand | UnshareCommand): Target {
    if (Math.floor(inodeId / ROOT_STRIDE) !== root.number) throw noLongerThere();
    const inodeCount = this.#inodesAt(inodeId);
    if (inodeId === root.directoryId) return { path: "/", above: [], inodeCount };
    const row = this.#inodes.byId(inodeId);
    if (row === undefined || row.parentId === null) throw noLongerThere();
    const above = this.#ledger.chain(root, row.parentId);
    holdToPath(at, above, row.name);
    return { path: pathBelow(above, row.name), above, inodeCount };
  }

  /** Known from the counters that every directory keeps, so that a share costs the same at any size. */
  #inodesAt(inodeId: InodeId): number {
    return 1 + (this.#ledger.directory(inodeId)?.treeInodes ?? 0);
  }
}

function replyOf(root: RootState, affectedInodes: number): SharingReply {
  return { affectedInodes, usage: usageOf(root), usedDeltaBytes: 0 };
}

function shareLimit(passed: "root" | "inode"): GroveError {
  const limit = passed === "root" ? GRANTS_PER_ROOT : GRANTS_PER_INODE;
  const text =
    passed === "root"
      ? `a user has at most ${limit} shares in all`
      : `one file or folder is shared with at most ${limit} users`;
  return new GroveError("SHARE_LIMIT", text, { metadata: { limit: String(limit) } });
}

function sharedAbove(chain: readonly DirectoryState[], username: string): GroveError {
  const path = chain.length === 1 ? "/" : pathBelow(chain.slice(1), chain[0]?.name ?? "");
  return new GroveError("SHARED_ABOVE", `${username} reaches this through a share of ${path}`, {
    metadata: { shared_path: path, user: username },
  });
}
