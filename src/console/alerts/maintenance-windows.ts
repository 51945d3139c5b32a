// Windows in which what an action does to its nodes is not told: restarts, absences, errors (decisions D7, D11).
import { z } from "zod";
import type { Clock } from "#base/clock.ts";
import { type Random, systemRandom } from "#base/random.ts";
import { ulid } from "#base/ulid.ts";
import type { AlertType } from "#wire/webapi/alert.ts";

/** Maintenance windows open at once, one per action. */
export const MAINTENANCE_WINDOWS_MAX = 1_000;
/** A window goes on for this long after its nodes answer again (decision D7). */
const MAINTENANCE_AFTER_HEALTHY_MS = 60_000;

/** What opens a window. */
export interface MaintenanceWindow {
  readonly nodeIds: readonly string[];
  /** Its end at the latest, in wall milliseconds: the action's limit. */
  readonly untilWallMs: number;
  /** What it is for, as people read it. */
  readonly reason: string;
}

/** A window as a file keeps it, so that a restart of the console by its own action stays quiet too (T14). */
export const keptWindow = z.object({
  id: z.string(),
  nodeIds: z.array(z.string()),
  untilWallMs: z.number(),
  reason: z.string(),
  isClosed: z.boolean(),
});

/** A window as a file keeps it. */
export type KeptWindow = z.infer<typeof keptWindow>;

/** What maintenance mutes; all else is told as ever. */
const MUTED: ReadonlySet<AlertType> = new Set<AlertType>(["service_restart", "node_offline", "error_spike"]);

interface OpenWindow {
  readonly id: string;
  readonly reason: string;
  readonly untilWallMs: number;
  readonly untilSteadyMs: number;
  /** The nodes for which it still holds; since when each has answered, once the action has ended. */
  readonly nodes: Map<string, number | undefined>;
  isClosed: boolean;
}

/** All windows. Their ends are given by the wall clock and measured on the steady one from then on. */
export class MaintenanceWindows {
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #windows = new Map<string, OpenWindow>();

  constructor(clock: Clock, random: Random = systemRandom) {
    this.#clock = clock;
    this.#random = random;
  }

  /** Opens a window at once and answers its id. Of too many, the oldest is forgotten. */
  open(window: MaintenanceWindow): string {
    const id = ulid(this.#clock, this.#random);
    this.#add({ ...window, id, isClosed: false });
    return id;
  }

  /** The action has ended: each node is muted until it has answered for 60 s from now on, at most until the window's end. */
  close(id: string): void {
    const window = this.#windows.get(id);
    if (window !== undefined) window.isClosed = true;
  }

  /** Takes notice of whether a node answers, once per round. */
  sawNode(nodeId: string, isHealthy: boolean): void {
    const nowMs = this.#clock.steadyMs();
    for (const window of this.#windows.values()) {
      if (!window.isClosed || !window.nodes.has(nodeId)) continue;
      const sinceMs = isHealthy ? (window.nodes.get(nodeId) ?? nowMs) : undefined;
      if (sinceMs !== undefined && nowMs - sinceMs >= MAINTENANCE_AFTER_HEALTHY_MS) {
        window.nodes.delete(nodeId);
      } else {
        window.nodes.set(nodeId, sinceMs);
      }
    }
  }

  /** True while a type of alert of this node is not to be told. */
  mutes(type: AlertType, nodeId: string | undefined): boolean {
    return nodeId !== undefined && MUTED.has(type) && this.until(nodeId) !== undefined;
  }

  /** Until when a node is under maintenance at most, in wall milliseconds; undefined when it is not. */
  until(nodeId: string): number | undefined {
    this.#sweep();
    let latest: number | undefined;
    for (const { nodes, untilWallMs } of this.#windows.values()) {
      if (nodes.has(nodeId) && untilWallMs > (latest ?? 0)) latest = untilWallMs;
    }
    return latest;
  }

  /** All windows that hold for any node, as a file keeps them. */
  kept(): KeptWindow[] {
    this.#sweep();
    return [...this.#windows.values()].map(({ id, nodes, untilWallMs, reason, isClosed }) => ({
      id,
      nodeIds: [...nodes.keys()],
      untilWallMs,
      reason,
      isClosed,
    }));
  }

  /** Takes the windows of an earlier run. */
  restore(windows: readonly KeptWindow[]): void {
    for (const window of windows) this.#add(window);
  }

  #add(window: KeptWindow | (MaintenanceWindow & { id: string; isClosed: boolean })): void {
    const first = this.#windows.keys().next();
    if (this.#windows.size >= MAINTENANCE_WINDOWS_MAX && first.done !== true)
      this.#windows.delete(first.value);
    const lastsMs = window.untilWallMs - this.#clock.wallMs();
    this.#windows.set(window.id, {
      id: window.id,
      reason: window.reason,
      untilWallMs: window.untilWallMs,
      untilSteadyMs: this.#clock.steadyMs() + lastsMs,
      nodes: new Map(window.nodeIds.map((nodeId) => [nodeId, undefined])),
      isClosed: window.isClosed,
    });
  }

  #sweep(): void {
    const nowMs = this.#clock.steadyMs();
    for (const [id, { untilSteadyMs, nodes }] of this.#windows) {
      if (nowMs >= untilSteadyMs || nodes.size === 0) this.#windows.delete(id);
    }
  }
}
