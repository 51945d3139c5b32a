// What an action runs on a node, argument by argument: pure, so that a dry run shows exactly it (spec 4.7; decisions T14 to T16, D7, D20).
import { isAbsolute } from "node:path";
import { GroveError } from "#base/errors.ts";
import { ACTION_LIMIT_SECONDS } from "#base/limits.ts";
import { type ActionRequest, SERVICES, type Service } from "#webapi/action-request.ts";
import { START_BINARY_SCRIPT } from "./start-binary-script.ts";

/** How a service's compiled binary is started where no service manager does it (spec 2.9, D20). */
export interface BinaryParameters {
  readonly argv: readonly string[];
  /** Absolute. */
  readonly cwd: string;
  /** Never part of arguments: it may hold secrets. */
  readonly env: Readonly<Record<string, string>>;
  /** Absolute. */
  readonly pidFile: string;
}

/** What is known of a service on a node. */
export interface NodeService {
  /** Absolute path of its log, for nodes without a journal. */
  readonly logFile?: string;
  readonly binary?: BinaryParameters;
}

/** What is known of a node that actions run on (D20). */
export interface ActionTarget {
  readonly nodeId: string;
  /** Absolute path of the working copy. */
  readonly repository: string;
  readonly services: Partial<Readonly<Record<Service, NodeService>>>;
  /** True where systemd runs the services and keeps their journal. */
  readonly hasServiceManager: boolean;
}

/** One command. Steps run in order; the first that fails ends the action on this node. */
export interface ActionStep {
  readonly argv: readonly string[];
  /** Absolute folder in which it runs; the home of the remote user without it. */
  readonly cwd?: string;
  /** Set for it alone. Goes over standard input, never into arguments. */
  readonly env?: Readonly<Record<string, string>>;
  /** True when the connection is expected to end with it. */
  readonly endsConnection?: boolean;
  /** True when it ends the console that asked for it: the record is handed over first (T14). */
  readonly endsConsole?: boolean;
}

/** All that an action runs on one node. */
export interface ActionPlan {
  readonly steps: readonly ActionStep[];
  /** For all steps together. */
  readonly limitSeconds: number;
}

const SUDO: readonly string[] = ["sudo", "-n"];
const PLAIN_OUTPUT: Readonly<Record<string, string>> = { SYSTEMD_PAGER: "cat" };
const QUIET_APT: Readonly<Record<string, string>> = { DEBIAN_FRONTEND: "noninteractive" };
/** Waits for another apt instead of failing, and keeps configuration files as they are (D7). */
const APT_OPTIONS: readonly string[] = [
  "-o",
  "DPkg::Lock::Timeout=120",
  "-o",
  "Dpkg::Options::=--force-confold",
];

/** What a request runs on a target. Throws BAD_ARGUMENT when the node lacks what it needs, with a sentence that says what. */
export function planFor(request: ActionRequest, target: ActionTarget): ActionPlan {
  return { steps: stepsFor(request, target), limitSeconds: limitSecondsOf(request) };
}

/** The time that an action may take on each node, in seconds (D7). */
export function limitSecondsOf(request: ActionRequest): number {
  return request.action === "custom" ? request.timeout_seconds : ACTION_LIMIT_SECONDS[request.action];
}

function stepsFor(request: ActionRequest, target: ActionTarget): ActionStep[] {
  const cwd = absolute(target.repository, target, "its repository");
  switch (request.action) {
    case "pull":
      return [{ argv: ["git", "pull", "--ff-only", "--end-of-options", "origin", request.branch], cwd }];
    case "build":
      return [{ argv: ["make", request.make_target], cwd }];
    case "restart":
      return restartSteps(request, target);
    case "reboot":
      return [{ argv: [...SUDO, "reboot"], endsConnection: true }];
    case "apt":
      return aptSteps(request.apt_mode);
    case "logs":
      return [logStep(request.service, request.lines, target)];
    case "custom":
      // The only text that a shell reads: that is what the operator asked for.
      return [{ argv: ["sh", "-c", request.command], cwd }];
  }
}

/** The services that a restart means on this node; the console itself comes last (T14). */
function restartSteps(
  request: Extract<ActionRequest, { action: "restart" }>,
  target: ActionTarget,
): ActionStep[] {
  const { target_service: wanted, restart_mode: mode } = request;
  const here = SERVICES.filter((service) => target.services[service] !== undefined);
  const services = wanted === "all" ? here : here.filter((service) => service === wanted);
  if (services.length === 0) {
    throw new GroveError("BAD_ARGUMENT", `${target.nodeId} runs no ${wanted === "all" ? "service" : wanted}`);
  }
  return services.map((service) => {
    const step = mode === "systemctl" ? systemctlStep(service, target) : binaryStep(service, target);
    return service === "admin" ? { ...step, endsConsole: true } : step;
  });
}

function systemctlStep(service: Service, target: ActionTarget): ActionStep {
  if (!target.hasServiceManager) {
    throw new GroveError("BAD_ARGUMENT", `${target.nodeId} has no service manager; restart in mode binary`);
  }
  return { argv: [...SUDO, "systemctl", "restart", `svc-${service}`], env: PLAIN_OUTPUT };
}

function binaryStep(service: Service, target: ActionTarget): ActionStep {
  const binary = target.services[service]?.binary;
  if (binary === undefined || binary.argv.length === 0) {
    throw new GroveError(
      "BAD_ARGUMENT",
      `nobody has said how ${target.nodeId} starts its ${service}; restart in mode systemctl`,
    );
  }
  const pidFile = absolute(binary.pidFile, target, "its pid file");
  const logFile = target.services[service]?.logFile ?? "/dev/null";
  const cwd = absolute(binary.cwd, target, "the folder of its binary");
  return {
    argv: ["sh", "-c", START_BINARY_SCRIPT, "start-binary", pidFile, logFile, ...binary.argv],
    cwd,
    env: binary.env,
  };
}

function aptSteps(mode: "update_upgrade" | "update_only"): ActionStep[] {
  const update = { argv: [...SUDO, "apt-get", "update"], env: QUIET_APT };
  if (mode === "update_only") return [update];
  return [update, { argv: [...SUDO, "apt-get", "upgrade", "-y", ...APT_OPTIONS], env: QUIET_APT }];
}

function logStep(service: Service, lines: number, target: ActionTarget): ActionStep {
  if (target.hasServiceManager) {
    const journal = ["journalctl", "-u", `svc-${service}`, "-n", `${lines}`, "--no-pager", "-o", "json"];
    return { argv: [...SUDO, ...journal], env: PLAIN_OUTPUT };
  }
  const logFile = target.services[service]?.logFile;
  if (logFile === undefined) {
    throw new GroveError(
      "BAD_ARGUMENT",
      `nobody has said where ${target.nodeId} keeps the log of its ${service}`,
    );
  }
  return { argv: ["tail", "-n", `${lines}`, "--", absolute(logFile, target, "its log")] };
}

function absolute(path: string, target: ActionTarget, what: string): string {
  if (isAbsolute(path) && !/\p{Cc}/u.test(path)) return path;
  throw new GroveError("BAD_ARGUMENT", `${target.nodeId}: ${what} is not an absolute path`);
}
