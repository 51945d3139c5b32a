// An administrator at another user's trash: list, with names only for a reason the user sees, and restore.

import { GroveError } from "#base/errors.ts";
import { LIST_PAGE_MAX, OPERATOR_REASON_MAX_LENGTH } from "#base/limits.ts";
import { errorText, type Logger } from "#base/log.ts";
import { canonicalUsername, joinPath, splitPath } from "#base/names.ts";
import type { ConflictRule } from "#storage/contract/inode.ts";
import { againWhenRowsCome } from "#storage/contract/rows-to-come.ts";
import type { Attr } from "#wire/proto/gen/grove/v1/common_pb.ts";
import type {
  RestoreFileRequest,
  ShowTrashRequest,
  TrashItem,
} from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { type Reached, retryWhenStale } from "./access.ts";
import { attrMessage } from "./attr-message.ts";
import type { OperatorLooks } from "./operator-looks.ts";
import type { AdminCredential, QuotaOperations } from "./quota-operations.ts";
import { auditRestored } from "./trash-audit.ts";
import { claimOfRestore, type TrashDeps, trashMessage } from "./trash-operations.ts";

/** Dependencies of the operations. */
export interface OperatorTrashDeps extends TrashDeps {
  /** The right to it is that of setting quotas (spec 5.5). */
  readonly rights: Pick<QuotaOperations, "adminOf">;
  readonly looks: OperatorLooks;
  readonly log: Logger;
}

type Asked = "operator" | "originalPath" | "pageSize" | "pageToken" | "root" | "trashId";

/** The actor in users' views and logs when only the password was proven, as in changes of quotas. */
const PASSWORD_ACTOR = "administrator";

/** A request whose right and user are known. */
interface Granted {
  readonly actor: string;
  readonly owner: string;
  readonly reason: string;
}

/** The operations; each is audited. Throws NOT_ADMIN, NO_SUCH_PATH where the user has no root here. */
export class OperatorTrash {
  readonly #deps: OperatorTrashDeps;

  constructor(deps: OperatorTrashDeps) {
    this.#deps = deps;
  }

  /** One page of a user's trash. Without a reason, it has no paths or former shares, nor a search by path. */
  list(
    request: Pick<ShowTrashRequest, Asked>,
    credential: AdminCredential,
  ): Promise<{ items: TrashItem[]; nextPageToken: string }> {
    return this.#deps.meter.later("read", async () => {
      const { storage, audit, looks, retentionMs } = this.#deps;
      const granted = await this.#granted(request, credential);
      const { actor, owner, reason } = granted;
      const { pageSize, pageToken, trashId, originalPath } = request;
      if (originalPath !== "" && reason === "") throw reasonNeeded();
      if (pageSize > LIST_PAGE_MAX) {
        throw new GroveError("BAD_ARGUMENT", `a page has at most ${LIST_PAGE_MAX} items`);
      }
      const query = {
        limit: pageSize === 0 ? LIST_PAGE_MAX : pageSize,
        pageToken,
        ...(trashId === "" ? {} : { id: trashId }),
        ...(originalPath === "" ? {} : { originalPath: joinPath(splitPath(originalPath)) }),
      };
      if (reason !== "") await looks.add({ owner, by: actor, reason, restored_path: "" });
      const page = await againWhenRowsCome(() => storage.listTrash(owner, query));
      const detail = { names: reason !== "", items: page.items.length, reason: reason || undefined };
      audit({ act: "trash.look", actor, subject: owner, detail });
      const items = page.items.map((item) => trashMessage(item, retentionMs));
      return {
        items: reason === "" ? items.map(withoutNames) : items,
        nextPageToken: page.nextPageToken ?? "",
      };
    });
  }

  /** Restores an item by the owner's rules; replaces nothing. Throws BAD_ARGUMENT without a reason. */
  restore(
    request: Pick<RestoreFileRequest, "operator" | "root" | "targetPath" | "trashId"> & {
      readonly onConflict: ConflictRule;
    },
    credential: AdminCredential,
  ): Promise<Attr> {
    return this.#deps.meter.later("write", async () => {
      const { storage, audit, looks, log } = this.#deps;
      const { actor, owner, reason } = await this.#granted(request, credential);
      const { trashId, targetPath, onConflict } = request;
      if (reason === "") throw reasonNeeded();
      if (onConflict === "replace") {
        throw new GroveError("BAD_ARGUMENT", "an administrator's restore replaces nothing");
      }
      const names = targetPath === "" ? undefined : splitPath(targetPath);
      const by = { identity: { username: actor } };
      const done = await retryWhenStale(() => {
        const claim = claimOfRestore(storage, owner, trashId, names);
        return this.#deps.changes.run(by, this.#rootOf(owner), claim, (context) =>
          storage.restore({ ...context, trashId, names, onConflict }),
        );
      });
      const path = joinPath(done.names);
      auditRestored(audit, { actor, owner }, { trashId, path, reason });
      // The restore is done, so a full disk must not report it undone; the next save stores the look.
      await looks.add({ owner, by: actor, reason, restored_path: path }).catch((error: unknown) => {
        log.warn("operator_look_not_saved", { error: errorText(error) });
      });
      return attrMessage(done.inode, path, { owner, shared: [], permissions: [] });
    });
  }

  async #granted(
    { root, operator }: Pick<ShowTrashRequest, "operator" | "root">,
    credential: AdminCredential,
  ): Promise<Granted> {
    const right = await this.#deps.rights.adminOf(credential);
    if (!right.success) {
      throw new GroveError("NOT_ADMIN", "permission denied: only a cluster administrator may do this");
    }
    const owner = canonicalUsername(root);
    const reason = (operator?.reason ?? "").trim();
    if (reason.length > OPERATOR_REASON_MAX_LENGTH || /\p{Cc}/u.test(reason)) {
      throw new GroveError(
        "BAD_ARGUMENT",
        `a reason is one line of at most ${OPERATOR_REASON_MAX_LENGTH} characters`,
      );
    }
    if (this.#deps.storage.root(owner) === undefined) {
      throw new GroveError("NO_SUCH_PATH", "no such user on this fileserver");
    }
    return { actor: credential.session()?.identity.username ?? PASSWORD_ACTOR, owner, reason };
  }

  #rootOf(owner: string): Reached {
    const resolution = this.#deps.storage.resolve(owner, []);
    return { owner, names: [], resolution, last: resolution.chain[0], isOwner: false };
  }
}

function withoutNames(item: TrashItem): TrashItem {
  return { ...item, originalPath: "", formerShares: [] };
}

function reasonNeeded(): GroveError {
  return new GroveError(
    "BAD_ARGUMENT",
    "another user's names are told for a reason only, which the user is shown",
  );
}
