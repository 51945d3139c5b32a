// Windows that mute alerts caused by an action on its nodes: restarts, absences, errors (decisions D7, D11).
import { z } from "zod";
import type { Clock } from "#base/clock.ts";
import { type Random, systemRandom } from "#base/random.ts";
import { ulid } from "#base/ulid.ts";
import type { AlertType } from "#wire/webapi/alert.ts";

/** Maintenance windows open at once, one per action. */
export const MAINTENANCE_WINDOWS_MAX = 1_000;
/** Time for which a window continues after its nodes answer again (decision D7). */
const MAINTENANCE_AFTER_HEALTHY_MS = 60_000;

/** A request for a window. */
export interface MaintenanceWindow {
  readonly nodeIds: readonly string[];
  /** Its latest end in wall milliseconds: the action's limit. */
  readonly untilWallMs: number;
  /** Its purpose, for operators. */
  readonly reason: string;
}

/** A window in a file, so that a restart of the console by its own action stays muted too (T14). */
export const storedWindow = z.object({
  id: z.string(),
  nodeIds: z.array(z.string()),
  untilWallMs: z.number(),
  reason: z.string(),
  isClosed: z.boolean(),
});

/** A window in a file. */
export type StoredWindow = z.infer<typeof storedWindow>;

/** The types that maintenance mutes. */
const MUTED: ReadonlySet<AlertType> = new Set<AlertType>(["service_restart", "node_offline", "error_spike"]);

interface OpenWindow {
  readonly id: string;
  readonly reason: string;
  readonly untilWallMs: number;
  readonly untilSteadyMs: number;
  /** The nodes still muted; with the time since which each has answered, once the action has ended. */
  readonly nodes: Map<string, number | undefined>;
  isClosed: boolean;
}

/** All windows. The wall clock sets their ends, which the steady clock measures from then on. */
export class MaintenanceWindows {
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #windows = new Map<string, OpenWindow>();

  constructor(clock: Clock, random: Random = systemRandom) {
    this.#clock = clock;
    this.#random = random;
  }

  /** Opens a window at once and returns its id. At the limit the oldest is removed. */
  open(window: MaintenanceWindow): string {
    const id = ulid(this.#clock, this.#random);
    this.#add({ ...window, id, isClosed: false });
    return id;
  }

  /** Ends the action: each node stays muted until it has answered for 60 s, or until the window's end. */
  close(id: string): void {
    const window = this.#windows.get(id);
    if (window !== undefined) window.isClosed = true;
  }

  /** Records whether a node answers, once per round. */
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

  /** True while alerts of this type are muted for this node. */
  mutes(type: AlertType, nodeId: string | undefined): boolean {
    return nodeId !== undefined && MUTED.has(type) && this.until(nodeId) !== undefined;
  }

  /** Latest end of a node's maintenance in wall milliseconds; undefined without one. */
  until(nodeId: string): number | undefined {
    this.#sweep();
    let latest: number | undefined;
    for (const { nodes, untilWallMs } of this.#windows.values()) {
      if (nodes.has(nodeId) && untilWallMs > (latest ?? 0)) latest = untilWallMs;
    }
    return latest;
  }

  /** All windows with muted nodes, for a file. */
  kept(): StoredWindow[] {
    this.#sweep();
    return [...this.#windows.values()].map(({ id, nodes, untilWallMs, reason, isClosed }) => ({
      id,
      nodeIds: [...nodes.keys()],
      untilWallMs,
      reason,
      isClosed,
    }));
  }

  /** Restores the windows of an earlier run. */
  restore(windows: readonly StoredWindow[]): void {
    for (const window of windows) this.#add(window);
  }

  #add(window: StoredWindow | (MaintenanceWindow & { id: string; isClosed: boolean })): void {
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
