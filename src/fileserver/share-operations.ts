// Share and Unshare: who else may read and write in a part of one's root (spec 4.5, D13).
import type { AuditSink } from "#base/audit-act.ts";
import { canonicalUsername, joinPath } from "#base/names.ts";
import type { Storage } from "#storage/storage.ts";
import { type Access, existing, retryWhenStale } from "./access.ts";
import type { Caller } from "./caller.ts";
import type { Changes } from "./changes.ts";
import type { OperationMeter } from "./operation-meter.ts";

/** What both operations are asked. */
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
  readonly audit: AuditSink;
}

const VERB = { share: "grant", unshare: "revoke" } as const;
const AUDITED = { share: "share.add", unshare: "share.remove" } as const;

/** The operations on shares; for owners alone. Errors are those of D1. */
export class ShareOperations {
  readonly #deps: ShareDeps;

  constructor(deps: ShareDeps) {
    this.#deps = deps;
  }

  /**
   * Lets a user read and write a file, or a folder with all that is and will be in it. A second time changes nothing. Throws NOT_OWNER,
   * NO_SUCH_PATH, SHARE_LIMIT, and BAD_ARGUMENT for the owner and for what is no user.
   */
  share(caller: Caller, request: ShareRequest): Promise<ShareReply> {
    return this.#run("share", caller, request);
  }

  /**
   * Ends it for that file or folder and for everything in it, also for what was shared with the user further down; running transfers end
   * at their next chunk. Throws NOT_OWNER, NO_SUCH_PATH, and SHARED_ABOVE while a share of a folder above still lets the user in.
   */
  unshare(caller: Caller, request: ShareRequest): Promise<ShareReply> {
    return this.#run("unshare", caller, request);
  }

  #run(act: "share" | "unshare", caller: Caller, request: ShareRequest): Promise<ShareReply> {
    const { access, changes, storage, meter } = this.#deps;
    return meter.later("write", async () => {
      const username = canonicalUsername(request.user);
      const { reached, affectedInodes } = await retryWhenStale(async () => {
        // To own a root is what the right to delete in it means (spec 5.4).
        const reached = access.reach(caller.identity, request.root, request.path, "delete");
        const inode = existing(reached);
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
