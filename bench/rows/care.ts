// The scrub's effect on a FileServer's calls while it reads and checks all stored data.
import { type Lab, numberOf } from "#bench/lab.ts";
import { OWNER, startFileServer } from "#bench/node.ts";
import type { Group, RatioRow } from "#bench/row.ts";

/** The scrub needs longer for this, at the default rate, than the row takes. */
const STORED_BYTES = 1_000_000_000;
const SMALL_FILES = 20_000;
const CALLS = 6_000;
const IN_FLIGHT = 8;
const LOOKED_AT = "/looked-at";
const METRICS_OFFSET = 41_000;

const row: RatioRow = {
  name: "GetAttr p99 while the scrub reads at its limit",
  against: "without it",
  atLeast: 0.5,
  rate: "1/p99",
  async sides(lab) {
    // Last, since its pass begins with its start.
    const quiet = await served(lab, ["-scrub_rate", "0"]);
    const scrubbed = await served(lab, []);
    await begun(scrubbed.address);
    return {
      theirs: quiet.look,
      async ours() {
        const rate = await scrubbed.look();
        if (!(await isScrubbing(scrubbed.address))) throw new Error("the scrub had ended before the row");
        return rate;
      },
    };
  },
};

async function served(
  lab: Lab,
  flags: readonly string[],
): Promise<{ address: string; look: () => Promise<number> }> {
  const directory = await lab.folder("disk");
  const builder = lab.program("tree-builder");
  await builder.run("build", { directory, owner: OWNER, folders: 20, filesPerFolder: SMALL_FILES / 20 });
  await builder.close();
  // A pass begins at the start of a node and covers what is stored by then: so the data is stored before.
  const first = await startFileServer(lab, directory, "plain", ["-scrub_rate", "0"]);
  await first.client.run("up", { path: "/stored", bytes: STORED_BYTES });
  await first.client.close();
  await first.server.close();
  const { address } = await startFileServer(lab, directory, "plain", flags);
  const looker = lab.program("share-client");
  await looker.run("connect", { address, user: OWNER });
  await looker.run("makeFile", LOOKED_AT);
  const look = async (): Promise<number> =>
    numberOf(await looker.run("slowLooks", { path: LOOKED_AT, calls: CALLS, inFlight: IN_FLIGHT }));
  return { address, look };
}

async function begun(address: string): Promise<void> {
  for (let tries = 0; tries < 100 && !(await isScrubbing(address)); tries += 1) {
    await new Promise((resolve) => setTimeout(resolve, 300));
  }
}

async function isScrubbing(address: string): Promise<boolean> {
  const [host = "", port = ""] = address.split(":");
  const reply = await fetch(`http://${host}:${Number(port) - METRICS_OFFSET}/metrics`);
  const { scrub_running: isRunning } = (await reply.json()) as { scrub_running?: unknown };
  return isRunning === true;
}

export const care: Group = { name: "care", rows: () => [row] };
