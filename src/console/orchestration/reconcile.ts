// Settles an earlier console's unfinished actions: ends their processes, completes their records (D7, T14).
import type { Clock } from "#base/clock.ts";
import { errorText, type Logger } from "#base/log.ts";
import type { SshNode } from "#base/ssh-node.ts";
import { pause } from "#base/waiting.ts";
import type { ActionRecord } from "#wire/webapi/action-record.ts";
import { ACTION_LIMIT_SECONDS } from "./action-arguments.ts";
import { runBatch } from "./action-batch.ts";
import type { ActionHistory } from "./action-history.ts";
import {
  finalState,
  NODE_LOCK_GRACE_MS,
  ownPart,
  type RecordTarget,
  unixSeconds,
  worstExitCode,
} from "./action-job.ts";
import { HEALTH_GATE_INTERVAL_MS, type SettledTarget, type TargetRunner } from "./action-run.ts";
import type { NodeLocks } from "./node-locks.ts";

/** Time a restarted console waits for the end of its restart's action; a start takes seconds. */
const RECONCILE_PATIENCE_MS = 60_000;
/** Interval in which a metadata store that does not answer is asked for the nodes again. */
const RECONCILE_STORE_INTERVAL_MS = 5_000;

/** Dependencies of reconciling. */
export interface ReconcileDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly history: ActionHistory;
  readonly runner: TargetRunner;
  readonly locks: NodeLocks;
  readonly nodes: () => Promise<readonly SshNode[]>;
  /** Receives each settled record, once it is on stable storage; must not reject. */
  readonly onEnd: (record: ActionRecord) => Promise<void>;
  /** Ends the wait for the metadata store: the console stops, and the next one settles the records. */
  readonly signal: AbortSignal;
}

/** Nodes of one action that are asked concurrently. */
const PARALLEL = 10;
const SETTLED = "the console was restarted while this ran";

/**
 * Settles every record that was unfinished when this console started and ends its processes on the nodes. A
 * handed over restart has succeeded when its end says so, and a reboot when the boot id is new. The nodes are
 * locked when this returns its promise, and free when their record is settled; until the metadata store says
 * where they are, they stay locked.
 */
export async function reconcile(deps: ReconcileDeps): Promise<void> {
  const { history, log, clock, onEnd } = deps;
  const open = history.list().filter((record) => isOpen(record));
  // Locks the nodes before a new action can start there.
  const locked = open.map((record) => ({ record, release: lockOf(record, deps) }));
  if (open.length === 0) return;
  const nodes = await enrolled(deps, locked);
  if (nodes === undefined) return;
  await Promise.all(
    locked.map(async ({ record, release }) => {
      try {
        const done = await settled(record, { ...deps, known: nodes, endsMs: endOf(record, clock) });
        release();
        await history.put(done);
        await onEnd(done);
      } catch (error) {
        release();
        log.error("action_not_reconciled", { id: record.id, error: errorText(error) });
      }
    }),
  );
}

/** Locks the nodes whose outcome is open; returns the release. */
function lockOf(record: ActionRecord, { locks, clock }: ReconcileDeps): () => void {
  const ids = record.targets.filter(isLost).map((target) => target.node_id);
  const lock = locks.acquire(record.id, ids, endOf(record, clock) - clock.steadyMs() + NODE_LOCK_GRACE_MS);
  return () => (lock.isHeld ? lock.release() : undefined);
}

/** The enrolled nodes, once the store answers; undefined when the console stops before. */
async function enrolled(
  deps: ReconcileDeps,
  locked: { readonly record: ActionRecord; release: () => void }[],
): Promise<ReadonlyMap<string, SshNode> | undefined> {
  const { clock, log, signal } = deps;
  for (let isFirst = true; ; isFirst = false) {
    try {
      return new Map((await deps.nodes()).map((node) => [node.id, node]));
    } catch (error) {
      if (isFirst) log.warn("actions_await_store", { actions: locked.length, error: errorText(error) });
    }
    await pause(clock, RECONCILE_STORE_INTERVAL_MS, signal);
    if (signal.aborted) return undefined;
    // The locks' time starts anew: what runs there is not ended yet.
    for (const each of locked) {
      each.release();
      each.release = lockOf(each.record, deps);
    }
  }
}

function isOpen({ state, targets }: ActionRecord): boolean {
  return state === "handed_over" || (state === "orphaned" && targets.some(isLost));
}

/** A node where the action's outcome was not read. */
function isLost({ state, message }: RecordTarget): boolean {
  return state === "running" || state === "pending" || (state === "unknown" && message === undefined);
}

/** Deadline for a node, on the steady clock: a rebooting host has the rest of its time limit. */
function endOf(record: ActionRecord, clock: Clock): number {
  const nowMs = clock.steadyMs();
  if (record.state !== "handed_over" || record.action !== "reboot") return nowMs + RECONCILE_PATIENCE_MS;
  const limitMs = ACTION_LIMIT_SECONDS.reboot * 1_000;
  const begun = Math.max(...record.targets.filter(isLost).map((target) => target.started_at ?? 0));
  const leftMs = begun * 1_000 + limitMs - clock.wallMs();
  return nowMs + Math.min(Math.max(leftMs, RECONCILE_PATIENCE_MS), limitMs);
}

interface Settling extends ReconcileDeps {
  readonly known: ReadonlyMap<string, SshNode>;
  readonly endsMs: number;
}

async function settled(record: ActionRecord, deps: Settling): Promise<ActionRecord> {
  const { clock } = deps;
  const isHandedOver = record.state === "handed_over";
  const actionId = isHandedOver ? ownPart(record.id) : record.id;
  const settle = !isHandedOver ? orphanSettled : record.action === "reboot" ? rebootSettled : restartSettled;
  const targets = new Map(record.targets.map((target) => [target.node_id, target]));
  await runBatch(
    record.targets.filter(isLost),
    { maxParallel: PARALLEL, stopsOnFailure: false },
    new AbortController().signal,
    async (target) => {
      const change: Partial<RecordTarget> =
        target.started_at === undefined
          ? { state: "skipped", message: SETTLED }
          : await settle(target, deps.known.get(target.node_id), { ...deps, actionId });
      targets.set(target.node_id, { ...target, ...change, finished_at: unixSeconds(clock) });
      return true;
    },
  );
  const all = [...targets.values()];
  const state = isHandedOver ? finalState(all, false) : record.state;
  return { ...record, targets: all, state, finished_at: unixSeconds(clock), exit_code: worstExitCode(all) };
}

type SettlingOne = Settling & { readonly actionId: string };

const GONE: SettledTarget = { state: "unknown", message: "the node is not enrolled any more" };

async function traced(
  node: SshNode | undefined,
  { runner, actionId }: SettlingOne,
  mode: "look" | "end",
): Promise<SettledTarget> {
  if (node === undefined) return GONE;
  return await runner
    .settle(node, actionId, mode)
    .catch((error: unknown): SettledTarget => ({ state: "unknown", message: errorText(error) }));
}

/** Ends an orphaned action. */
async function orphanSettled(
  _target: RecordTarget,
  node: SshNode | undefined,
  deps: SettlingOne,
): Promise<Partial<RecordTarget>> {
  let trace = await traced(node, deps, "end");
  // After a power cut a node starts later than its console; what runs there is still to be ended.
  const isAwaited = (): boolean => trace.state === "unknown" && node !== undefined;
  while (isAwaited() && deps.clock.steadyMs() < deps.endsMs) {
    await pause(deps.clock, HEALTH_GATE_INTERVAL_MS);
    trace = await traced(node, deps, "end");
  }
  // The last output before the console's end is lost.
  const cut = { truncated: true };
  if (trace.state === "ended") {
    const state = trace.exitCode === 0 ? "succeeded" : "cancelled";
    return { ...cut, state, exit_code: trace.exitCode, message: SETTLED };
  }
  const why =
    trace.state === "unknown"
      ? `whether it still runs there is not known: ${trace.message}`
      : "nothing of it runs there now";
  return { ...cut, state: "unknown", message: `${SETTLED}; ${why}` };
}

/**
 * Settles this console's own restart by the end that it has left on the node. One that still runs there waits
 * for nothing but this console; without an end and without its processes nobody knows whether it ever began.
 */
async function restartSettled(
  _target: RecordTarget,
  node: SshNode | undefined,
  deps: SettlingOne,
): Promise<Partial<RecordTarget>> {
  let trace = await traced(node, deps, "look");
  const isOpenYet = (): boolean =>
    trace.state === "running" || (trace.state === "unknown" && node !== undefined);
  while (isOpenYet() && deps.clock.steadyMs() < deps.endsMs) {
    await pause(deps.clock, HEALTH_GATE_INTERVAL_MS);
    trace = await traced(node, deps, "look");
  }
  if (trace.state === "running") return { state: "succeeded" };
  if (trace.state !== "ended") {
    const why = trace.state === "unknown" ? trace.message : "its end was not found on the node";
    return { state: "unknown", message: `${SETTLED}; whether it was done is not known: ${why}` };
  }
  return {
    state: trace.exitCode === 0 ? "succeeded" : "failed",
    exit_code: trace.exitCode,
    message: SETTLED,
  };
}

/** Settles a reboot: it needs a new boot id and a healthy service (D7). */
async function rebootSettled(
  { boot_id_before: before }: RecordTarget,
  node: SshNode | undefined,
  deps: SettlingOne,
): Promise<Partial<RecordTarget>> {
  const { clock, runner, endsMs } = deps;
  if (node === undefined || before === undefined)
    return { state: "unknown", message: `${SETTLED}; whether its host restarted is not known` };
  let after: string | undefined;
  for (;;) {
    const trace = after === undefined ? await traced(node, deps, "look") : undefined;
    if (trace !== undefined && trace.state !== "unknown" && trace.bootId !== before) after = trace.bootId;
    const isHealthy = after !== undefined && (await runner.isHealthy(node.id, NEVER).catch(() => false));
    if (after !== undefined && isHealthy) return { state: "succeeded", exit_code: 0, boot_id_after: after };
    if (clock.steadyMs() >= endsMs) break;
    await pause(clock, HEALTH_GATE_INTERVAL_MS);
  }
  if (after !== undefined) {
    const message = "the host started again, but its service is not healthy";
    return { state: "timed_out", reason: "NOT_HEALTHY", message, boot_id_after: after };
  }
  return { state: "timed_out", reason: "NO_NEW_BOOT", message: "the host was not seen to start again" };
}

const NEVER = new AbortController().signal;
