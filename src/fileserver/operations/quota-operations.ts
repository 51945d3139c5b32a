// GetQuota and SetQuota: the right to see a quota, two proofs of the right to set it (spec 5.5, D13, T9).
import type { AuditSink } from "#base/audit-act.ts";
import { GroveError } from "#base/errors.ts";
import { IDS_PER_ROOT } from "#base/limits.ts";
import type { Logger } from "#base/log.ts";
import { canonicalUsername } from "#base/names.ts";
import { NOT_ADMIN_TEXT } from "#base/refusal-texts.ts";
import type { SecurityEventSink } from "#base/security-event.ts";
import type { SlidingWindow } from "#base/sliding-window.ts";
import type { QuotaStore } from "#quota/quota-store.ts";
import type { AdminPassword } from "#security/identity/admin-password.ts";
import { PasswordPath } from "#security/identity/password-path.ts";
import { decide, decideQuotaView } from "#security/policy/decide.ts";
import { groupNameOf } from "#security/policy/group.ts";
import type { Storage } from "#storage/contract/storage.ts";
import type { Peer } from "#wire/grpc/handler.ts";
import type { GetQuotaResponse, SetQuotaResponse } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { type Access, refusalOf } from "./access.ts";
import type { Caller } from "./caller.ts";
import { rootIsFrozen } from "./moving-roots.ts";
import type { RootUsage } from "./root-usage.ts";

/** Metadata that carries the administrator's password hash (spec 4.3, 5.5). */
export const PASSWORD_HASH_HEADER = "x-admin-password-hash";

/** Dependencies of the operations. */
export interface QuotaDeps {
  readonly storage: Pick<Storage, "root">;
  readonly access: Access;
  readonly quotas: QuotaStore;
  readonly usage: Pick<RootUsage, "touch">;
  /** Makes a group's root where it was given to this node: no sign-in of its owner does. */
  readonly ensureGroupRoot: (owner: string) => Promise<void>;
  /** True while a root waits for its switch to another node, which has read the quota already. */
  readonly isFrozen: (owner: string) => boolean;
  readonly adminUsername: string | undefined;
  /** Undefined when `-no_password_path` switches the path off (T9). */
  readonly adminPassword: AdminPassword | undefined;
  readonly passwordFailures: SlidingWindow;
  readonly onSecurityEvent: SecurityEventSink;
  readonly audit: AuditSink;
  readonly log: Logger;
}

/** The proofs that a SetQuota call may bring. */
export interface AdminCredential {
  readonly passwordHash: string | undefined;
  readonly peer: Pick<Peer, "address" | "encrypted">;
  /** The caller by session; undefined for a call without one. Throws why a presented session is invalid. */
  readonly session: () => Caller | undefined;
}

type Plain<T> = Omit<T, "$typeName" | "$unknown">;
type Refusal = { readonly success: false; readonly error: string; readonly inodeLimit: 0n };

/** The operations on quotas. */
export class QuotaOperations {
  readonly #deps: QuotaDeps;
  readonly #passwordPath: PasswordPath;

  constructor(deps: QuotaDeps) {
    this.#deps = deps;
    this.#passwordPath = new PasswordPath(deps);
  }

  /**
   * Quota and usage of a root, for its owner, sharees and the administrator (D13). Throws NOT_SHARED,
   * WRONG_NODE, NO_SUCH_PATH.
   */
  getQuota(caller: Caller, rootName: string): Plain<GetQuotaResponse> {
    const { access, storage, quotas, adminUsername } = this.#deps;
    const owner = access.ownerOf(caller.identity, rootName);
    const { username } = caller.identity;
    const isSharee = owner !== username && access.sharesAnything(owner, username);
    const heir = access.heirOf(owner, caller.identity);
    const heirs = heir === undefined ? [] : [heir];
    const target = { owner, shared: isSharee ? [username] : [], heirs };
    const decision = decideQuotaView(caller.identity, target, adminUsername);
    if (!decision.allowed) throw refusalOf(decision);
    const root = storage.root(owner);
    if (root === undefined) {
      // After a move it says where the root is now.
      if (owner === username || heir !== undefined) access.reach(caller.identity, owner, "/", "read");
      throw new GroveError("NO_SUCH_PATH", "no such user on this fileserver");
    }
    const { liveBytes, trashBytes, stagingBytes, liveInodes, trashInodes } = root.usage;
    const quota = quotas.quotaOf(owner);
    const limit = quotas.inodeLimitOf(owner);
    return {
      quotaBytes: quota.bytes,
      usedBytes: BigInt(liveBytes + trashBytes + stagingBytes),
      liveBytes: BigInt(liveBytes),
      trashBytes: BigInt(trashBytes),
      stagingBytes: BigInt(stagingBytes),
      source: quota.source,
      inodeLimit: BigInt(limit.inodes),
      inodes: BigInt(liveInodes + trashInodes),
      trashInodes: BigInt(trashInodes),
      inodeLimitSource: limit.source,
    };
  }

  /**
   * Sets a quota unless it is kept, and an inode limit where named, for an administrator; succeeds only on stable
   * storage (D6).
   * Other callers get success=false with the text of spec 7. So does an address with too many wrong
   * passwords, without a comparison. Throws why a presented session is invalid, and NODE_DRAINING while the
   * root moves.
   */
  async setQuota(
    request: {
      readonly username: string;
      readonly quotaBytes: bigint;
      readonly inodeLimit?: bigint | undefined;
      readonly keepQuota?: boolean;
    },
    credential: AdminCredential,
  ): Promise<Plain<SetQuotaResponse>> {
    const right = await this.adminOf(credential);
    if (!right.success) return right;
    const { inodeLimit, keepQuota = false } = request;
    if (inodeLimit !== undefined && inodeLimit > BigInt(IDS_PER_ROOT)) {
      return refused(`an inode limit is a number from 0 to ${IDS_PER_ROOT}; 0 is the default`);
    }
    let username: string;
    try {
      username = canonicalUsername(request.username);
    } catch {
      return refused("a username is an e-mail address");
    }
    const { storage, quotas, usage, audit, log } = this.#deps;
    if (groupNameOf(username) !== undefined) await this.#deps.ensureGroupRoot(username);
    if (storage.root(username) === undefined) return refused("no such user on this fileserver");
    if (this.#deps.isFrozen(username)) throw rootIsFrozen();
    const before = { bytes: quotas.quotaBytes(username), inodes: quotas.inodeLimit(username) };
    const limit = inodeLimit === undefined ? undefined : Number(inodeLimit);
    await quotas.set(username, { quotaBytes: keepQuota ? undefined : request.quotaBytes, inodeLimit: limit });
    // A move that began meanwhile may have taken the former one along.
    if (this.#deps.isFrozen(username) || storage.root(username) === undefined) throw rootIsFrozen();
    usage.touch(username);
    const inodes = quotas.inodeLimit(username);
    const facts = {
      quota_bytes: quotas.quotaBytes(username),
      previous_bytes: before.bytes,
      ...(limit === undefined ? {} : { inode_limit: inodes, previous_inode_limit: before.inodes }),
      address: credential.peer.address,
    };
    log.info("quota_set", { user: username, by: right.by, ...facts });
    const actor = right.by === "password" ? "administrator" : right.by;
    audit({ act: "quota.set", actor, subject: username, detail: facts });
    return { success: true, error: "", inodeLimit: BigInt(inodes) };
  }

  /** The administrator proven by session or password. Throws why a presented session is invalid. */
  async adminOf(
    credential: AdminCredential,
  ): Promise<Refusal | { readonly success: true; readonly by: string }> {
    const { passwordHash, peer } = credential;
    const verdict = await this.#passwordPath.judge(passwordHash, peer);
    if (verdict.isRight) return { success: true, by: "password" };
    const why = verdict.obstacle === undefined ? "" : `; ${verdict.obstacle}`;
    const answer = refused(`${NOT_ADMIN_TEXT}${why}`);
    const caller = credential.session();
    if (caller === undefined) return answer;
    const { username } = caller.identity;
    const decision = decide(
      caller.identity,
      "admin",
      { owner: username, shared: [] },
      this.#deps.adminUsername,
    );
    return decision.allowed ? { success: true, by: username } : answer;
  }
}

function refused(error: string): Refusal {
  return { success: false, error, inodeLimit: 0n };
}
