// After a restart of the console: what an earlier one left running on nodes is ended, and records say what is known (D7, T14).
import type { Clock } from "#base/clock.ts";
import { NODE_LOCK_GRACE_MS } from "#base/limits.ts";
import { errorText, type Logger } from "#base/log.ts";
import type { SshNode } from "#base/ssh-node.ts";
import type { ActionRecord } from "#webapi/action-record.ts";
import { runBatch } from "./action-batch.ts";
import type { ActionHistory } from "./action-history.ts";
import { finalState, type RecordTarget, unixSeconds, worstExitCode } from "./action-job.ts";
import type { TargetRunner } from "./action-run.ts";
import type { NodeLocks } from "./node-locks.ts";

/** What reconciling needs. */
export interface ReconcileDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly history: ActionHistory;
  readonly runner: TargetRunner;
  readonly locks: NodeLocks;
  readonly nodes: () => Promise<readonly SshNode[]>;
}

/** Nodes that are asked at the same time. */
const PARALLEL = 10;

/**
 * Sees to every record that was unfinished when this console started: its processes are ended on their nodes. Of what was handed over,
 * that this console runs is how its own restart ended.
 */
export async function reconcile(deps: ReconcileDeps): Promise<void> {
  const { history, log } = deps;
  const open = history
    .list()
    .filter(
      ({ state, targets }) => state === "handed_over" || (state === "orphaned" && targets.some(isLost)),
    );
  if (open.length === 0) return;
  const nodes = new Map((await deps.nodes().catch(() => [])).map((node) => [node.id, node]));
  for (const record of open) {
    // Nothing else begins on a node while the old still ends there.
    const ids = record.targets.filter(isLost).map((target) => target.node_id);
    const lock = deps.locks.acquire(record.id, ids, NODE_LOCK_GRACE_MS);
    try {
      await history.put(await settled(record, nodes, deps));
    } catch (error) {
      log.error("action_not_reconciled", { id: record.id, error: errorText(error) });
    } finally {
      if (lock.isHeld) lock.release();
    }
  }
}

const SETTLED = "the console was restarted while this ran";

/** A node of which nobody has looked what became of the action there. */
function isLost({ state, message }: RecordTarget): boolean {
  return state === "running" || state === "pending" || (state === "unknown" && message === undefined);
}

async function settled(
  record: ActionRecord,
  nodes: ReadonlyMap<string, SshNode>,
  { clock, runner }: ReconcileDeps,
): Promise<ActionRecord> {
  const isHandedOver = record.state === "handed_over";
  const targets = new Map(record.targets.map((target) => [target.node_id, target]));
  await runBatch(
    record.targets.filter(isLost),
    { maxParallel: PARALLEL, stopsOnFailure: false },
    new AbortController().signal,
    async (target) => {
      targets.set(target.node_id, await settledTarget(target));
      return true;
    },
  );
  async function settledTarget(target: RecordTarget): Promise<RecordTarget> {
    const finished = { ...target, finished_at: unixSeconds(clock) };
    if (target.started_at === undefined) return { ...finished, state: "skipped", message: SETTLED };
    const node = nodes.get(target.node_id);
    const trace =
      node === undefined
        ? undefined
        : await runner.settle(node, record.id, isHandedOver ? "look" : "end").catch(() => undefined);
    if (trace?.state === "ended") {
      const state = trace.exitCode === 0 ? "succeeded" : isHandedOver ? "failed" : "cancelled";
      return { ...finished, state, exit_code: trace.exitCode, message: SETTLED };
    }
    if (isHandedOver) return { ...finished, state: "succeeded" };
    if (trace?.state === "none")
      return { ...finished, state: "unknown", message: `${SETTLED}; nothing of it runs there now` };
    const why = trace?.message ?? "the node is not enrolled any more";
    return {
      ...finished,
      state: "unknown",
      message: `${SETTLED}; whether it still runs there is not known: ${why}`,
    };
  }
  const all = [...targets.values()];
  const state = isHandedOver ? finalState(all, false) : record.state;
  return { ...record, targets: all, state, finished_at: unixSeconds(clock), exit_code: worstExitCode(all) };
}
