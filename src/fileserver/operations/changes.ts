// Runs one change of a root: claims quota, commands storage, and records the outcome in the ledger.
import type { AuditSink } from "#base/audit-act.ts";
import { GroveError } from "#base/errors.ts";
import { joinPath } from "#base/names.ts";
import type { Claim, Holding, QuotaLedger } from "#quota/ledger.ts";
import {
  type ChangeContext,
  type ExpectedVersions,
  etagOf,
  type Inode,
  type TrashedContent,
  type TreeConflictRule,
  type Usage,
} from "#storage/contract/inode.ts";
import type { RootRecord, Storage } from "#storage/contract/storage.ts";
import type { Reached } from "./access.ts";
import type { Caller } from "./caller.ts";
import type { RootUsage } from "./root-usage.ts";
import { auditReplaced } from "./trash-audit.ts";

/** The part of an outcome that every change of storage has. */
interface Outcome {
  readonly usage: Usage;
  readonly usedDeltaBytes: number;
  readonly inodeDelta: number;
  readonly kept?: TrashedContent | undefined;
}

/** The user who makes a change. */
interface Actor {
  readonly identity: Pick<Caller["identity"], "username">;
}

/** The quota and storage steps of every change but uploads, which hold their claim over many messages. */
export class Changes {
  readonly #ledger: QuotaLedger;
  readonly #usage: RootUsage;
  readonly #audit: AuditSink;

  constructor(deps: { ledger: QuotaLedger; usage: RootUsage; audit: AuditSink }) {
    this.#ledger = deps.ledger;
    this.#usage = deps.usage;
    this.#audit = deps.audit;
  }

  /**
   * Claims, runs and records a change at a place reached in this turn. Throws QUOTA_EXCEEDED, INODE_LIMIT,
   * DISK_RESERVE.
   */
  async run<T extends Outcome>(
    caller: Actor,
    reached: Reached,
    claim: Claim | undefined,
    command: (context: ChangeContext, holding: Holding) => Promise<T>,
  ): Promise<T> {
    const done = await this.#run(reached.resolution.root, claim, (holding) =>
      command({ ...contextOf(caller, reached), maxInodes: holding.inodes }, holding),
    );
    auditReplaced(this.#audit, { actor: caller.identity.username, owner: reached.owner }, done);
    return done;
  }

  /** Runs and records a change that the node itself makes to a root read in this turn. */
  runFor<T extends Outcome>(root: RootRecord, command: () => Promise<T>): Promise<T> {
    return this.#run(root, undefined, command);
  }

  async #run<T extends Outcome>(
    { owner, usage }: RootRecord,
    claim: Claim | undefined,
    command: (holding: Holding) => Promise<T>,
  ): Promise<T> {
    const done = await this.#ledger.change({ owner, usage }, claim, command);
    this.#usage.record(owner, done.usage);
    return done;
  }
}

/** What storage checks a change against: the access version of the decision and the path followed. */
export function contextOf(caller: Actor, reached: Reached): ChangeContext {
  const { root } = reached.resolution;
  return {
    owner: root.owner,
    accessVersion: reached.isOwner ? undefined : root.accessVersion,
    lockVersion: root.lockVersion,
    by: caller.identity.username,
    at: joinPath(reached.names),
  };
}

/** Where a move or a copy goes, and the versions that it expects; empty for any. */
export interface ToPlace {
  readonly targetPath: string;
  readonly onConflict: TreeConflictRule;
  readonly ifMatch: string;
  readonly targetIfMatch: string;
}

/** Throws ETAG_MISMATCH unless the wanted etag is empty or the file's own. */
export function requireEtag(file: Inode, ifMatch: string): void {
  if (ifMatch !== "" && ifMatch !== etagOf(file)) {
    throw new GroveError("ETAG_MISMATCH", "the file has changed", { metadata: { etag: etagOf(file) } });
  }
}

/** The versions that a move or a copy expects, as storage takes them. */
export function versionsOf({ ifMatch, targetIfMatch }: ToPlace): ExpectedVersions {
  return { ifMatch: expected(ifMatch), targetIfMatch: expected(targetIfMatch) };
}

/** An expected version as storage takes it. */
export function expected(ifMatch: string): string | undefined {
  return ifMatch === "" ? undefined : ifMatch;
}

/**
 * True for a file without shares, exclusions and links of its own. Whoever replaces anything else needs the right to
 * delete it (D13).
 */
export function mayMakeWay(
  { shares, links }: Pick<Storage, "links" | "shares">,
  owner: string,
  { id, kind }: Inode,
): boolean {
  if (kind !== "file" || shares.at([id]).length > 0) return false;
  return !links.ofRoot(owner).some(({ inodeId }) => inodeId === id);
}
