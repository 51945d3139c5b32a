// A door: its processor time beside the FileServer's, its rate beside gRPC's and beside another WebDAV server's.
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { bareFiles } from "#bench/bare-files.ts";
import type { Json, Program } from "#bench/child.ts";
import { type DavPeer, NGINX, RCLONE } from "#bench/dav-peers.ts";
import { fetchedByCurl, listens } from "#bench/installed.ts";
import { type Lab, numberOf } from "#bench/lab.ts";
import { GROVE, OWNER } from "#bench/node.ts";
import { certificateFolder, type Security, securityEnv } from "#bench/pair.ts";
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
  readonly metaserver: string;
  /** Where WebDAV programs come in. */
  readonly base: string;
  readonly authorization: string;
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

/** A large GET or PUT at a door, as `byClient` does it, beside the same by gRPC. */
const gRpcRow = (
  task: "up" | "down",
  client: string,
  byClient: (site: Site) => Promise<number>,
): RatioRow => ({
  name: `${task === "up" ? "PUT" : "GET"} of 1 GiB at a door${client}, plain`,
  against: "the same file by gRPC",
  atLeast: 0.6,
  rate: "MiB/s",
  async sides(lab) {
    const site = await siteOf(lab);
    await withLarge(site);
    return { ours: () => byClient(site), theirs: () => transferred(site, site.files, task) };
  },
});

/** `curl` costs less than a client on `node:http` does. */
const G_RPC_ROWS: readonly RatioRow[] = [
  gRpcRow("down", "", (site) => transferred(site, site.dav, "down")),
  gRpcRow("down", " by `curl`", (site) => fetchedByCurl(`${site.base}${LARGE}`, site.authorization, GIB)),
  gRpcRow("up", "", (site) => transferred(site, site.dav, "up")),
];

/** Work that is also given to other people's servers. */
interface PeerWork {
  readonly name: string;
  readonly rate: string;
  readonly needsListing?: boolean;
  run(dav: Program): Promise<Json>;
}

const GET_LARGE: PeerWork = {
  name: "GET of 1 GiB",
  rate: "MiB/s",
  run: (dav) => dav.run("down", { path: "/peer.bin", bytes: GIB }),
};
const PUT_LARGE: PeerWork = {
  name: "PUT of 1 GiB",
  rate: "MiB/s",
  run: (dav) => dav.run("up", { path: "/peer.bin", bytes: GIB }),
};
const GET_SMALL: PeerWork = {
  name: "GET of files of 4 KiB, 32 in flight",
  rate: "files/s",
  run: (dav) => dav.run("getMany", { ...SMALL, folder: "/peer" }),
};
const LIST: PeerWork = {
  name: "PROPFIND of a folder of 10,000",
  rate: "listings/s",
  needsListing: true,
  run: (dav) => dav.run("list", { folder: "/peer-listed", listings: LISTINGS, entries: LISTED.files }),
};

/** A bar of 0 is told only. */
const peerRow = (
  server: DavPeer,
  work: PeerWork,
  atLeast: number,
  security: Security = "plain",
): RatioRow => ({
  name: `${work.name} at a door, ${security}`,
  against: server.name,
  atLeast,
  rate: work.rate,
  async sides(lab) {
    const site = await siteOf(lab);
    const own = security === "plain" ? site.dav : (await secureDoor(lab)).dav;
    const peer = await lab.once(`${server.name} ${security}`, () => server.start(lab, security));
    await lab.once(`large file of ${server.name} ${security}`, () => withPeerFiles(peer));
    await lab.once("files for the peers' work", () => withPeerFiles(site.dav));
    if (work.needsListing === true) {
      await lab.once(`listing of ${server.name}`, () => withPeerListing(peer));
      await lab.once("listing for the peers' work", () => withPeerListing(site.dav));
    }
    return {
      ours: async () => numberOf(await work.run(own)),
      theirs: async () => numberOf(await work.run(peer)),
    };
  },
});

async function withPeerFiles(dav: Program): Promise<void> {
  await dav.run("up", { path: "/peer.bin", bytes: GIB });
  await dav.run("makeFolder", "/peer/");
  await dav.run("putMany", { ...SMALL, folder: "/peer" });
}

async function withPeerListing(dav: Program): Promise<void> {
  await dav.run("makeFolder", "/peer-listed/");
  await dav.run("putMany", { ...LISTED, folder: "/peer-listed" });
}

/** The least that a door can be here: its client, the bare server and a bare door between them. */
const BOUND: CostRow = {
  name: "the bound of a door's processor time, GET of 1 GiB, plain: bare node:http before bare node:http2, with CRC-32",
  against: "the FileServer's for a GET of 1 GiB at the door",
  atMost: 0,
  cost: "s/GiB",
  async sides(lab) {
    const site = await siteOf(lab);
    await withLarge(site);
    const bare = await bareFiles(lab, "plain");
    await bare.server.run("empty");
    await bare.client.run("up", { path: "", bytes: GIB, checks: true });
    const door = lab.program("bare-door");
    const port = numberOf(await door.run("listen", bare.address));
    const dav = lab.program("dav-client");
    await dav.run("connect", { base: `http://127.0.0.1:${port}`, authorization: "" });
    const asked = { path: LARGE, bytes: GIB };
    return {
      ours: async () =>
        (await processorMsDuring(door.pid, () => dav.run("down", { path: "/", bytes: 0 }))) / 1_000,
      theirs: async () => (await processorMsDuring(site.server, () => site.dav.run("down", asked))) / 1_000,
    };
  },
};

/** The same requests at a door that does its own TLS; the FileServer behind it is the same one. */
const secureRow = (task: "up" | "down"): CostRow => ({
  name: `a door's processor time, ${task === "up" ? "PUT" : "GET"} of 1 GiB, TLS`,
  against: "the FileServer's for the same requests, plain",
  atMost: 0,
  cost: "s/GiB",
  async sides(lab) {
    const site = await siteOf(lab);
    await withLarge(site);
    const { pid, dav } = await secureDoor(lab);
    const spentBy = (of: number) => async (): Promise<number> =>
      (await processorMsDuring(of, async () => await transferred(site, dav, task))) / 1_000;
    return { ours: spentBy(pid), theirs: spentBy(site.server) };
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
    const authorization = await authorizationAt(metaserver);
    const base = `${door}/dav`;
    await dav.run("connect", { base, authorization });
    const files = lab.program("file-client");
    await files.run("connect", { address: node.grpc, owner: OWNER });
    const folder = join(data, "node-1");
    return { door: doorPid, server: serverPid, dav, files, folder, metaserver, base, authorization };
  });
}

/** A second door of the cluster, over TLS. */
function secureDoor(lab: Lab): Promise<{ readonly pid: number; readonly dav: Program }> {
  return lab.once("door over TLS", async () => {
    const { authorization, metaserver } = await siteOf(lab);
    const folder = await certificateFolder(lab);
    const port = await freePort();
    const address = `127.0.0.1:${port}`;
    const certificate = [
      "-public_cert",
      join(folder, "server.crt"),
      "-public_key",
      join(folder, "server.key"),
    ];
    const { pid } = await lab.service(
      [
        GROVE,
        "door",
        "-mock",
        "-listen",
        address,
        ...certificate,
        "-metaserver",
        metaserver,
        "-metrics",
        "off",
      ],
      { isQuiet: true, isUp: () => listens(port) },
    );
    const dav = lab.program("dav-client", await securityEnv(lab, "TLS"));
    await dav.run("connect", { base: `https://${address}/dav`, authorization });
    return { pid, dav };
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

function raise(problem: string): never {
  throw new Error(problem);
}

export const doors: Group = {
  name: "doors",
  rows: () => [
    ...WORK.map(costRow),
    BOUND,
    secureRow("down"),
    secureRow("up"),
    ...G_RPC_ROWS,
    peerRow(RCLONE, GET_LARGE, 0.3),
    peerRow(RCLONE, GET_SMALL, 0.2),
    peerRow(RCLONE, PUT_LARGE, 0),
    peerRow(RCLONE, LIST, 0),
    peerRow(NGINX, GET_LARGE, 0),
    peerRow(NGINX, PUT_LARGE, 0),
    peerRow(NGINX, LIST, 0),
    peerRow(NGINX, GET_LARGE, 0, "TLS"),
    peerRow(NGINX, PUT_LARGE, 0, "TLS"),
  ],
};
