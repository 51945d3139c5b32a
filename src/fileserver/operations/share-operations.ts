// Share, Unshare and ListShares: access of other users to a part of one's root (spec 4.5, D13).
import type { AuditSink } from "#base/audit-act.ts";
import { GroveError } from "#base/errors.ts";
import { LIST_PAGE_MAX } from "#base/limits.ts";
import { joinPath } from "#base/names.ts";
import { personsUsername } from "#security/policy/group.ts";
import type { InodeId } from "#storage/contract/inode.ts";
import type { SharedPath, Storage } from "#storage/contract/storage.ts";
import type { ListSharesResponse } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { type Access, existing, type Reached, retryWhenStale } from "./access.ts";
import type { Caller } from "./caller.ts";
import type { Changes } from "./changes.ts";
import type { LockRule } from "./lock-rule.ts";
import type { Place } from "./namespace-operations.ts";
import type { OperationMeter } from "./operation-meter.ts";

/** The request of ListShares. */
export interface ListSharesRequest extends Place {
  readonly pageSize: number;
  readonly pageToken: string;
}

type Plain<T> = Omit<T, "$typeName" | "$unknown">;

/** The request of Share and Unshare. */
export interface ShareRequest {
  readonly root: string;
  readonly path: string;
  /** The other user, who may be unknown yet: a share takes effect at the first sign-in with that address. */
  readonly user: string;
}

/** The reply of both. */
export interface ShareReply {
  readonly affectedInodes: bigint;
  /** Always the owner, also for files that others put there (D13). */
  readonly paysQuota: "owner";
}

/** Dependencies of the operations. */
export interface ShareDeps {
  readonly storage: Pick<Storage, "shares">;
  readonly access: Access;
  readonly changes: Changes;
  readonly locks: Pick<LockRule, "endPowerless">;
  readonly meter: OperationMeter;
  /** Resolves when the MetaServer has acknowledged a root's shares, or its time is over; never rejects. */
  readonly told: (owner: string) => Promise<void>;
  /** True for the address of a removed user, which takes no new shares. */
  readonly isRetired: (username: string) => boolean;
  readonly audit: AuditSink;
}

const VERB = { share: "grant", unshare: "revoke" } as const;
const AUDITED = { share: "share.add", unshare: "share.remove" } as const;

function tokenOf({ path, username }: SharedPath, at: InodeId): string {
  return Buffer.from(JSON.stringify([at, path, username])).toString("base64url");
}

function readToken(token: string, at: InodeId): SharedPath {
  if (token === "") return { path: "", username: "" };
  try {
    const parts: unknown = JSON.parse(Buffer.from(token, "base64url").toString("utf8"));
    const [inode, path, username]: unknown[] = Array.isArray(parts) ? parts : [];
    if (inode === at && typeof path === "string" && typeof username === "string") return { path, username };
  } catch {
    // Refused like a token of another listing.
  }
  throw new GroveError("BAD_ARGUMENT", "this page token does not belong to this list of shares");
}

/** The operations on shares; for owners, and managers of groups, alone. Errors are those of D1. */
export class ShareOperations {
  readonly #deps: ShareDeps;

  constructor(deps: ShareDeps) {
    this.#deps = deps;
  }

  /**
   * Lets a user read and write a file, or a folder with all present and later entries, former exclusions
   * included. Repeating it changes nothing. Throws NOT_OWNER, NO_SUCH_PATH, SHARE_LIMIT, and BAD_ARGUMENT for
   * the owner and invalid users.
   */
  share(caller: Caller, request: ShareRequest): Promise<ShareReply> {
    return this.#run("share", caller, request);
  }

  /**
   * Ends a share of a file or folder, and all shares with the user below it; running transfers end at their
   * next chunk. Below a share that continues it adds an exclusion. Throws NOT_OWNER, NO_SUCH_PATH,
   * BAD_ARGUMENT, and SHARE_LIMIT when there is no room for the exclusion.
   */
  unshare(caller: Caller, request: ShareRequest): Promise<ShareReply> {
    return this.#run("unshare", caller, request);
  }

  /**
   * One page of the shares at and below a path, by path and user. Throws NOT_OWNER, NO_SUCH_PATH,
   * BAD_ARGUMENT.
   */
  listShares(
    caller: Caller,
    request: ListSharesRequest,
  ): Plain<ListSharesResponse> | Promise<Plain<ListSharesResponse>> {
    const { access, storage, meter } = this.#deps;
    return meter.run("read", () => {
      const { root, path, pageSize, pageToken } = request;
      if (pageSize > LIST_PAGE_MAX) {
        throw new GroveError("BAD_ARGUMENT", `a page has at most ${LIST_PAGE_MAX} shares`, {
          metadata: { limit: String(LIST_PAGE_MAX) },
        });
      }
      const reached = access.reach(caller.identity, root, path, "share");
      const { id } = existing(reached);
      const page = storage.shares.listed(reached.owner, {
        path: joinPath(reached.names),
        after: readToken(pageToken, id),
        limit: pageSize === 0 ? LIST_PAGE_MAX : pageSize,
      });
      const last = page.isLast ? undefined : page.shares.at(-1);
      return {
        shares: page.shares.map((share) => ({
          $typeName: "grove.v1.ShareEntry",
          path: share.path,
          user: share.username,
          excluded: share.isExcluded,
          madeBy: share.by,
          madeAtMs: BigInt(share.atMs),
        })),
        nextPageToken: last === undefined ? "" : tokenOf(last, id),
      };
    });
  }

  #run(act: "share" | "unshare", caller: Caller, request: ShareRequest): Promise<ShareReply> {
    const { access, changes, locks, storage, meter } = this.#deps;
    return meter.later("write", async () => {
      const username = personsUsername(request.user);
      const { reached, affectedInodes } = await retryWhenStale(async () => {
        const reach = (): Reached => access.reach(caller.identity, request.root, request.path, "share");
        // A lock that ended with a former share does not come back with this one.
        if (act === "share") await locks.endPowerless(reach().owner);
        const reached = reach();
        const inode = existing(reached);
        if (act === "share" && this.#deps.isRetired(username)) {
          throw new GroveError(
            "BAD_ARGUMENT",
            `${username} was removed by an administrator, and nothing is shared with that address until it is released`,
          );
        }
        const done = await changes.run(caller, reached, undefined, (context) =>
          storage.shares[VERB[act]]({ ...context, inodeId: inode.id, username }),
        );
        return { reached, affectedInodes: done.affectedInodes };
      });
      if (affectedInodes > 0) {
        this.#deps.audit({
          act: AUDITED[act],
          actor: caller.identity.username,
          subject: `${reached.owner}:${joinPath(reached.names)}`,
          detail: { user: username, inodes: affectedInodes },
        });
      }
      // An ended share is effective here at once; a new one must be found through the MetaServer.
      if (act === "share") await this.#deps.told(reached.owner);
      return { affectedInodes: BigInt(affectedInodes), paysQuota: "owner" };
    });
  }
}
