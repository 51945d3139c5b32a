// A user's trash for operators: names, and restores of one item, for a reason that the user sees (D13).
import type { z } from "zod";
import type { AuditSink } from "#base/audit-act.ts";
import { toJson64 } from "#base/json64.ts";
import type { Logger } from "#base/log.ts";
import type { NodeState } from "#console/cluster/cluster-state.ts";
import type { OperatorSession } from "#console/http/route.ts";
import { Kind } from "#wire/proto/gen/grove/v1/common_pb.ts";
import type { TrashItem } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import type { UserTrashItem, userTrashPage, userTrashRestored } from "#wire/webapi/user-trash.ts";
import { type HomeNodeDeps, homeNodeOf, judgedCall, passwordHashFor, type Wanted } from "./home-node.ts";
import type { TrashOnNode } from "./node-dial.ts";
import { QUOTA_CHANGE_TIMEOUT_MS } from "./quota-service.ts";

/** Page size of a user's trash. */
export const USER_TRASH_PAGE = 100;

/** Dependencies of the service. */
export interface TrashServiceDeps extends HomeNodeDeps {
  readonly log: Logger;
  readonly onNode: TrashOnNode;
  readonly audit: AuditSink;
  /** Resolves when the earlier audit lines are on stable storage. */
  readonly flushAudit: () => Promise<void>;
}

/** A request for a user's trash, with operator and reason. */
export interface TrashRequest {
  /** In its canonical form. */
  readonly username: string;
  /** Shown to the user. */
  readonly reason: string;
  readonly operator: OperatorSession;
  readonly address: string;
  readonly requestId: string;
}

/** The latest valid Date, in milliseconds. */
const LAST_MOMENT_MS = 8_640_000_000_000_000n;

/**
 * The service. The console's audit log names the operator; node and user see "the administrator" and the
 * reason.
 */
export class TrashService {
  readonly #deps: TrashServiceDeps;

  constructor(deps: TrashServiceDeps) {
    this.#deps = deps;
  }

  /** One page, the newest first. Throws ProblemError as changes of quotas do. */
  list(requested: TrashRequest, pageToken: string): Promise<z.infer<typeof userTrashPage>> {
    const wanted = { failed: "the trash could not be read", late: "nothing was changed by it" };
    return this.#ask("trash.look", requested, wanted, async (node, passwordHash) => {
      const { items, nextPageToken } = await this.#deps.onNode.show({
        ...this.#call(node, requested, passwordHash),
        pageSize: USER_TRASH_PAGE,
        pageToken,
      });
      const next = nextPageToken === "" ? null : nextPageToken;
      const page = { username: requested.username, node_id: node.id, next_page_token: next };
      return { answer: { ...page, items: items.map(itemOf) }, detail: { items: items.length } };
    });
  }

  /** Restores an item without replacing anything. Throws ProblemError as changes of quotas do. */
  restore(
    requested: TrashRequest,
    item: { readonly trashId: string; readonly renames: boolean },
  ): Promise<z.infer<typeof userTrashRestored>> {
    const wanted = {
      failed: "the item could not be brought back",
      late: "whether it is back shows in the list, read anew",
    };
    return this.#ask("trash.restore", requested, wanted, async (node, passwordHash) => {
      const { path } = await this.#deps.onNode.restore({
        ...this.#call(node, requested, passwordHash),
        ...item,
      });
      const answer = { username: requested.username, node_id: node.id, path };
      return { answer, detail: { trash_id: item.trashId, path } };
    });
  }

  #call(
    { address }: NodeState,
    { username, reason }: TrashRequest,
    passwordHash: string,
  ): { address: string; username: string; reason: string; passwordHash: string; timeoutMs: number } {
    return { address, username, reason, passwordHash, timeoutMs: QUOTA_CHANGE_TIMEOUT_MS };
  }

  /** Written before the answer, so that the log has everything that an operator has seen. */
  async #ask<T>(
    act: "trash.look" | "trash.restore",
    requested: TrashRequest,
    wanted: Wanted,
    work: (
      node: NodeState,
      passwordHash: string,
    ) => Promise<{ readonly answer: T; readonly detail: Readonly<Record<string, string | number>> }>,
  ): Promise<T> {
    const passwordHash = passwordHashFor(requested.operator, "the trash of users");
    const node = await homeNodeOf(this.#deps, requested.username);
    try {
      const { answer, detail } = await work(node, passwordHash);
      await this.#record(act, requested, { node: node.id, ...detail, outcome: "done" });
      return answer;
    } catch (error) {
      const { problem, outcome } = judgedCall(error, node, wanted);
      await this.#record(act, requested, { node: node.id, error: problem.message, outcome });
      throw problem;
    }
  }

  async #record(
    act: "trash.look" | "trash.restore",
    { username, reason, operator, address, requestId }: TrashRequest,
    more: Readonly<Record<string, string | number>>,
  ): Promise<void> {
    const { audit, flushAudit, log } = this.#deps;
    const { path: _path, ...logged } = more;
    audit({
      act,
      actor: operator.id,
      subject: username,
      request: requestId,
      detail: { reason, address, ...more },
    });
    log.info("user_trash_asked", { session: operator.id, act, ...logged });
    await flushAudit();
  }
}

function itemOf(item: TrashItem): UserTrashItem {
  return {
    trash_id: item.trashId,
    path: item.originalPath,
    kind: item.kind === Kind.DIRECTORY ? "directory" : "file",
    size: toJson64(item.size),
    trashed_at: secondsOf(item.trashedAtMs),
    expires_at: secondsOf(item.expiresAtMs),
    trashed_by: item.trashedBy,
  };
}

/** Seconds of a node's time; null for an invalid one. */
function secondsOf(ms: bigint): number | null {
  return ms <= 0n || ms > LAST_MOMENT_MS ? null : Number(ms / 1_000n);
}
