// Detects unplanned restarts: another start or boot without an action or maintenance (D24, spec 3.3).
import { alertKey } from "./alert-kinds.ts";
import type { Moment, Occurrence } from "./condition.ts";
import type { NodeName } from "./node-rules.ts";

/** An action or a maintenance that ended less than this ago explains a restart (D24). */
const RESTART_EXPLAINED_MS: number = 5 * 60_000;

/** Identifies one run of a node. Null is unknown. */
export interface NodeLife {
  readonly lastRestartUnix: number | null;
  readonly bootId: string | null;
}

/** Remembers each node's last known run, and the last work on it. */
export class RestartRule {
  readonly #lives = new Map<string, NodeLife>();
  readonly #touchedAtMs = new Map<string, number>();

  /** Records that an action holds a node, or that it is in maintenance. */
  touched(nodeId: string, at: Moment): void {
    this.#touchedAtMs.set(nodeId, at.steadyMs);
  }

  /** Takes a node's run; an unexplained restart is an occurrence. */
  observe(node: NodeName, life: NodeLife, at: Moment): Occurrence | undefined {
    const before = this.#lives.get(node.id);
    this.#lives.set(node.id, {
      lastRestartUnix: life.lastRestartUnix ?? before?.lastRestartUnix ?? null,
      bootId: life.bootId ?? before?.bootId ?? null,
    });
    if (before === undefined) return undefined;
    const isOtherBoot = differs(before.bootId, life.bootId);
    if (!isOtherBoot && !differs(before.lastRestartUnix, life.lastRestartUnix)) return undefined;
    const touchedAtMs = this.#touchedAtMs.get(node.id);
    if (touchedAtMs !== undefined && at.steadyMs - touchedAtMs <= RESTART_EXPLAINED_MS) return undefined;
    return {
      key: alertKey("service_restart", node.id),
      type: "service_restart",
      level: "warning",
      nodeId: node.id,
      nodeName: node.name,
      detail: isOtherBoot ? { machine: "restarted" } : {},
    };
  }

  /** Forgets a removed node. */
  forget(nodeId: string): void {
    this.#lives.delete(nodeId);
    this.#touchedAtMs.delete(nodeId);
  }
}

function differs<T>(before: T | null, now: T | null): boolean {
  return before !== null && now !== null && before !== now;
}
