// Runs steps of actions on nodes over SSH, and reads the outcome of earlier ones.
import type { Clock } from "#base/clock.ts";
import type { Logger } from "#base/log.ts";
import type { SettledTarget, TargetRunner } from "./action-run.ts";
import { SshConnections } from "./ssh-command.ts";
import { runOnTarget } from "./target-run.ts";
import { type TargetTrace, traceOnTarget } from "./target-trace.ts";

/** Dependencies of a runner. */
export interface SshRunnerDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly keyFile: string;
  /** Values that outputs mask. */
  readonly secrets: () => readonly string[];
  /** Replaces the users of the enrolled nodes. */
  readonly user: string | undefined;
  readonly isHealthy: TargetRunner["isHealthy"];
}

/** A runner with its connections. */
export interface SshRunner {
  readonly runner: TargetRunner;
  close(): Promise<void>;
}

/** Opens no connection before the first action. */
export function openRunner({ clock, log, keyFile, secrets, user, isHealthy }: SshRunnerDeps): SshRunner {
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
      isHealthy,
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
