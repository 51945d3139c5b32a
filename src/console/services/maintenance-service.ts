// Maintenance of nodes: muted alerts, no new roots from the metadata store, and an audit line (D11, D19).

import type { AuditSink } from "#base/audit-act.ts";
import type { Clock } from "#base/clock.ts";
import { errorText, type Logger } from "#base/log.ts";
import type { MaintenanceStore } from "#console/alerts/maintenance-store.ts";
import type { MaintenanceRequest, NodeMaintenance, StoredMaintenance } from "#wire/webapi/maintenance.ts";

/** Retry interval for a maintenance that the metadata store did not take. */
export const PLACEMENT_PAUSE_RETRY_MS = 10_000;
/** Renewal interval, since the store may have been lost or restored. */
const PLACEMENT_PAUSE_RENEW_MS = 300_000;

/** Stops the placement of new roots on a node until unix milliseconds; undefined resumes it. */
export type PausePlacement = (fsId: string, untilWallMs: number | undefined) => Promise<void>;

/** Dependencies of the service. */
export interface MaintenanceServiceDeps {
  readonly maintenanceStore: MaintenanceStore;
  readonly pausePlacement: PausePlacement;
  readonly audit: AuditSink;
  /** Resolves when the audit lines taken so far are on stable storage. */
  readonly flushAudit: () => Promise<void>;
  readonly clock: Clock;
  readonly log: Logger;
}

/** The operator, for the audit log. */
export interface MaintenanceActor {
  readonly id: string;
  readonly requestId: string;
}

/** The last message about a node to the store. */
interface Told {
  /** Unix seconds; undefined: placement is on. */
  readonly until: number | undefined;
  readonly atSteadyMs: number;
  /** The reason why the store did not take it. */
  readonly problem: string | undefined;
}

/**
 * The service. One instance for each console. It retries failed messages to the store, and renews the others,
 * since the store may have been lost.
 */
export class MaintenanceService {
  readonly #deps: MaintenanceServiceDeps;
  readonly #changeListeners = new Set<(nodeId: string) => void>();
  readonly #told = new Map<string, Told>();
  /** Unfinished messages to the store by node; a slow store gets no more meanwhile. */
  readonly #waiting = new Map<string, number>();
  #isClosing = false;
  readonly #stopLooking: () => void;
  /** Messages to the store are sequential. */
  #lastStep: Promise<unknown> = Promise.resolve();

  constructor(deps: MaintenanceServiceDeps) {
    this.#deps = deps;
    this.#stopLooking = deps.clock.every(PLACEMENT_PAUSE_RETRY_MS, () => this.#look());
    this.#look();
  }

  /** Calls back for each node whose maintenance changes; the returned function ends that. */
  onChange(listener: (nodeId: string) => void): () => void {
    this.#changeListeners.add(listener);
    return () => this.#changeListeners.delete(listener);
  }

  /** The node's maintenance; undefined without one. */
  of(nodeId: string): NodeMaintenance | undefined {
    const kept = this.#deps.maintenanceStore.of(nodeId);
    return kept === undefined ? undefined : this.#shown(kept);
  }

  /** All nodes in maintenance. */
  list(): NodeMaintenance[] {
    return this.#deps.maintenanceStore.list().map((kept) => this.#shown(kept));
  }

  /**
   * Begins a node's maintenance or changes its end; resolves once it is saved and the store was called.
   * Throws BAD_ARGUMENT.
   */
  async begin(
    nodeId: string,
    request: MaintenanceRequest,
    actor: MaintenanceActor,
  ): Promise<NodeMaintenance> {
    const kept = await this.#deps.maintenanceStore.begin(nodeId, request, `operator:${actor.id}`);
    await this.#tell(nodeId, kept.ends_at);
    const shown = this.#shown(kept);
    await this.#record("maintenance.begin", nodeId, actor, {
      ends_at: kept.ends_at,
      comment: kept.comment,
      placement_paused: shown.placement_paused,
    });
    return shown;
  }

  /** Ends a node's maintenance now; resolves to undefined without one. */
  async end(nodeId: string, actor: MaintenanceActor): Promise<NodeMaintenance | undefined> {
    const kept = await this.#deps.maintenanceStore.end(nodeId);
    if (kept === undefined) return undefined;
    await this.#tell(nodeId, undefined);
    const told = this.#told.get(nodeId);
    await this.#record("maintenance.end", nodeId, actor, { placement_paused: told?.problem !== undefined });
    return {
      ...kept,
      placement_paused: told?.problem !== undefined,
      ...(told?.problem === undefined ? {} : { placement_problem: told.problem }),
    };
  }

  /** Ends all messages to the store, once those under way have ended. */
  async close(): Promise<void> {
    this.#isClosing = true;
    this.#stopLooking();
    await this.#lastStep;
  }

  #shown(kept: StoredMaintenance): NodeMaintenance {
    const told = this.#told.get(kept.node_id);
    const isKnown = told?.problem === undefined && told?.until === kept.ends_at;
    return {
      ...kept,
      placement_paused: isKnown,
      ...(told?.problem === undefined ? {} : { placement_problem: told.problem }),
    };
  }

  /** Sends the store what it lacks, and renews old messages. */
  #look(): void {
    const { maintenanceStore, clock } = this.#deps;
    const nowMs = clock.steadyMs();
    const wanted = new Map(maintenanceStore.list().map(({ node_id: id, ends_at: until }) => [id, until]));
    for (const [nodeId, until] of wanted) {
      if (this.#waiting.has(nodeId)) continue;
      const told = this.#told.get(nodeId);
      const isFresh = told?.problem === undefined && told?.until === until;
      if (!isFresh || nowMs - told.atSteadyMs >= PLACEMENT_PAUSE_RENEW_MS) void this.#tell(nodeId, until);
    }
    const untold = new Set(maintenanceStore.untold());
    for (const nodeId of untold) if (!this.#waiting.has(nodeId)) void this.#tell(nodeId, undefined);
    // Drops maintenances that ended by themselves.
    for (const nodeId of this.#told.keys())
      if (!wanted.has(nodeId) && !untold.has(nodeId)) this.#forget(nodeId);
  }

  #changed(nodeId: string): void {
    for (const listener of this.#changeListeners) listener(nodeId);
  }

  #forget(nodeId: string): void {
    this.#told.delete(nodeId);
    this.#changed(nodeId);
  }

  /** Never rejects: the outcome is kept. */
  #tell(nodeId: string, until: number | undefined): Promise<void> {
    const { pausePlacement, clock, log } = this.#deps;
    this.#waiting.set(nodeId, (this.#waiting.get(nodeId) ?? 0) + 1);
    const mine = this.#lastStep.then(async () => {
      // The next console sends it.
      if (this.#isClosing) return;
      let problem: string | undefined;
      try {
        await pausePlacement(nodeId, until === undefined ? undefined : until * 1_000);
        if (until === undefined) await this.#deps.maintenanceStore.told(nodeId);
      } catch (error) {
        problem = errorText(error);
        log.warn("placement_not_paused", { node: nodeId, error: problem });
      }
      // Since the message the maintenance may have ended or got another end.
      if (this.#deps.maintenanceStore.of(nodeId)?.ends_at === until) {
        this.#told.set(nodeId, { until, atSteadyMs: clock.steadyMs(), problem });
      }
      const left = (this.#waiting.get(nodeId) ?? 1) - 1;
      if (left === 0) this.#waiting.delete(nodeId);
      else this.#waiting.set(nodeId, left);
      this.#changed(nodeId);
    });
    this.#lastStep = mine;
    return mine;
  }

  async #record(
    act: "maintenance.begin" | "maintenance.end",
    nodeId: string,
    actor: MaintenanceActor,
    detail: Readonly<Record<string, string | number | boolean>>,
  ): Promise<void> {
    const { audit, flushAudit } = this.#deps;
    audit({ act, actor: actor.id, subject: nodeId, request: actor.requestId, detail });
    await flushAudit();
  }
}
