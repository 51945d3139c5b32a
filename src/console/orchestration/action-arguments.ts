// The argument arrays of an action: pure, so a dry run shows them exactly (spec 4.7; T14 to T16, D7, D20).
import { GroveError } from "#base/errors.ts";
import { type ActionRequest, SERVICES, type Service } from "#wire/webapi/action-request.ts";
import type { DaemonStep, RemoteStep, RunStep } from "./remote-step.ts";

/** Time that an action may take on one node, in seconds (decision D7). */
export const ACTION_LIMIT_SECONDS = {
  pull: 120,
  build: 1_800,
  restart: 60,
  reboot: 600,
  apt: 3_600,
  logs: 30,
} as const;

/**
 * A service on a node: the restart parameters of spec 2.9, with folders and files as the transport takes
 * them.
 */
export interface TargetService {
  readonly logFile?: string;
  readonly argv?: readonly string[];
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly pidFile?: string;
}

/** A node that actions run on; the records of the metadata store have these fields (D20). */
export interface ActionTarget {
  readonly id: string;
  /** Folder of the working copy. */
  readonly repository: string;
  readonly services: Readonly<Partial<Record<Service, TargetService>>>;
}

/** All that an action runs on one node. */
export interface ActionPlan {
  /** In order; the first that fails ends the action on this node. */
  readonly steps: readonly RemoteStep[];
  /** For all steps together. */
  readonly limitSeconds: number;
  /** The node's host restarts: the connection ends as expected, and only a new boot id is success. */
  readonly expectsReboot: boolean;
  /**
   * Index of the last step, if it restarts the console or its host: the record is handed over before it
   * (T14).
   */
  readonly consoleStep: number | undefined;
}

const SUDO: readonly string[] = ["sudo", "-n"];
const PLAIN_OUTPUT: Readonly<Record<string, string>> = { SYSTEMD_PAGER: "cat" };
const QUIET_APT: Readonly<Record<string, string>> = { DEBIAN_FRONTEND: "noninteractive" };
/** Waits for another apt instead of failing, and keeps configuration files (D7). */
const APT_OPTIONS: readonly string[] = [
  "-o",
  "DPkg::Lock::Timeout=120",
  "-o",
  "Dpkg::Options::=--force-confold",
];

/** Name under which the commit before a pull is captured. */
export const GIT_BEFORE = "git_before";
/** Name under which the commit after a pull is captured. */
export const GIT_AFTER = "git_after";

/** The plan of a request for a target. Throws BAD_ARGUMENT with a sentence that names what the node lacks. */
export function planFor(request: ActionRequest, target: ActionTarget): ActionPlan {
  const plan = { limitSeconds: limitSecondsOf(request), expectsReboot: false, consoleStep: undefined };
  switch (request.action) {
    case "pull":
      return { ...plan, steps: pullSteps(request.branch, target.repository) };
    case "build":
      return { ...plan, steps: [{ argv: ["make", request.make_target], cwd: target.repository }] };
    case "restart":
      return { ...plan, ...restartSteps(request, target) };
    case "reboot":
      return { ...plan, ...rebootSteps(target) };
    case "apt":
      return { ...plan, steps: aptSteps(request.apt_mode) };
    case "logs":
      return { ...plan, steps: [logStep(request.service, request.lines, target)] };
    case "custom":
      break;
  }
  // The only text that a shell interprets: the operator's own command line.
  return { ...plan, steps: [{ argv: ["sh", "-c", request.command], cwd: target.repository }] };
}

/** The time that an action may take on each node, in seconds (D7). */
export function limitSecondsOf(request: ActionRequest): number {
  return request.action === "custom" ? request.timeout_seconds : ACTION_LIMIT_SECONDS[request.action];
}

/** A reboot of the console's host restarts the console too (T14). */
function rebootSteps({
  services,
}: ActionTarget): Pick<ActionPlan, "steps" | "expectsReboot" | "consoleStep"> {
  const consoleStep = services.admin === undefined ? undefined : 0;
  return { steps: [{ argv: [...SUDO, "reboot"] }], expectsReboot: true, consoleStep };
}

/** The words of a plan's commands, joined by "&&", for records and dry runs. */
export function wordsOf(steps: readonly RemoteStep[]): string[] {
  const shown = steps.filter((step) => step.kind === "daemon" || step.capture === undefined);
  return shown.flatMap(({ argv }, at) => (at === 0 ? [...argv] : ["&&", ...argv]));
}

function pullSteps(branch: string, cwd: string): RunStep[] {
  const commit = (capture: string): RunStep => ({
    argv: ["git", "rev-parse", "HEAD"],
    cwd,
    capture,
    isOptional: true,
  });
  // The branch's pattern forbids options and ranges; --end-of-options is a second guard.
  const pull = { argv: ["git", "pull", "--ff-only", "--end-of-options", "origin", branch], cwd };
  return [commit(GIT_BEFORE), pull, commit(GIT_AFTER)];
}

/** The services that a restart means on this node; the console itself comes last (T14). */
function restartSteps(
  request: Extract<ActionRequest, { action: "restart" }>,
  target: ActionTarget,
): Pick<ActionPlan, "steps" | "consoleStep"> {
  const { target_service: wanted, restart_mode: mode } = request;
  const here = SERVICES.filter((service) => target.services[service] !== undefined);
  const services = wanted === "all" ? here : here.filter((service) => service === wanted);
  if (services.length === 0) {
    throw new GroveError("BAD_ARGUMENT", `${target.id} runs no ${wanted === "all" ? "service" : wanted}`);
  }
  const steps = services.map((service) =>
    mode === "systemctl" ? systemctlStep(service) : daemonStep(service, target),
  );
  const consoleStep = services.indexOf("admin");
  return { steps, consoleStep: consoleStep === -1 ? undefined : consoleStep };
}

function systemctlStep(service: Service): RunStep {
  return { argv: [...SUDO, "systemctl", "restart", `svc-${service}`], env: PLAIN_OUTPUT };
}

function daemonStep(service: Service, target: ActionTarget): DaemonStep {
  const { argv, cwd, env, pidFile, logFile } = target.services[service] ?? {};
  if (argv === undefined || argv.length === 0 || pidFile === undefined) {
    throw new GroveError(
      "BAD_ARGUMENT",
      `nobody has said how ${target.id} starts its ${service}; restart in mode systemctl`,
    );
  }
  return {
    kind: "daemon",
    argv,
    pidFile,
    ...(cwd === undefined ? {} : { cwd }),
    ...(env === undefined ? {} : { env }),
    ...(logFile === undefined ? {} : { logFile }),
  };
}

function aptSteps(mode: "update_upgrade" | "update_only"): RunStep[] {
  const update = { argv: [...SUDO, "apt-get", "update"], env: QUIET_APT };
  if (mode === "update_only") return [update];
  return [update, { argv: [...SUDO, "apt-get", "upgrade", "-y", ...APT_OPTIONS], env: QUIET_APT }];
}

/**
 * Lines of the journal, or of the log file that the node's record names where there is no journal (D10, D20).
 */
function logStep(service: Service, lines: number, target: ActionTarget): RunStep {
  const { logFile, cwd } = target.services[service] ?? {};
  if (logFile !== undefined) {
    return { argv: ["tail", "-n", `${lines}`, "--", logFile], ...(cwd === undefined ? {} : { cwd }) };
  }
  const journal = ["journalctl", "-u", `svc-${service}`, "-n", `${lines}`, "--no-pager", "-o", "json"];
  return { argv: [...SUDO, ...journal], env: PLAIN_OUTPUT };
}

/**
 * The command of a `logs` action so that it goes on: the file by its name, across rotation, or the journal.
 * There the flag stands where the shipped sudoers file has it, which compares whole command lines (T16).
 */
export function followedLog(argv: readonly string[]): readonly string[] {
  const at = argv.indexOf("--no-pager");
  return at < 0 ? ["tail", "-F", ...argv.slice(1)] : [...argv.slice(0, at), "-f", ...argv.slice(at)];
}
