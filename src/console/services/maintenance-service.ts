// Puts nodes into maintenance and takes them out: silence here, no new roots by the metadata store, a line for whoever looks (D11, D19).

import type { AuditSink } from "#base/audit-act.ts";
import type { Clock } from "#base/clock.ts";
import { errorText, type Logger } from "#base/log.ts";
import type { MaintenanceStore } from "#console/alerts/maintenance-store.ts";
import type { KeptMaintenance, MaintenanceRequest, NodeMaintenance } from "#wire/webapi/maintenance.ts";

/** How often the metadata store is told of a maintenance that it could not be told of. */
export const PLACEMENT_PAUSE_RETRY_MS = 10_000;
/** How often it is told of one again, since it may have been lost or restored. */
const PLACEMENT_PAUSE_RENEW_MS = 300_000;

/** Has the metadata store place no new roots on a node until a moment in unix milliseconds, or place them again (undefined). */
export type PausePlacement = (fsId: string, untilWallMs: number | undefined) => Promise<void>;

/** What the service needs. */
export interface MaintenanceServiceDeps {
  readonly book: MaintenanceStore;
  readonly pausePlacement: PausePlacement;
  readonly audit: AuditSink;
  /** Resolves when the audit lines taken so far are on stable storage. */
  readonly flushAudit: () => Promise<void>;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Who asks, for the audit log. */
export interface MaintenanceActor {
  readonly id: string;
  readonly requestId: string;
}

/** What the store was told of a node last. */
interface Told {
  /** Unix seconds; undefined: it may place roots again. */
  readonly until: number | undefined;
  readonly atSteadyMs: number;
  /** Why it does not know. */
  readonly problem: string | undefined;
}

/** The service. One for each console. What the store could not be told is told again until it is, and what it was told from time to time: it may have been lost. */
export class MaintenanceService {
  readonly #deps: MaintenanceServiceDeps;
  readonly #changeListeners = new Set<(nodeId: string) => void>();
  readonly #told = new Map<string, Told>();
  /** Of how many tellings a node waits for the end; a slow store is not asked again meanwhile. */
  readonly #waiting = new Map<string, number>();
  #isClosing = false;
  readonly #stopLooking: () => void;
  /** The store is told one thing after another. */
  #lastStep: Promise<unknown> = Promise.resolve();

  constructor(deps: MaintenanceServiceDeps) {
    this.#deps = deps;
    this.#stopLooking = deps.clock.every(PLACEMENT_PAUSE_RETRY_MS, () => this.#look());
    this.#look();
  }

  /** Tells of each node whose maintenance is another than before; the returned function ends that. */
  onChange(listener: (nodeId: string) => void): () => void {
    this.#changeListeners.add(listener);
    return () => this.#changeListeners.delete(listener);
  }

  /** The node's maintenance; undefined when it is in none. */
  of(nodeId: string): NodeMaintenance | undefined {
    const kept = this.#deps.book.of(nodeId);
    return kept === undefined ? undefined : this.#shown(kept);
  }

  /** All nodes that are in maintenance. */
  list(): NodeMaintenance[] {
    return this.#deps.book.list().map((kept) => this.#shown(kept));
  }

  /** Puts a node into maintenance, or changes its end; resolves once that holds and the store has been asked. Throws BAD_ARGUMENT. */
  async begin(
    nodeId: string,
    request: MaintenanceRequest,
    actor: MaintenanceActor,
  ): Promise<NodeMaintenance> {
    const kept = await this.#deps.book.begin(nodeId, request, `operator:${actor.id}`);
    await this.#tell(nodeId, kept.ends_at);
    const shown = this.#shown(kept);
    await this.#record("maintenance.begin", nodeId, actor, {
      ends_at: kept.ends_at,
      comment: kept.comment,
      placement_paused: shown.placement_paused,
    });
    return shown;
  }

  /** Ends a node's maintenance now; resolves with undefined when it was in none. */
  async end(nodeId: string, actor: MaintenanceActor): Promise<NodeMaintenance | undefined> {
    const kept = await this.#deps.book.end(nodeId);
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

  /** Tells the store no more, once what is under way has ended. */
  async close(): Promise<void> {
    this.#isClosing = true;
    this.#stopLooking();
    await this.#lastStep;
  }

  #shown(kept: KeptMaintenance): NodeMaintenance {
    const told = this.#told.get(kept.node_id);
    const isKnown = told?.problem === undefined && told?.until === kept.ends_at;
    return {
      ...kept,
      placement_paused: isKnown,
      ...(told?.problem === undefined ? {} : { placement_problem: told.problem }),
    };
  }

  /** Tells the store what it does not know, and again what it was told long ago. */
  #look(): void {
    const { book, clock } = this.#deps;
    const nowMs = clock.steadyMs();
    const wanted = new Map(book.list().map(({ node_id: id, ends_at: until }) => [id, until]));
    for (const [nodeId, until] of wanted) {
      if (this.#waiting.has(nodeId)) continue;
      const told = this.#told.get(nodeId);
      const isFresh = told?.problem === undefined && told?.until === until;
      if (!isFresh || nowMs - told.atSteadyMs >= PLACEMENT_PAUSE_RENEW_MS) void this.#tell(nodeId, until);
    }
    const untold = new Set(book.untold());
    for (const nodeId of untold) if (!this.#waiting.has(nodeId)) void this.#tell(nodeId, undefined);
    // What was to end by itself has.
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

  /** Never rejects: what came of it is kept. */
  #tell(nodeId: string, until: number | undefined): Promise<void> {
    const { pausePlacement, clock, log } = this.#deps;
    this.#waiting.set(nodeId, (this.#waiting.get(nodeId) ?? 0) + 1);
    const mine = this.#lastStep.then(async () => {
      // The next console tells it.
      if (this.#isClosing) return;
      let problem: string | undefined;
      try {
        await pausePlacement(nodeId, until === undefined ? undefined : until * 1_000);
        if (until === undefined) await this.#deps.book.told(nodeId);
      } catch (error) {
        problem = errorText(error);
        log.warn("placement_not_paused", { node: nodeId, error: problem });
      }
      // Told since then, it may have ended or got another end.
      if (this.#deps.book.of(nodeId)?.ends_at === until) {
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
