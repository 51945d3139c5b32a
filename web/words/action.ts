// Actions in words: kinds, states and warnings.
import type { ActionRecord } from "#wire/webapi/action-record.ts";
import type { ShownState } from "./node-state.ts";

/** Labels of the kinds of actions. */
export const ACTION_LABELS: Readonly<Record<ActionRecord["action"], string>> = {
  pull: "Pull the code of a branch",
  build: "Build it",
  restart: "Restart a service",
  reboot: "Reboot the machine",
  apt: "Update the system's packages",
  logs: "Read a log",
  custom: "Run a command",
};

/** Shape and colour of an action's or a target's state. */
export function shownState(state: string): ShownState {
  switch (state) {
    case "succeeded":
      return "online";
    case "failed":
    case "timed_out":
    case "unreachable":
    case "rejected":
      return "critical";
    case "partly_failed":
    case "unknown":
    case "orphaned":
      return "degraded";
    case "cancelled":
    case "skipped":
      return "offline";
    default:
      return "info";
  }
}

/** True for a dry run. */
export function isDryRun({ request }: Pick<ActionRecord, "request">): boolean {
  return request.dry_run;
}

/** A state as a word: "partly failed". */
export function stateText(state: string): string {
  return state.replaceAll("_", " ");
}

/** The text to type before a dangerous action runs: the node's name. */
export function mustBeTyped(action: string, names: readonly string[]): string | undefined {
  if (action !== "reboot" && action !== "apt" && action !== "custom") return undefined;
  return names.length === 1 ? names[0] : `${names.length} nodes`;
}
