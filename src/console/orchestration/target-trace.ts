// Inspects an action on a node from outside, and ends all of its processes.
import type { Clock } from "#base/clock.ts";
import {
  type AfterMode,
  afterScript,
  REMOTE_KILL_GRACE_MS,
  REMOTE_TERM_GRACE_MS,
  type ScriptSubject,
} from "./remote-script.ts";
import { askNode, newScriptSecret } from "./remote-session.ts";
import type { SshConnections } from "./ssh-command.ts";
import type { SshRefusal } from "./ssh-refusal.ts";
import { checkSshTarget, type SshTarget } from "./ssh-target.ts";

/** Time limit for an answer about an action on a node, without connecting. */
const REMOTE_ANSWER_TIMEOUT_MS = 10_000;

/** Dependencies of the transport. */
export interface TargetDeps {
  readonly connections: SshConnections;
  readonly clock: Clock;
  /** Configured secrets, masked in all output (D7). */
  readonly secrets: () => readonly string[];
  /** File with a node's boot id; default the kernel's. */
  readonly bootIdFile?: string;
}

/** State of an action on a node. */
export type TargetTrace =
  /** Some of its processes run. */
  | { readonly state: "running"; readonly bootId: string }
  /** It has ended; the node has forgotten it now. */
  | {
      readonly state: "ended";
      readonly exitCode: number;
      readonly failedStep?: number;
      readonly bootId: string;
    }
  /** No process of it runs, and its end is unknown; or it never began. */
  | { readonly state: "none"; readonly bootId: string }
  /** Processes that survived KILL: another user's, or stuck in the kernel. */
  | { readonly state: "left"; readonly pids: readonly number[]; readonly bootId: string }
  | ({ readonly state: "unreachable" } & Omit<SshRefusal, "reason"> & {
        readonly reason: SshRefusal["reason"] | "CONNECTION_LOST";
      });

const BOOT_ID_FILE = "/proc/sys/kernel/random/boot_id";
const UPTIME_FILE = "/proc/uptime";
const END_TIMEOUT_MS = REMOTE_TERM_GRACE_MS + REMOTE_KILL_GRACE_MS + REMOTE_ANSWER_TIMEOUT_MS;

/**
 * Reads the state of an action on a node. `end` also ends it: TERM, ten seconds, KILL, and a check for
 * remaining processes; one that has not begun never will. Rejects with BAD_ARGUMENT for an invalid target,
 * and with the signal's reason.
 */
export async function traceOnTarget(
  deps: TargetDeps,
  target: SshTarget,
  action: { readonly actionId: string; readonly mode: AfterMode; readonly signal?: AbortSignal },
): Promise<TargetTrace> {
  checkSshTarget(target);
  const connection = await deps.connections.open(target, action.signal);
  if ("reason" in connection) return { state: "unreachable", ...connection };
  try {
    const secret = newScriptSecret();
    const script = afterScript(scriptSubject(deps, target, action.actionId, secret), action.mode);
    const timeoutMs = action.mode === "end" ? END_TIMEOUT_MS : REMOTE_ANSWER_TIMEOUT_MS;
    const answers = await askNode({ connection, clock: deps.clock }, script, secret, timeoutMs);
    const trace = answers === undefined ? undefined : readAnswers(answers);
    if (trace !== undefined) return trace;
    connection.drop();
    return { state: "unreachable", reason: "CONNECTION_LOST", message: `${target.host} does not answer` };
  } finally {
    connection.release();
  }
}

/** The subject of a script about an action. */
export function scriptSubject(
  deps: TargetDeps,
  target: SshTarget,
  actionId: string,
  secret: string,
): ScriptSubject {
  const bootIdFile = deps.bootIdFile ?? BOOT_ID_FILE;
  return { actionId, nodeId: target.id, secret, bootIdFile, uptimeFile: UPTIME_FILE };
}

function readAnswers(answers: readonly (readonly string[])[]): TargetTrace | undefined {
  let bootId = "";
  for (const [word, ...rest] of answers) {
    if (word === "boot") bootId = rest[0] ?? "";
    else if (word === "running" || word === "none") return { state: word, bootId };
    else if (word === "left") return { state: "left", pids: rest.map(Number), bootId };
    else if (word === "ended") {
      const [step = "-", code = ""] = rest;
      return {
        state: "ended",
        exitCode: Number(code),
        ...(step === "-" ? {} : { failedStep: Number(step) }),
        bootId,
      };
    }
  }
  return undefined;
}
