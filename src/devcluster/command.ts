// The command `grove up`: a whole cluster on this machine, with demo users to sign in as.
import { realpath } from "node:fs/promises";
import { basename, dirname, resolve } from "node:path";
import { Command, InvalidArgumentError } from "commander";
import { HAS_IDP_AUTH, NO_IDP_AUTH_TEXT } from "#base/build-flags.ts";
import { parseBytes } from "#base/bytes.ts";
import { GroveError } from "#base/errors.ts";
import { run } from "#os/exit-signals.ts";
import { DevCluster } from "./dev-cluster.ts";
import { screenOn } from "./up-screen.ts";

/** FileServers of one demonstration (`grove up`). */
const DEMO_NODES_MAX = 20;

interface UpFlags {
  readonly data: string;
  readonly nodes?: number;
  readonly mock: boolean;
  readonly reserve?: bigint;
}

/** Seven processes have 8 s each to stop. */
const STOP_GRACE_MS = 60_000;

const EXAMPLES = `
Examples:
  grove up                                three nodes in ./grove-data, over TLS, with demo users
  grove up -data /tmp/try -nodes 1        one node, elsewhere
  grove up -mock                          no TLS and no identity provider; accepts mock tokens

Everything is kept in the data folder, cluster.json says where everything is, Ctrl-C stops it all.
It is a demonstration: every process on one machine, and only this machine can reach it.`;

/** Makes the parser of `grove up`. */
export function command(): Command {
  return new Command("up")
    .summary("Run a whole cluster on this machine, with demo users to sign in as")
    .description(
      "Run a whole cluster on this machine: an identity provider with demo users, a MetaServer, FileServers, the console and a door.",
    )
    .option("--data <folder>", "where everything is kept; made when missing", "grove-data")
    .option(
      "--nodes <n>",
      `number of FileServers, 1 to ${DEMO_NODES_MAX} (default: as many as last time, at first 3)`,
      parseNodes,
    )
    .option("--mock", "plain, and accepting mock tokens: for development without a browser", false)
    .option(
      "--reserve <bytes>",
      "free space that no write may consume (default: 20 GiB, less on a small disk)",
      parseReserve,
    )
    .addHelpText("after", EXAMPLES)
    .action(async (flags: UpFlags) => {
      await up(flags);
    });
}

async function up(flags: UpFlags): Promise<void> {
  if (!HAS_IDP_AUTH && !flags.mock) {
    throw new GroveError(
      "BAD_ARGUMENT",
      `${NO_IDP_AUTH_TEXT}: it has no provider for a demonstration either; add -mock`,
    );
  }
  const entry = await realpath(process.argv[1] ?? "");
  const cluster = await DevCluster.open({
    folder: resolve(flags.data),
    nodeCount: flags.nodes,
    mock: flags.mock,
    reserveBytes: flags.reserve,
    entry,
    // In a clone the launcher lies beside src/; an installed program is in the path.
    program: basename(dirname(dirname(entry))) === "src" ? "./grove" : "grove",
    env: process.env,
    screen: screenOn(process.stdout),
  });
  await run(async () => ({ stop: () => cluster.stop(), ended: cluster.run() }), {
    graceMs: STOP_GRACE_MS,
    signals: ["SIGINT", "SIGTERM", "SIGHUP"],
    onEvent: (event, detail) => {
      if (event === "stopping" && detail.startsWith("SIG")) process.stdout.write("\nStopping\n");
      else if (event !== "stopped") process.stderr.write(`grove up: ${detail}\n`);
    },
  });
}

function parseNodes(text: string): number {
  const count = Number(text);
  if (Number.isSafeInteger(count) && count >= 1 && count <= DEMO_NODES_MAX) return count;
  throw new InvalidArgumentError(`write a whole number from 1 to ${DEMO_NODES_MAX}.`);
}

function parseReserve(text: string): bigint {
  const bytes = parseBytes(text);
  if (bytes === undefined) throw new InvalidArgumentError('write bytes, or "5GiB".');
  return bytes;
}
