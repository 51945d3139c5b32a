// Brings the steps of actions to nodes: over SSH, and asks their services for health over their metrics listeners.
import type { Clock } from "#base/clock.ts";
import type { Logger } from "#base/log.ts";
import type { SettledTarget, TargetRunner } from "#orchestration/action-run.ts";
import { SshConnections } from "#orchestration/ssh-command.ts";
import { runOnTarget } from "#orchestration/target-run.ts";
import { type TargetTrace, traceOnTarget } from "#orchestration/target-trace.ts";
import type { ClusterWatch } from "./cluster-watch.ts";

/** What a runner needs. */
export interface SshRunnerDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly keyFile: string;
  /** What no output may show. */
  readonly secrets: () => readonly string[];
  /** Instead of the users that nodes were enrolled with. */
  readonly user: string | undefined;
  readonly watch: Pick<ClusterWatch, "book" | "addresses" | "poller">;
}

/** A runner with its connections. */
export interface SshRunner {
  readonly runner: TargetRunner;
  close(): Promise<void>;
}

const HEALTH_TIMEOUT_MS = 2_000;
const HEALTH_MAX_BYTES = 65_536;

/** Opens no connection before the first action. */
export function openRunner({ clock, log, keyFile, secrets, user, watch }: SshRunnerDeps): SshRunner {
  const connections = new SshConnections({ clock, log, keyFile });
  const deps = { connections, clock, secrets };
  const targetOf = <T extends { readonly user: string }>(node: T): T =>
    user === undefined ? node : { ...node, user };
  return {
    runner: {
      run: (node, steps, options) => runOnTarget(deps, targetOf(node), steps, options),
      async settle(node, actionId, mode): Promise<SettledTarget> {
        const trace = await traceOnTarget(deps, targetOf(node), { actionId, mode });
        return settledBy(trace);
      },
      isHealthy: (nodeId) => isHealthy(nodeId, watch),
    },
    close: () => connections.close(),
  };
}

function settledBy(trace: TargetTrace): SettledTarget {
  if (trace.state === "ended") return trace;
  if (trace.state === "none" || trace.state === "running") return trace;
  if (trace.state === "left") return { state: "unknown", message: `did not end: ${trace.pids.join(", ")}` };
  return { state: "unknown", message: trace.message };
}

/** A node without a FileServer has nothing that could be asked. */
async function isHealthy(nodeId: string, watch: SshRunnerDeps["watch"]): Promise<boolean> {
  if (watch.book.node(nodeId) === undefined) return !watch.book.isStarting();
  try {
    const target = watch.addresses.target(nodeId);
    await watch.poller.http.get(target, {
      path: "/health",
      timeoutMs: HEALTH_TIMEOUT_MS,
      maxBytes: HEALTH_MAX_BYTES,
    });
    return true;
  } catch {
    return false;
  }
}
