// Presets of actions: eight built-in ones, and those of an operator's file (decision D7).
import { open } from "node:fs/promises";
import { z } from "zod";
import { GroveError } from "#base/errors.ts";
import { errorText } from "#base/log.ts";
import { type ActionPreset, actionPreset } from "#wire/webapi/action-record.ts";

/** Presets of actions, the built-in ones included. */
const ACTION_PRESETS_MAX = 100;
/** Bytes of the file of presets. */
const PRESETS_FILE_MAX_BYTES = 1_048_576;

const preset = (
  id: string,
  [title, description]: readonly [string, string],
  request: object,
  danger: ActionPreset["danger"],
): ActionPreset =>
  actionPreset.parse({ id, title, description, request: { nodes: "all", ...request }, danger });

/** The eight built-in presets. Those for every node are rolling and stop at the first failure. */
export const BUILT_IN_PRESETS: readonly ActionPreset[] = [
  preset(
    "pull-main",
    ["Pull main", "Bring the sources of every node up to date with the branch main."],
    { action: "pull", branch: "main" },
    "none",
  ),
  preset("build", ["Build", "Build what was pulled, on every node."], { action: "build" }, "none"),
  preset(
    "restart-fileserver",
    ["Restart FileServers", "One node after the other, each when the one before is healthy."],
    {
      action: "restart",
      target_service: "fileserver",
      strategy: { mode: "rolling", max_parallel: 1, stop_on_failure: true, health_gate_seconds: 60 },
    },
    "confirm",
  ),
  preset(
    "restart-metaserver",
    ["Restart the MetaServer", "New sign-ins wait for some seconds; transfers go on."],
    { action: "restart", target_service: "metaserver" },
    "confirm",
  ),
  preset(
    "restart-admin",
    ["Restart the console", "This page is gone for some seconds."],
    { action: "restart", target_service: "admin" },
    "confirm",
  ),
  preset(
    "apt-update",
    ["Look for updates", "Read the lists of Debian's packages anew; nothing is installed."],
    { action: "apt", apt_mode: "update_only" },
    "none",
  ),
  preset(
    "apt-upgrade",
    ["Install updates", "Install Debian's updates, one node after the other."],
    {
      action: "apt",
      apt_mode: "update_upgrade",
      strategy: { mode: "rolling", max_parallel: 1, stop_on_failure: true, health_gate_seconds: 60 },
    },
    "confirm",
  ),
  preset(
    "reboot",
    ["Reboot", "Restart the machines, one after the other, each when the one before is healthy."],
    {
      action: "reboot",
      strategy: { mode: "rolling", max_parallel: 1, stop_on_failure: true, health_gate_seconds: 120 },
    },
    "approve",
  ),
];

const presetsFile = z.strictObject({ schema: z.literal(1).default(1), presets: z.array(actionPreset) });

/**
 * The built-in presets and those of a file, which replace built-in ones of the same id. Throws BAD_ARGUMENT
 * with the file and the place of the error.
 */
export async function readPresets(path: string | undefined): Promise<readonly ActionPreset[]> {
  if (path === undefined) return BUILT_IN_PRESETS;
  const problem = (detail: string): GroveError => new GroveError("BAD_ARGUMENT", `${path}: ${detail}`);
  const text = await boundedText(path, problem);
  const checked = presetsFile.safeParse(parse(text, problem));
  if (!checked.success) {
    throw problem(
      checked.error.issues
        .map(
          ({ path: at, message }) => `${at.length === 0 ? "the file" : at.map(String).join(".")}: ${message}`,
        )
        .join("; "),
    );
  }
  const presets = new Map(BUILT_IN_PRESETS.map((each) => [each.id, each]));
  const own = new Set<string>();
  for (const each of checked.data.presets) {
    if (own.has(each.id)) throw problem(`the preset ${each.id} is there twice`);
    own.add(each.id);
    presets.set(each.id, each);
  }
  if (presets.size > ACTION_PRESETS_MAX) throw problem(`more than ${ACTION_PRESETS_MAX} presets`);
  return [...presets.values()];
}

async function boundedText(path: string, problem: (detail: string) => GroveError): Promise<string> {
  try {
    await using handle = await open(path, "r");
    const { size } = await handle.stat();
    if (size > PRESETS_FILE_MAX_BYTES) throw problem(`larger than ${PRESETS_FILE_MAX_BYTES} bytes`);
    return await handle.readFile("utf8");
  } catch (error) {
    if (error instanceof GroveError) throw error;
    throw problem(`it cannot be read: ${errorText(error)}`);
  }
}

function parse(text: string, problem: (detail: string) => GroveError): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw problem("it is not JSON");
  }
}
