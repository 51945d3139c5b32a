// The order of a batch's nodes: parallel or rolling, with a limit and a stop at a failure (spec 4.7, D7).
import type { ActionRequest } from "#wire/webapi/action-request.ts";

/** Nodes on which one action runs at the same time unless it says otherwise. */
export const ACTION_PARALLEL_DEFAULT = 10;

/** Order, limit and stop rule of a batch. */
export interface BatchOrder {
  readonly maxParallel: number;
  /** After a failure, nodes that have not begun are skipped. */
  readonly stopsOnFailure: boolean;
  /** Time a node has to become healthy after its turn, in seconds; 0 skips the check. */
  readonly healthGateSeconds: number;
}

/** The order that a request asks for. A rolling one goes node by node and by default stops at a failure. */
export function orderOf({ strategy }: Pick<ActionRequest, "strategy">): BatchOrder {
  const isRolling = strategy?.mode === "rolling";
  return {
    maxParallel: strategy?.max_parallel ?? (isRolling ? 1 : ACTION_PARALLEL_DEFAULT),
    stopsOnFailure: strategy?.stop_on_failure ?? isRolling,
    healthGateSeconds: strategy?.health_gate_seconds ?? 0,
  };
}

/**
 * Runs each item in order; `run` resolves to its success and never rejects. Returns the skipped items, in
 * order, after a failure or a cancellation.
 */
export async function runBatch<T>(
  items: readonly T[],
  order: Pick<BatchOrder, "maxParallel" | "stopsOnFailure">,
  signal: AbortSignal,
  run: (item: T) => Promise<boolean>,
): Promise<T[]> {
  const waiting = [...items];
  let isStopped = false;
  const worker = async (): Promise<void> => {
    while (!isStopped && !signal.aborted) {
      const item = waiting.shift();
      if (item === undefined) return;
      if (!(await run(item)) && order.stopsOnFailure) isStopped = true;
    }
  };
  const count = Math.min(Math.max(1, order.maxParallel), items.length);
  await Promise.all(Array.from({ length: count }, worker));
  return waiting;
}
