// Explains why an operation is allowed or refused: policy, path, quota and reserve in order (spec 5.4).
import { formatBytes } from "#base/bytes.ts";
import type { Clock } from "#base/clock.ts";
import { GroveError, isGroveError } from "#base/errors.ts";
import { joinPath } from "#base/names.ts";
import type { QuotaLedger } from "#quota/ledger.ts";
import type { Heir, Permission } from "#security/policy/decide.ts";
import { groupNameOf } from "#security/policy/group.ts";
import type { Storage } from "#storage/contract/storage.ts";
import { damagedText } from "#storage/metadata/damage-rows.ts";
import { type Access, existing, type Reached, slotOf } from "./access.ts";
import type { Caller } from "./caller.ts";
import type { LockRule } from "./lock-rule.ts";
import type { Place } from "./namespace-operations.ts";
import type { OperationMeter } from "./operation-meter.ts";

/** Users whose access to a place `grove why` explains to its owner, at most. */
const EXPLAINED_USERS_MAX = 20;

/** A permission that a path can be asked about. */
export type Asked = Exclude<Permission, "admin" | "share">;

/** One check and its outcome. */
export interface Step {
  readonly check:
    | "identity"
    | "owner"
    | "grant"
    | "right"
    | "path"
    | "lock"
    | "storage"
    | "quota"
    | "reserve"
    | "scope";
  readonly passed: boolean;
  /** For people, without a full stop. */
  readonly text: string;
}

/** The answer; reason, message and metadata are those of the operation's refusal, else empty. */
export interface Explained {
  readonly allowed: boolean;
  readonly reason: string;
  readonly message: string;
  readonly metadata: Record<string, string>;
  readonly steps: Step[];
  readonly username: string;
  readonly owner: string;
  /** This server's clock. */
  readonly nowMs: bigint;
}

/** The question: a permission, and for a write how many bytes it would add. */
export interface Question extends Place {
  readonly permission: Asked;
  readonly addBytes: bigint;
}

/** Dependencies of the operation. */
export interface ExplainDeps {
  readonly storage: Pick<Storage, "failure" | "shares">;
  readonly access: Access;
  readonly locks: LockRule;
  readonly ledger: QuotaLedger;
  readonly meter: OperationMeter;
  readonly clock: Pick<Clock, "wallMs">;
}

/** Answers `grove why`. */
export class ExplainOperations {
  readonly #deps: ExplainDeps;

  constructor(deps: ExplainDeps) {
    this.#deps = deps;
  }

  /**
   * Takes the steps of an operation without doing it. Reveals no more than the operation's own refusal would
   * (D1), by the same decision. Throws for invalid places: BAD_ARGUMENT, BAD_NAME, WRONG_NODE.
   */
  explain(caller: Caller, question: Question): Explained | Promise<Explained> {
    return this.#deps.meter.run("read", () => {
      const { username } = caller.identity;
      const owner = this.#deps.access.ownerOf(caller.identity, question.root);
      const nowMs = BigInt(Math.floor(this.#deps.clock.wallMs()));
      const steps: Step[] = [{ check: "identity", passed: true, text: `you are ${username}` }];
      try {
        this.#walk(caller, question, owner, steps);
      } catch (error) {
        if (!isGroveError(error) || !isAnswer(error, steps)) throw error;
        return {
          allowed: false,
          reason: error.code,
          message: error.message,
          metadata: { ...error.metadata },
          steps,
          username,
          owner,
          nowMs,
        };
      }
      return { allowed: true, reason: "", message: "", metadata: {}, steps, username, owner, nowMs };
    });
  }

  /** Adds each step that passes; throws the refusal after the first that does not. */
  #walk(caller: Caller, question: Question, owner: string, steps: Step[]): void {
    const reached = this.#right(caller, question, owner, steps);
    if (caller.identity.limit !== undefined) {
      steps.push({ check: "scope", passed: true, text: "the app password that you came with lets you" });
    }
    attempt(steps, "path", () => pathText(reached, question.permission));
    if (question.permission === "read") return;
    this.#lock(caller, reached, question.permission, steps);
    const { failure } = this.#deps.storage;
    if (failure !== undefined) {
      attempt(steps, "storage", () => {
        throw new GroveError("STORAGE_FAILED", failure);
      });
    }
    // A change that frees space works over the quota and on a full disk (D14).
    if (question.permission === "write") this.#room(reached, question, steps);
  }

  /** Locks, where the root has any. */
  #lock(caller: Caller, reached: Reached, permission: Asked, steps: Step[]): void {
    if (reached.resolution.root.lockCount === 0) return;
    const isMissing = reached.resolution.missing.length > 0;
    attempt(steps, "lock", () => {
      if (permission === "delete") this.#deps.locks.require(caller, reached, "tree");
      const touched = permission === "delete" || isMissing ? "entries" : "content";
      this.#deps.locks.require(caller, reached, touched);
      return [undefined, "nobody else has locked it"];
    });
  }

  /** The policy's part: the owner, the source of access, and whether it includes the right asked for. */
  #right(caller: Caller, question: Question, owner: string, steps: Step[]): Reached {
    const { access } = this.#deps;
    const { root, path, permission } = question;
    if (owner === caller.identity.username) {
      const reached = scoped(steps, () => access.reach(caller.identity, root, path, permission));
      steps.push({ check: "owner", passed: true, text: "the root is yours, and with it every right" });
      for (const text of this.#othersThere(reached)) steps.push({ check: "grant", passed: true, text });
      return reached;
    }
    steps.push({
      check: "owner",
      passed: true,
      text: ownerText(owner),
    });
    // The right to look comes first: a caller without it learns nothing more (D1).
    const seen = attempt<Reached>(
      steps,
      "grant",
      () => {
        const found = access.reach(caller.identity, root, path, "read");
        if (found.heir !== undefined) return [found, heirText(owner, found.heir)];
        const depth = access.sharedSubtree(caller.identity, found);
        const at = joinPath(found.names.slice(0, depth));
        return [found, `${at} is shared with you, which gives read and write there and below`];
      },
      () => access.reach(caller.identity, root, path, permission),
    );
    if (permission === "read") return seen;
    return attempt<Reached>(steps, "right", () => [
      access.reach(caller.identity, root, path, permission),
      `${sourceText(owner, seen.heir)} gives the right to ${permission}`,
    ]);
  }

  /** For an owner: other users who reach the place, by which share, and those excluded, in user order. */
  #othersThere({ names, resolution: { chain } }: Reached): string[] {
    const pathOf = new Map(chain.map(({ id }, depth) => [id, joinPath(names.slice(0, depth))]));
    const decided = new Map<string, { readonly by: string; readonly isExcluded: boolean }>();
    for (const { inodeId, username, isExcluded } of this.#deps.storage.shares.at([...pathOf.keys()])) {
      decided.set(username, { by: pathOf.get(inodeId) ?? "/", isExcluded });
    }
    const users = [...decided].toSorted(([a], [b]) => (a < b ? -1 : 1));
    const told = users
      .slice(0, EXPLAINED_USERS_MAX)
      .map(([user, { by, isExcluded }]) =>
        isExcluded
          ? `${user} is kept out, taken out of shares at ${by}`
          : `${user} may read and write it, since ${by} is shared with them`,
      );
    const more = users.length - told.length;
    return more === 0
      ? told
      : [...told, `${more} more are let in or kept out; 'grove share --list' shows all`];
  }

  /** The ledger's part, on a holding that is released at once. */
  #room(reached: Reached, question: Question, steps: Step[]): void {
    const { root } = reached.resolution;
    const holding = this.#deps.ledger.open({ owner: root.owner, usage: root.usage });
    const whose = reached.isOwner ? "your quota" : `the quota of ${root.owner}, who pays,`;
    const bytes = question.addBytes === 0n ? "it" : formatBytes(question.addBytes);
    try {
      if (makesEntry(reached)) holding.claimInodes({ creates: 1 }, { requestedBytes: question.addBytes });
      holding.reserve(question.addBytes);
      steps.push({ check: "quota", passed: true, text: `${whose} has room for ${bytes}` });
      steps.push({
        check: "reserve",
        passed: true,
        text: `the disk has room for ${bytes} above its reserve`,
      });
    } catch (error) {
      if (isGroveError(error, "QUOTA_EXCEEDED")) {
        steps.push({ check: "quota", passed: false, text: `${whose} has no room for ${bytes}` });
      } else if (isGroveError(error, "INODE_LIMIT")) {
        steps.push({
          check: "quota",
          passed: false,
          text: `${whose} has no room for another file or folder`,
        });
      } else if (isGroveError(error, "DISK_RESERVE")) {
        steps.push({ check: "quota", passed: true, text: `${whose} has room for ${bytes}` });
        steps.push({
          check: "reserve",
          passed: false,
          text: `the disk has no room for ${bytes} above its reserve`,
        });
      }
      throw error;
    } finally {
      holding.release();
    }
  }
}

/** True when a write would make a new file or directory: at a path that is missing, or in a directory. */
function makesEntry(reached: Reached): boolean {
  return reached.resolution.missing.length > 0 || reached.last.kind === "directory";
}

/** The entry at the path for the permission asked; throws what the operation would. */
function pathText(reached: Reached, asked: Asked): [undefined, string] {
  if (asked === "write" && reached.resolution.missing.length > 0) {
    slotOf(reached, "PATH_EXISTS");
    return [undefined, "nothing is there yet, and the folder for it is"];
  }
  const inode = existing(reached);
  if (asked === "delete" && inode.parentId === undefined) {
    throw new GroveError("BAD_ARGUMENT", "the root directory itself cannot be deleted");
  }
  // Reads of a damaged file are refused until it is replaced.
  if (asked === "read" && inode.damaged) throw new GroveError("CORRUPT", damagedText);
  return [undefined, inode.kind === "directory" ? "it is a folder" : "it is a file"];
}

/**
 * Adds a passed step with the text that `look` returns; when it throws a refusal, a failed step with that
 * refusal's words. `refusal` throws the operation's own refusal where that is another.
 */
function attempt<T>(
  steps: Step[],
  check: Step["check"],
  look: () => readonly [T, string],
  refusal?: () => unknown,
): T {
  try {
    const [found, text] = look();
    steps.push({ check, passed: true, text });
    return found;
  } catch (error) {
    if (!isGroveError(error)) throw error;
    const isScope = error.metadata["scope"] === "left";
    steps.push({ check: isScope ? "scope" : check, passed: false, text: error.message });
    refusal?.();
    throw error;
  }
}

/** What `look` returns; a refusal by the bounds of a credential becomes a failed step. */
function scoped<T>(steps: Step[], look: () => T): T {
  try {
    return look();
  } catch (error) {
    if (isGroveError(error) && error.metadata["scope"] === "left")
      steps.push({ check: "scope", passed: false, text: error.message });
    throw error;
  }
}

/** True for a refusal that a step explains; a failure before the first step is the call's own. */
function isAnswer(error: GroveError, steps: readonly Step[]): boolean {
  return steps.at(-1)?.passed === false && error.code !== "WRONG_NODE";
}

function ownerText(owner: string): string {
  const group = groupNameOf(owner);
  return group === undefined
    ? `this is the root of ${owner} and not yours, so it takes a share or a handing over`
    : `this is the root of the group ${group}, so it takes a role in it, a share or a handing over`;
}

function heirText(owner: string, { mayDelete, readOnly, mayShare, group }: Heir): string {
  const some = mayDelete ? "read, write and delete" : "read and write";
  const rights = readOnly === true ? "read" : mayShare === true ? `${some}, and share,` : some;
  if (group === undefined)
    return `an administrator has handed this root over to you, which gives ${rights} in all of it`;
  return groupNameOf(owner) === group
    ? `you have a role in the group ${group}, which gives ${rights} in all of it`
    : `an administrator has handed this root over to your group ${group}, which gives ${rights} in all of it`;
}

function sourceText(owner: string, heir: Heir | undefined): string {
  if (heir === undefined) return "a share";
  return heir.group !== undefined && groupNameOf(owner) === heir.group ? "the role" : "the handing over";
}
