// Locks of nodes: a batch gets all of its nodes or none; each lock expires by itself (spec 4.7, D7, E-04).
import type { Clock } from "#base/clock.ts";

/** A locked node. */
export interface HeldNode {
  readonly nodeId: string;
  readonly actionId: string;
  /** Wall milliseconds. */
  readonly sinceWallMs: number;
}

/** Result of a request: the lock, or the holders of the locked nodes. */
export type BatchLock =
  | { readonly isHeld: true; readonly release: (nodeId?: string) => void }
  | { readonly isHeld: false; readonly heldBy: readonly HeldNode[] };

interface Lock extends HeldNode {
  readonly endsSteadyMs: number;
}

/** The locks of all nodes, in memory: they end with the console's process. */
export class NodeLocks {
  readonly #clock: Pick<Clock, "wallMs" | "steadyMs">;
  readonly #locks = new Map<string, Lock>();

  constructor(clock: Pick<Clock, "wallMs" | "steadyMs">) {
    this.#clock = clock;
  }

  /**
   * Locks nodes for an action, in the order of their ids, without waiting; all of them or none. Each lock
   * expires after leaseMs; release gives back one node or all, but never a lock that another action has taken
   * since.
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
      // After the first locked node the rest is only checked, so that the refusal names every holder.
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

  /** The holder of a node; undefined when it is free. */
  holder(nodeId: string): HeldNode | undefined {
    const lock = this.#locks.get(nodeId);
    if (lock === undefined) return undefined;
    if (this.#clock.steadyMs() < lock.endsSteadyMs) {
      return { nodeId, actionId: lock.actionId, sinceWallMs: lock.sinceWallMs };
    }
    this.#locks.delete(nodeId);
    return undefined;
  }

  /** All locked nodes, by id. */
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
