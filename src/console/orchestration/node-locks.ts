// Who holds which node: a batch gets all of its nodes or none, and a lock ends by itself when its holder does not (spec 4.7, decision D7, E-04).
import type { Clock } from "#base/clock.ts";

/** A node that is held. */
export interface HeldNode {
  readonly nodeId: string;
  readonly actionId: string;
  /** Wall milliseconds. */
  readonly sinceWallMs: number;
}

/** What comes of asking for a batch: its nodes, or who holds those that are not free. */
export type BatchLock =
  | { readonly isHeld: true; readonly release: (nodeId?: string) => void }
  | { readonly isHeld: false; readonly heldBy: readonly HeldNode[] };

interface Lock extends HeldNode {
  readonly endsSteadyMs: number;
}

/** The locks of all nodes, in memory: they end with the console that gave them. */
export class NodeLocks {
  readonly #clock: Pick<Clock, "wallMs" | "steadyMs">;
  readonly #locks = new Map<string, Lock>();

  constructor(clock: Pick<Clock, "wallMs" | "steadyMs">) {
    this.#clock = clock;
  }

  /**
   * Takes nodes for an action, in the order of their ids, without waiting. Where one is held, those already taken are given back and
   * nothing is held. Each lock ends leaseMs later by itself; release gives one node back, or all. A lock that has ended and belongs to
   * somebody else by then is left to them.
   */
  acquire(actionId: string, nodeIds: readonly string[], leaseMs: number): BatchLock {
    const taken: Lock[] = [];
    const heldBy: HeldNode[] = [];
    for (const nodeId of new Set(nodeIds.toSorted())) {
      const held = this.holder(nodeId);
      if (held !== undefined) {
        heldBy.push(held);
        continue;
      }
      // Once one is not free the rest is only looked at, so that the refusal names them all.
      if (heldBy.length === 0) taken.push(this.#take(nodeId, actionId, leaseMs));
    }
    const release = (nodeId?: string): void => {
      for (const lock of taken.toReversed()) {
        if (nodeId !== undefined && lock.nodeId !== nodeId) continue;
        if (this.#locks.get(lock.nodeId) === lock) this.#locks.delete(lock.nodeId);
      }
    };
    if (heldBy.length === 0) return { isHeld: true, release };
    release();
    return { isHeld: false, heldBy };
  }

  /** Who holds a node; undefined when it is free. */
  holder(nodeId: string): HeldNode | undefined {
    const lock = this.#locks.get(nodeId);
    if (lock === undefined) return undefined;
    if (this.#clock.steadyMs() < lock.endsSteadyMs) {
      return { nodeId, actionId: lock.actionId, sinceWallMs: lock.sinceWallMs };
    }
    this.#locks.delete(nodeId);
    return undefined;
  }

  /** All nodes that are held, by id. */
  held(): HeldNode[] {
    return [...this.#locks.keys()].toSorted().flatMap((nodeId) => this.holder(nodeId) ?? []);
  }

  #take(nodeId: string, actionId: string, leaseMs: number): Lock {
    const [sinceWallMs, endsSteadyMs] = [this.#clock.wallMs(), this.#clock.steadyMs() + leaseMs];
    const lock = { nodeId, actionId, sinceWallMs, endsSteadyMs };
    this.#locks.set(nodeId, lock);
    return lock;
  }
}
