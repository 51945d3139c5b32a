// A door: its processor time beside the FileServer's, its rate beside gRPC's and beside another WebDAV server's.
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Json, Program } from "#bench/child.ts";
import { type Lab, numberOf } from "#bench/lab.ts";
import { GROVE, OWNER } from "#bench/node.ts";
import { processorMsDuring } from "#bench/processor-time.ts";
import type { CostRow, Group, RatioRow } from "#bench/row.ts";
import { freePort } from "#testing/free-ports.ts";
import { until } from "#testing/until.ts";
import { createClient, GrpcChannel } from "#wire/grpc/client.ts";
import { MetaServer } from "#wire/proto/gen/grove/v1/meta_server_pb.ts";

const GIB = 2 ** 30;
const LARGE = "/large.bin";
const SMALL = { folder: "/small", files: 3_000, inFlight: 32, bytes: 4_096 };
const LISTED = { folder: "/listed", files: 10_000, inFlight: 32, bytes: 16 };
const LISTINGS = 5;
/** The benchmark never fills the disk. */
const RESERVE = "1MiB";

/** A cluster of one node with its door, and what loads it. */
interface Site {
  readonly door: number;
  readonly server: number;
  readonly dav: Program;
  /** The same files by gRPC. */
  readonly files: Program;
  /** Data folder of the FileServer. */
  readonly folder: string;
}

/** One piece of work at the door. */
interface Work {
  readonly name: string;
  readonly cost: string;
  readonly atMost: number;
  /** Processor time is told for each of so many. */
  readonly pieces: number;
  prepare?(site: Site): Promise<unknown>;
  run(site: Site): Promise<unknown>;
  /** What is no part of the work. */
  after?(site: Site): Promise<unknown>;
}

let puts = 0;

const WORK: readonly Work[] = [
  {
    name: "GET of 1 GiB",
    cost: "s/GiB",
    atMost: 0.8,
    pieces: 1_000,
    prepare: (site) => withLarge(site),
    run: ({ dav }) => dav.run("down", { path: LARGE, bytes: GIB }),
  },
  {
    name: "PUT of 1 GiB",
    cost: "s/GiB",
    atMost: 0.8,
    pieces: 1_000,
    run: ({ dav }) => dav.run("up", { path: `/put-${++puts}.bin`, bytes: GIB }),
    after: (site) => removed(site, `/put-${puts}.bin`),
  },
  {
    name: "GET of a file of 4 KiB, 32 in flight",
    cost: "ms",
    atMost: 1.5,
    pieces: SMALL.files,
    prepare: (site) => filled(site, SMALL),
    run: ({ dav }) => dav.run("getMany", SMALL),
  },
  {
    name: "PUT of a new file of 4 KiB, 32 in flight",
    cost: "ms",
    atMost: 1.2,
    pieces: SMALL.files,
    run: async ({ dav }) => {
      const folder = `/put-${++puts}`;
      await dav.run("makeFolder", folder);
      await dav.run("putMany", { ...SMALL, folder });
    },
  },
  {
    name: "PROPFIND of a folder of 10,000",
    cost: "ms",
    atMost: 4,
    pieces: LISTINGS,
    prepare: (site) => filled(site, LISTED),
    run: ({ dav }) => dav.run("list", { folder: LISTED.folder, listings: LISTINGS, entries: LISTED.files }),
  },
];

const costRow = ({ name, cost, atMost, pieces, prepare, run, after }: Work): CostRow => ({
  name: `a door's processor time, ${name}, plain`,
  against: "the FileServer's for the same requests",
  atMost,
  cost,
  async sides(lab) {
    const site = await siteOf(lab);
    await prepare?.(site);
    const spentBy = (pid: number) => async (): Promise<number> => {
      const ms = await processorMsDuring(pid, () => run(site));
      await after?.(site);
      return ms / pieces;
    };
    return { ours: spentBy(site.door), theirs: spentBy(site.server) };
  },
});

const gRpcRow = (task: "up" | "down"): RatioRow => ({
  name: `${task === "up" ? "PUT" : "GET"} of 1 GiB at a door, plain`,
  against: "the same file by gRPC",
  atLeast: 0.6,
  rate: "MiB/s",
  async sides(lab) {
    const site = await siteOf(lab);
    await withLarge(site);
    return {
      ours: () => transferred(site, site.dav, task),
      theirs: () => transferred(site, site.files, task),
    };
  },
});

const peerRow = (
  name: string,
  atLeast: number,
  rate: string,
  run: (dav: Program) => Promise<Json>,
): RatioRow => ({
  name: `${name} at a door, plain`,
  against: "rclone serve webdav, which flushes nothing",
  atLeast,
  rate,
  async sides(lab) {
    const site = await siteOf(lab);
    const peer = await rclone(lab);
    await lab.once("files of both", async () => {
      for (const dav of [site.dav, peer]) {
        await dav.run("up", { path: "/peer.bin", bytes: GIB });
        await dav.run("makeFolder", "/peer");
        await dav.run("putMany", { ...SMALL, folder: "/peer" });
      }
    });
    return { ours: async () => numberOf(await run(site.dav)), theirs: async () => numberOf(await run(peer)) };
  },
});

/** A file that is put goes again, so that memory holds one at a time. */
async function transferred(site: Site, by: Program, task: "up" | "down"): Promise<number> {
  if (task === "down") return numberOf(await by.run("down", { path: LARGE, bytes: GIB }));
  const path = `/put-${++puts}.bin`;
  const rate = numberOf(await by.run("up", { path, bytes: GIB }));
  await removed(site, path);
  return rate;
}

async function removed({ files, folder }: Site, path: string): Promise<void> {
  const before = bytesIn(folder);
  await files.run("remove", path);
  await until(() => bytesIn(folder) <= before - GIB / 2);
}

function bytesIn(folder: string): number {
  return Number.parseInt(spawnSync("du", ["-sb", folder], { encoding: "utf8" }).stdout, 10);
}

async function withLarge(site: Site): Promise<void> {
  await site.dav.run("up", { path: LARGE, bytes: GIB });
}

async function filled({ dav }: Site, many: typeof SMALL): Promise<void> {
  await dav.run("makeFolder", many.folder);
  await dav.run("putMany", many);
}

function siteOf(lab: Lab): Promise<Site> {
  return lab.once("door", async () => {
    const data = await lab.folder("memory");
    await lab.service([GROVE, "up", "-mock", "-nodes", "1", "-data", data, "-reserve", RESERVE], {
      isQuiet: true,
      isUp: async () => (await doorOf(data)) !== undefined,
    });
    const { door, metaserver, nodes, pids } = (await doorOf(data)) ?? raise("no door came up");
    const [node] = nodes;
    const [doorPid, serverPid] = [pids["door"], pids["node-1"]];
    if (node === undefined || doorPid === undefined || serverPid === undefined)
      return raise("no process of the door");
    const dav = lab.program("dav-client");
    await dav.run("connect", { base: `${door}/dav`, authorization: await authorizationAt(metaserver) });
    const files = lab.program("file-client");
    await files.run("connect", { address: node.grpc, owner: OWNER });
    return { door: doorPid, server: serverPid, dav, files, folder: join(data, "node-1") };
  });
}

interface Cluster {
  readonly door: string;
  readonly metaserver: string;
  readonly nodes: readonly { readonly grpc: string }[];
  readonly pids: Readonly<Record<string, number>>;
}

async function doorOf(data: string): Promise<Cluster | undefined> {
  try {
    const cluster = JSON.parse(readFileSync(join(data, "cluster.json"), "utf8")) as Cluster;
    return (await fetch(`${cluster.door}/health`)).ok ? cluster : undefined;
  } catch {
    return undefined;
  }
}

async function authorizationAt(metaserver: string): Promise<string> {
  const channel = new GrpcChannel({ addresses: [metaserver] });
  try {
    const metadata = { authorization: `Bearer mock-jwt.${OWNER}` };
    const { password } = await createClient(MetaServer, channel).createAppPassword(
      { name: "bench" },
      { metadata },
    );
    return `Basic ${Buffer.from(`${OWNER}:${password}`).toString("base64")}`;
  } finally {
    channel.close();
  }
}

function rclone(lab: Lab): Promise<Program> {
  return lab.once("rclone", async () => {
    const folder = await lab.folder("memory");
    const address = `127.0.0.1:${await freePort()}`;
    const base = `http://${address}`;
    await lab.service(
      ["rclone", "serve", "webdav", folder, "--addr", address, "--user", "a", "--pass", "b"],
      {
        isQuiet: true,
        isUp: async () => (await fetch(base).catch(() => undefined)) !== undefined,
      },
    );
    const dav = lab.program("dav-client");
    await dav.run("connect", { base, authorization: `Basic ${Buffer.from("a:b").toString("base64")}` });
    return dav;
  });
}

function raise(problem: string): never {
  throw new Error(problem);
}

export const doors: Group = {
  name: "doors",
  rows: () => [
    ...WORK.map(costRow),
    gRpcRow("down"),
    gRpcRow("up"),
    peerRow("GET of 1 GiB", 0.3, "MiB/s", (dav) => dav.run("down", { path: "/peer.bin", bytes: GIB })),
    peerRow("GET of files of 4 KiB, 32 in flight", 0.2, "files/s", (dav) =>
      dav.run("getMany", { ...SMALL, folder: "/peer" }),
    ),
  ],
};
