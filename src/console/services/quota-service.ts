// Changes quotas for operators: asks the home node, audits, answers (spec 4.3, decisions D6, T9, T17, T23).

import type { z } from "zod";
import type { AuditSink } from "#base/audit-act.ts";
import type { Clock } from "#base/clock.ts";
import { toJson64 } from "#base/json64.ts";
import { errorText, type Logger } from "#base/log.ts";
import { NOT_ADMIN_TEXT } from "#base/refusal-texts.ts";
import type { ClusterState, NodeState } from "#console/cluster/cluster-state.ts";
import { quotaInEffect } from "#console/cluster/quota-in-effect.ts";
import type { UserList } from "#console/cluster/user-list.ts";
import { type OperatorSession, ProblemError } from "#console/http/route.ts";
import type { Directory } from "#metaserver/directory/directory.ts";
import { Code, codeName } from "#wire/framing/status.ts";
import type { quotaChanged } from "#wire/webapi/user.ts";
import {
  homeNodeOf,
  judgedCall,
  type Outcome,
  otherPassword,
  passwordHashFor,
  type Wanted,
} from "./home-node.ts";
import type { SetQuotaOnNode } from "./node-dial.ts";
import { UserChanges } from "./user-changes.ts";

/** Time limit for a node to set a quota, connecting included. */
export const QUOTA_CHANGE_TIMEOUT_MS = 5_000;

/** The answer to a change (decision D6). */
export type QuotaChanged = z.infer<typeof quotaChanged>;

/** Dependencies of the service. */
export interface QuotaServiceDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly cluster: ClusterState;
  readonly directory: Pick<Directory, "findRoot">;
  readonly users: UserList;
  readonly setQuotaOnNode: SetQuotaOnNode;
  readonly audit: AuditSink;
  /** Resolves when the audit lines taken so far are on stable storage. */
  readonly flushAudit: () => Promise<void>;
  /** A node's time limit; shorter in tests. */
  readonly timeoutMs?: number;
}

/** A requested change. */
export interface QuotaRequest {
  /** In its canonical form. */
  readonly username: string;
  /** 0 to 2^64 - 1; 0 removes the entry, so that the default applies. */
  readonly quotaBytes: bigint;
  /** Files and directories, 0 to 2^32 - 1; 0 removes the entry, undefined keeps it. */
  readonly inodeLimit?: number | undefined;
  readonly operator: OperatorSession;
  readonly address: string;
  readonly requestId: string;
}

/** A FileServer's message for a user without a root there (decision D19). */
const NO_SUCH_USER_TEXT = "no such user on this fileserver";

const WANTED: Wanted = {
  failed: "the quota could not be changed",
  late: "whether the quota has changed shows in the list after its next poll",
};

/** The service. Changes of one user's quota are sequential, so that the last request wins. */
export class QuotaService {
  readonly #deps: QuotaServiceDeps;
  readonly #changes = new UserChanges("quotas");

  constructor(deps: QuotaServiceDeps) {
    this.#deps = deps;
  }

  /**
   * Changes a quota. Throws ProblemError: NO_SUCH_USER, NODE_OFFLINE for an unreachable home node (nothing is
   * queued), NODE_ERROR for its refusal, NODE_TIMEOUT for an unknown outcome.
   */
  change(requested: QuotaRequest): Promise<QuotaChanged> {
    return this.#changes.run(requested.username, () => this.#change(requested));
  }

  async #change(requested: QuotaRequest): Promise<QuotaChanged> {
    const node = await homeNodeOf(this.#deps, requested.username);
    const known = await this.#deps.users.find(requested.username);
    const previousBytes = quotaInEffect(known?.quotaBytes);
    let inodeLimit: number;
    try {
      inodeLimit = await this.#ask(node, requested);
    } catch (error) {
      const { problem, outcome } = judgedCall(error, node, WANTED);
      await this.#record(requested, node, { outcome, error: errorText(error) });
      throw problem;
    }
    const quotaBytes = quotaInEffect(requested.quotaBytes);
    const source = requested.quotaBytes === 0n ? "default" : "explicit";
    const inodes = { inodeLimit, inodeLimitExplicit: requested.inodeLimit !== 0 };
    this.#deps.users.quotaWasSet(requested.username, {
      nodeId: node.id,
      quotaBytes,
      source,
      ...(requested.inodeLimit === undefined ? {} : { inodes }),
    });
    await this.#record(requested, node, { outcome: "done", previous_bytes: previousBytes });
    return {
      username: requested.username,
      quota_limit: toJson64(quotaBytes),
      quota_source: source,
      previous_limit: toJson64(previousBytes),
      inode_limit: inodeLimit === 0 ? null : inodeLimit,
      home_node_id: node.id,
      over_quota: (known?.usedBytes ?? 0n) > quotaBytes,
      applied_at: Math.floor(this.#deps.clock.wallMs() / 1000),
    };
  }

  /** Sets it and returns the inode limit in force; 0 from a node without one. */
  async #ask(node: NodeState, { username, quotaBytes, inodeLimit, operator }: QuotaRequest): Promise<number> {
    const passwordHash = passwordHashFor(operator, "changes of quotas");
    const {
      success,
      error,
      inodeLimit: limitTold,
    } = await this.#deps.setQuotaOnNode({
      address: node.address,
      username,
      quotaBytes,
      inodeLimit,
      passwordHash,
      timeoutMs: this.#deps.timeoutMs ?? QUOTA_CHANGE_TIMEOUT_MS,
    });
    if (success) {
      if (inodeLimit === undefined || limitTold > 0n) return Number(limitTold);
      throw new ProblemError(
        "NODE_ERROR",
        "the node knows no inode limits: the quota was set, the limit was not; bring the node up to date",
        { grpc_code: codeName(Code.OK), reason: "NOT_IMPLEMENTED" },
      );
    }
    if (error === NO_SUCH_USER_TEXT) {
      throw new ProblemError(
        "NO_SUCH_USER",
        "this user has never been on the home node: there is no root to set a quota for",
      );
    }
    // The console has verified the operator's password, so the node has another one.
    const told = error === NOT_ADMIN_TEXT ? otherPassword(node) : `the node refused: ${error}`;
    throw new ProblemError("NODE_ERROR", told, {
      grpc_code: codeName(Code.OK),
      reason: error,
    });
  }

  /** Written before the answer, so that the log has every change that an operator has seen succeed. */
  async #record(
    { username, quotaBytes, inodeLimit, operator, address, requestId }: QuotaRequest,
    node: NodeState,
    more: { readonly outcome: Outcome; readonly [fact: string]: string | bigint },
  ): Promise<void> {
    const { audit, flushAudit, log } = this.#deps;
    const limit = inodeLimit === undefined ? {} : { inode_limit: BigInt(inodeLimit) };
    const detail = { quota_bytes: quotaBytes, ...limit, node: node.id, address, ...more };
    audit({ act: "quota.set", actor: operator.id, subject: username, request: requestId, detail });
    log.info("quota_changed", { session: operator.id, ...detail });
    await flushAudit();
  }
}
