// The base cost of a command: the program's start-up, and the shortest useful command.
import { execFile } from "node:child_process";
import { access } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import type { Lab } from "#bench/lab.ts";
import { GROVE } from "#bench/node.ts";
import { type CommandCost, costOfCommand } from "#bench/processor-time.ts";
import { amount } from "#bench/report.ts";
import type { Group } from "#bench/row.ts";

const RUNS = 20;
const USER = "bench@example.com";
const run = promisify(execFile);

export const cli: Group = {
  name: "cli",
  rows: () => [
    {
      name: "`./grove --help`, from start to end",
      unit: "ms",
      below: 150,
      async measure() {
        const cost = await costOfMany([GROVE, "--help"], {});
        return {
          value: cost.wallMs,
          detail: `${RUNS} times; ${amount(cost.processorMs)} ms of processor time`,
        };
      },
    },
    {
      name: "a whole `./grove ls`, processor time of the command",
      unit: "ms",
      below: 300,
      async measure(lab) {
        const env = await signedIn(lab);
        const cost = await costOfMany([GROVE, "ls", "/"], env);
        return {
          value: cost.processorMs,
          detail: `${RUNS} times; ${amount(cost.wallMs)} ms from start to end`,
        };
      },
    },
  ],
};

/** The first runs fill the cache of compiled code that every later command uses. */
async function costOfMany(
  command: readonly [string, ...string[]],
  env: Record<string, string>,
): Promise<CommandCost> {
  await costOfCommand(command, { runs: 2, env });
  return costOfCommand(command, { runs: RUNS, env });
}

/** A cluster of `grove up` with a file in the user's root, and the environment of the signed-in user. */
async function signedIn(lab: Lab): Promise<Record<string, string>> {
  const folder = await lab.folder("disk");
  const clusterFile = join(folder, "cluster", "cluster.json");
  const env = { GROVE_CONFIG_DIR: join(folder, "config") };
  await lab.service(
    [GROVE, "up", "-data", join(folder, "cluster"), "-nodes", "1", "-mock", "-reserve", "1MiB"],
    {
      isQuiet: true,
      isUp: () => isThere(clusterFile),
    },
  );
  const command = (...words: string[]): Promise<unknown> =>
    run(GROVE, words, { env: { ...process.env, ...env } });
  await command("login", "--cluster", clusterFile, "--mock", USER);
  for (const name of ["documents", "pictures", "music"]) await command("mkdir", `/${name}`);
  // The console has just started too: its compilation at the first polls would count as our waiting.
  await sleep(SETTLE_MS);
  return env;
}

/** Two rounds of polls. */
const SETTLE_MS = 10_000;

async function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
