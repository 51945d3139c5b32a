// Share, Unshare and ListShares: who else may read and write in a part of one's root (spec 4.5, D13).
import type { AuditSink } from "#base/audit-act.ts";
import { GroveError } from "#base/errors.ts";
import { LIST_PAGE_MAX } from "#base/limits.ts";
import { canonicalUsername, joinPath } from "#base/names.ts";
import type { InodeId } from "#storage/contract/inode.ts";
import type { SharedPath, Storage } from "#storage/contract/storage.ts";
import type { ListSharesResponse } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { type Access, existing, retryWhenStale } from "./access.ts";
import type { Caller } from "./caller.ts";
import type { Changes } from "./changes.ts";
import type { Place } from "./namespace-operations.ts";
import type { OperationMeter } from "./operation-meter.ts";

/** What ListShares is asked. */
export interface ListSharesRequest extends Place {
  readonly pageSize: number;
  readonly pageToken: string;
}

type Plain<T> = Omit<T, "$typeName" | "$unknown">;

/** What Share and Unshare are asked. */
export interface ShareRequest {
  readonly root: string;
  readonly path: string;
  /** Whom it is about. Nobody need have heard of that user: a share waits for whoever signs in with that address. */
  readonly user: string;
}

/** What both answer. */
export interface ShareReply {
  readonly affectedInodes: bigint;
  /** Always the owner, also for what others put there (D13). */
  readonly paysQuota: "owner";
}

/** What the operations are made from. */
export interface ShareDeps {
  readonly storage: Pick<Storage, "shares">;
  readonly access: Access;
  readonly changes: Changes;
  readonly meter: OperationMeter;
  /** Resolves when the MetaServer has heard of a root's shares, or has had its time; never rejects. */
  readonly told: (owner: string) => Promise<void>;
  /** True for the address of a removed user, with which nothing new is shared. */
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
    // Refused like one of another listing.
  }
  throw new GroveError("BAD_ARGUMENT", "this page token does not belong to this list of shares");
}

/** The operations on shares; for owners alone. Errors are those of D1. */
export class ShareOperations {
  readonly #deps: ShareDeps;

  constructor(deps: ShareDeps) {
    this.#deps = deps;
  }

  /**
   * Lets a user read and write a file, or a folder with all that is and will be in it, also what the user was taken out of there. A second
   * time changes nothing. Throws NOT_OWNER,
   * NO_SUCH_PATH, SHARE_LIMIT, and BAD_ARGUMENT for the owner and for what is no user.
   */
  share(caller: Caller, request: ShareRequest): Promise<ShareReply> {
    return this.#run("share", caller, request);
  }

  /**
   * Ends it for that file or folder and for everything in it, also for what was shared with the user further down; running transfers end
   * at their next chunk. Below a share that goes on the user is taken out of it there. Throws NOT_OWNER, NO_SUCH_PATH, BAD_ARGUMENT, and
   * SHARE_LIMIT when there is no room to note that.
   */
  unshare(caller: Caller, request: ShareRequest): Promise<ShareReply> {
    return this.#run("unshare", caller, request);
  }

  /** One page of what is shared at a path and below it, by path and user. Throws NOT_OWNER, NO_SUCH_PATH, BAD_ARGUMENT. */
  listShares(caller: Caller, request: ListSharesRequest): Plain<ListSharesResponse> {
    const { access, storage, meter } = this.#deps;
    return meter.now("read", () => {
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
    const { access, changes, storage, meter } = this.#deps;
    return meter.later("write", async () => {
      const username = canonicalUsername(request.user);
      const { reached, affectedInodes } = await retryWhenStale(async () => {
        const reached = access.reach(caller.identity, request.root, request.path, "share");
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
      // What has ended is ended here, whoever knows; but the way to what was shared must be found.
      if (act === "share") await this.#deps.told(reached.owner);
      return { affectedInodes: BigInt(affectedInodes), paysQuota: "owner" };
    });
  }
}
