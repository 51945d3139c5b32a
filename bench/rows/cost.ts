// Processor time of the server: transfers against bare node:http2, calls against the empty call.

import { execFileSync } from "node:child_process";
import { readdir } from "node:fs/promises";
import { BARE, bareFiles } from "#bench/bare-files.ts";
import type { Json, Program } from "#bench/child.ts";
import type { Lab } from "#bench/lab.ts";
import { type FileServerPair, OWNER, startFileServer } from "#bench/node.ts";
import { connectedPair, type Security, securityEnv } from "#bench/pair.ts";
import { processorMsDuring } from "#bench/processor-time.ts";
import { largestParts, spanOf } from "#bench/profile.ts";
import { mibPerSecond } from "#bench/pump.ts";
import type { CostRow, Group, RatioRow } from "#bench/row.ts";
import { until } from "#testing/until.ts";

const GIB = 2 ** 30;
const KEPT = "/kept.bin";
const IN_FLIGHT = 64;
const SMALL_FILE_BYTES = 4_096;
const FILES = 10_000;
const CALLS = 20_000;
const CREATES = 6_000;
const PARTS = 10;
/** A scrub that happens to run is no part of a call or a transfer. */
const FLAGS = ["-scrub_rate", "0"];

/** A measured server and the client that sends the same bytes to both. */
interface TransferSide {
  readonly pid: number;
  readonly folder: string;
  readonly client: Program;
}

const uploadRow = (security: Security): CostRow => ({
  name: `server's processor time, upload of 1 GiB to a tmpfs, ${security}`,
  against: `${BARE}, flushed`,
  atMost: 1.1,
  cost: "s/GiB",
  async sides(lab) {
    const ours = await grove(lab, security);
    const theirs = await bareFiles(lab, security);
    return {
      ours: () => uploadedAndRemoved(ours),
      async theirs() {
        await theirs.server.run("empty");
        return secondsPerGib(theirs, "up", { path: KEPT, bytes: GIB });
      },
    };
  },
});

const downloadRow = (security: Security): CostRow => ({
  name: `server's processor time, download of 1 GiB from files on a tmpfs, ${security}`,
  against: BARE,
  atMost: security === "plain" ? 1.25 : 1.15,
  cost: "s/GiB",
  async sides(lab) {
    const ours = await grove(lab, security);
    const theirs = await bareFiles(lab, security);
    const file = { path: KEPT, bytes: GIB };
    await theirs.server.run("empty");
    await theirs.client.run("up", file);
    await ours.client.run("up", file);
    return {
      ours: () => secondsPerGib(ours, "down", file),
      theirs: () => secondsPerGib(theirs, "down", file),
    };
  },
});

const transfers = {
  upload: (side: TransferSide) => uploadedAndRemoved(side),
  download: (side: TransferSide) => secondsPerGib(side, "down", { path: KEPT, bytes: GIB }),
} as const;

/** What it costs that another thread than the deciding one serves the connection. */
const loopsRow = (transfer: keyof typeof transfers, security: Security): CostRow => ({
  name: `server's processor time, ${transfer} of 1 GiB over two event loops (\`-loops 2\`), ${security}`,
  against: "over one",
  atMost: 1.1,
  cost: "s/GiB",
  async sides(lab) {
    const two = await grove(lab, security, 2);
    const one = await grove(lab, security);
    for (const { client } of [two, one]) await client.run("up", { path: KEPT, bytes: GIB });
    return { ours: () => transfers[transfer](two), theirs: () => transfers[transfer](one) };
  },
});

/** What two loops do for transfers where the server has one core to itself and the client another. */
const pinnedRow = (transfer: keyof typeof transfers): RatioRow => ({
  name: `${transfer} of 1 GiB over two event loops, server and client on a core each, TLS`,
  against: "over one",
  atLeast: 0.9,
  rate: "MiB/s",
  async sides(lab) {
    const two = await pinned(lab, 2);
    const one = await pinned(lab, 1);
    for (const { client } of [two, one]) await client.run("up", { path: KEPT, bytes: GIB });
    const rateOf = (side: TransferSide) => async (): Promise<number> => {
      const start = performance.now();
      await transfers[transfer](side);
      return mibPerSecond(GIB, start);
    };
    return { ours: rateOf(two), theirs: rateOf(one) };
  },
});

function pinned(lab: Lab, loops: number): Promise<TransferSide> {
  return lab.once(`pinned transfers ${loops}`, async () => {
    const side = await startedGrove(lab, "TLS", loops);
    for (const [core, pid] of [side.pid, side.client.pid].entries()) {
      execFileSync("taskset", ["-acp", String(core), String(pid)], {
        stdio: ["ignore", "ignore", "inherit"],
      });
    }
    return side;
  });
}

let uploads = 0;

async function uploadedAndRemoved(side: TransferSide): Promise<number> {
  const path = `/up-${++uploads}.bin`;
  const kept = await fileCount(side.folder);
  const cost = await secondsPerGib(side, "up", { path, bytes: GIB });
  // Removal is not part of an upload: neither its cost nor the memory that it gives back late.
  await side.client.run("remove", path);
  await until(async () => (await fileCount(side.folder)) <= kept);
  return cost;
}

async function secondsPerGib({ pid, client }: TransferSide, task: string, input: Json): Promise<number> {
  return (await processorMsDuring(pid, () => client.run(task, input))) / 1_000;
}

function grove(lab: Lab, security: Security, loops = 1): Promise<TransferSide> {
  return lab.once(`transfers ${security} ${loops}`, () => startedGrove(lab, security, loops));
}

async function startedGrove(lab: Lab, security: Security, loops: number): Promise<TransferSide> {
  const folder = await lab.folder("memory");
  if (security === "plain") await lab.warm(folder, 3 * GIB);
  const { server, address } = await startFileServer(lab, folder, security, [
    ...FLAGS,
    "-loops",
    String(loops),
  ]);
  const client = lab.program("transfer-client", await securityEnv(lab, security));
  await client.run("connect", { address, owner: OWNER });
  return { pid: server.pid, folder, client };
}

/** Files in a data directory, of which stored chunks are the most. */
async function fileCount(folder: string): Promise<number> {
  return (await readdir(folder, { recursive: true, withFileTypes: true })).filter((one) => one.isFile())
    .length;
}

interface Call {
  readonly name: string;
  readonly atMost: number;
  /** Makes the calls and returns their number. */
  run(filled: Filled): Promise<number>;
}

/** A FileServer with as many small files in one folder. */
interface Filled extends FileServerPair {
  readonly paths: readonly string[];
}

let created = 0;

const calls: readonly Call[] = [
  {
    name: "GetAttr",
    atMost: 1.5,
    async run({ client, paths }) {
      await client.run("getAttr", { paths, calls: CALLS, inFlight: IN_FLIGHT });
      return CALLS;
    },
  },
  {
    name: "CreateFile of 4 KiB on the disk",
    atMost: 4,
    async run({ client }) {
      const folder = `/created-${++created}`;
      await client.run("makeFolder", folder);
      await client.run("create", smallFiles(folder, CREATES));
      return CREATES;
    },
  },
  {
    name: "ReadFile of 4 KiB",
    atMost: 2.5,
    async run({ client, paths }) {
      const calls = { paths, calls: CALLS, inFlight: IN_FLIGHT, bytes: SMALL_FILE_BYTES };
      await client.run("readFile", calls);
      return CALLS;
    },
  },
];

const callRow = ({ name, atMost, run }: Call, security: Security): CostRow => ({
  name: `server's processor time of a call, ${name}, 64 in flight, ${security}`,
  against: "the gRPC room's empty unary call",
  atMost,
  cost: "µs",
  async sides(lab) {
    const pair = await smallFileServer(lab, security);
    const room = await connectedPair(lab, "room", security);
    const empty = { calls: CALLS, inFlight: IN_FLIGHT, payloadBytes: 0 };
    return {
      async ours() {
        let made = 0;
        const ms = await processorMsDuring(pair.server.pid, async () => (made = await run(pair)));
        return (ms * 1_000) / made;
      },
      theirs: async () =>
        ((await processorMsDuring(room.server.pid, () => room.measure("unary", empty))) * 1_000) / CALLS,
    };
  },
  note: async (lab) => `the profile's largest parts: ${await profiled(lab, security, run)}`,
});

/** The calls once more, before a server that profiles itself and is not measured. */
async function profiled(lab: Lab, security: Security, run: Call["run"]): Promise<string> {
  const profiles = await lab.folder("disk");
  const pair = await filledServer(lab, security, profiles);
  // Once before, so that the code is compiled.
  await run(pair);
  const span = await spanOf(() => run(pair));
  await pair.server.close();
  return largestParts(profiles, PARTS, span);
}

function smallFileServer(lab: Lab, security: Security): Promise<Filled> {
  return lab.once(`calls ${security}`, () => filledServer(lab, security));
}

async function filledServer(lab: Lab, security: Security, profiles?: string): Promise<Filled> {
  const pair = await startFileServer(lab, await lab.folder("disk"), security, FLAGS, profiles);
  await pair.client.run("makeFolder", "/small");
  await pair.client.run("create", smallFiles("/small", FILES));
  return { ...pair, paths: Array.from({ length: FILES }, (_, at) => `/small/file-${at}`) };
}

function smallFiles(folder: string, files: number): Json {
  return { folders: [folder], prefix: "file", files, inFlight: IN_FLIGHT, bytes: SMALL_FILE_BYTES };
}

const BOTH: readonly Security[] = ["plain", "TLS"];

export const cost: Group = {
  name: "cost",
  rows: () =>
    BOTH.flatMap((security) => [
      uploadRow(security),
      downloadRow(security),
      ...calls.map((call) => callRow(call, security)),
    ]),
};

export const loops: Group = {
  name: "loops",
  rows: () => [
    ...BOTH.flatMap((security) => [loopsRow("upload", security), loopsRow("download", security)]),
    pinnedRow("upload"),
    pinnedRow("download"),
  ],
};
