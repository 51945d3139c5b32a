// The shared engine against the local one in the same run, and against bare clients of its two places.
import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Program } from "#bench/child.ts";
import { inPath } from "#bench/installed.ts";
import { type Lab, numberOf } from "#bench/lab.ts";
import { type FileServerPair, startFileServer } from "#bench/node.ts";
import { mibPerSecond } from "#bench/pump.ts";
import type { Group, RatioRow } from "#bench/row.ts";
import { startStore, type TestStore } from "#testing/object-stores.ts";
import { startPostgres } from "#testing/postgres-server.ts";

const IN_FLIGHT = 64;
const FILE_BYTES = 4_096;
const FILES = 3_000;
/** Files of one client that waits for each. */
const SINGLE_FILES = 500;
const CALLS = 10_000;
const ENTRIES = 2_000;
/** Bytes of an object, as the engine makes them; a file has as many as shall be sent. */
const OBJECT_BYTES = 4_000_000;
const OBJECTS = 40;
/** Requests of one upload at once. */
const PUTS_AT_ONCE = 4;
const LARGE_BYTES = OBJECT_BYTES * OBJECTS;
const LOCAL = "the local engine";

/** Users whose roots change at the same time. */
const USERS = 200;

/** The engine's places with a FileServer on them, and a bare client of both. */
interface Engine {
  readonly server: FileServerPair;
  readonly peer: Program;
  readonly url: string;
  readonly store: TestStore;
}

/** PostgreSQL with its flushes, and versitygw. */
function engine(lab: Lab): Promise<Engine> {
  return lab.once("engine", async () => {
    const cleanUp = (end: () => Promise<void>): void => lab.atEnd(end);
    const settings = ["fsync = on", "shared_buffers = '256MB'", "max_wal_size = '4GB'"];
    const database = await startPostgres(cleanUp, { settings });
    const store = await startStore("versitygw", cleanUp);
    const name = await database.createDatabase();
    const url = `postgres://grove:${encodeURIComponent(database.password)}@127.0.0.1:${database.port}/${name}`;
    const folder = await lab.folder("disk");
    const file = join(folder, "engine-url");
    await writeFile(file, `${url}\n`, { mode: 0o600 });
    const query = new URLSearchParams({
      endpoint: `http://127.0.0.1:${store.port}`,
      credentials: store.credentialsFile,
    });
    const places = ["-engine_file", file, "-store", `s3://${store.bucket}/bench?${query.toString()}`];
    const flags = [...places, "-register_per_minute", "1000000"];
    const server = await startFileServer(lab, join(folder, "node"), "plain", flags);
    const peer = lab.program("engine-peer");
    const [, keyId = ""] = /access_key_id = (\S+)/.exec(await readFile(store.credentialsFile, "utf8")) ?? [];
    const place = { url, port: store.port, bucket: store.bucket, keyId, secret: store.secret };
    await peer.run("connect", place);
    await fill(server);
    return { server, peer, url, store };
  });
}

/** The other engine, on the same disk. */
function local(lab: Lab): Promise<FileServerPair> {
  return lab.once("local", async () => {
    const server = await startFileServer(lab, await lab.folder("disk"), "plain");
    await fill(server);
    return server;
  });
}

async function fill({ client }: FileServerPair): Promise<void> {
  await client.run("makeFolder", "/listed");
  const files = { files: ENTRIES, inFlight: IN_FLIGHT, bytes: FILE_BYTES };
  await client.run("create", { ...files, folders: ["/listed"], prefix: "file" });
  await client.run("up", { path: "/large", bytes: LARGE_BYTES });
}

let round = 0;

async function create(
  { client, measure }: FileServerPair,
  many = { files: FILES, inFlight: IN_FLIGHT },
): Promise<number> {
  const folder = `/created-${++round}`;
  await client.run("makeFolder", folder);
  return measure("create", { ...many, bytes: FILE_BYTES, folders: [folder], prefix: "file" });
}

const paths = Array.from({ length: ENTRIES }, (_, at) => `/listed/file-${at}`);
const looks = { paths, calls: CALLS, inFlight: IN_FLIGHT };
const large = { path: "/large", bytes: LARGE_BYTES };

type Work = (server: FileServerPair) => Promise<number>;

const againstLocal = (name: string, rate: string, atLeast: number, work: Work): RatioRow => ({
  name: `shared engine, ${name}`,
  against: LOCAL,
  atLeast,
  rate,
  async sides(lab) {
    const [{ server }, other] = [await engine(lab), await local(lab)];
    return { ours: () => work(server), theirs: () => work(other) };
  },
});

/** The slowest calls of the last round of both sides. */
async function slowest(lab: Lab, what: string): Promise<string> {
  const { server, peer } = await engine(lab);
  const [ours, theirs] = [numberOf(await server.client.run("slowest")), numberOf(await peer.run("slowest"))];
  return `p99 ${ours.toFixed(1)} ms, ${theirs.toFixed(1)} ms ${what}`;
}

/** As many files in a bare group as there are calls at once, up to what the engine's own tests have taken. */
const createsBare = (inFlight: number, files: number): RatioRow => ({
  name: `shared engine, 4 KiB files created, ${inFlight} in flight`,
  against: `a bare driver that sends groups of ${inFlight} to the same PostgreSQL`,
  atLeast: 0.6,
  rate: "files/s",
  async sides(lab) {
    const { server, peer } = await engine(lab);
    const bare = { files, bytes: FILE_BYTES, atOnce: inFlight };
    return {
      ours: () => create(server, { files, inFlight }),
      theirs: async () => numberOf(await peer.run("create", bare)),
    };
  },
  note: (lab) => slowest(lab, inFlight === 1 ? "of a call" : "of a group"),
});

const createsOfMany: RatioRow = {
  name: `shared engine, 4 KiB files created in ${USERS} roots, one in flight in each`,
  against: `a bare driver that sends groups of ${IN_FLIGHT} to the same PostgreSQL`,
  atLeast: 0.6,
  rate: "files/s",
  async sides(lab) {
    const { server, peer } = await engine(lab);
    const owners = Array.from({ length: USERS }, (_, at) => `bench-${at}@example.com`);
    await server.client.run("connectOthers", owners);
    const files = { files: FILES, bytes: FILE_BYTES };
    const many = { ...files, folders: [], inFlight: USERS };
    return {
      ours: () => server.measure("createByOthers", { ...many, prefix: `file-${++round}` }),
      theirs: async () => numberOf(await peer.run("create", { ...files, atOnce: IN_FLIGHT })),
    };
  },
  note: (lab) => slowest(lab, "of a group"),
};

/** What is left where a door keeps no names, no counts and no rights of its own. */
const createsBound: RatioRow = {
  name: `the bound of that with ${IN_FLIGHT} in flight: calls of 4 KiB to the gRPC room with the bare driver behind it`,
  against: `a bare driver that sends groups of ${IN_FLIGHT} to the same PostgreSQL`,
  atLeast: 0,
  rate: "files/s",
  async sides(lab) {
    const { peer, url } = await engine(lab);
    const door = lab.program("batch-door");
    const client = lab.program("room-client");
    await client.run("connect", await door.run("listen", url));
    const calls = { calls: FILES, inFlight: IN_FLIGHT, bytes: FILE_BYTES };
    const bare = { files: FILES, bytes: FILE_BYTES, atOnce: IN_FLIGHT };
    return {
      ours: async () => numberOf(await client.run("give", calls)),
      theirs: async () => numberOf(await peer.run("create", bare)),
    };
  },
};

const uploadsBare: RatioRow = {
  name: "shared engine, UploadFile 160 MB",
  against: "bare PUTs of the same objects to the same store, four at once",
  atLeast: 0.7,
  rate: "MiB/s",
  async sides(lab) {
    const { server, peer } = await engine(lab);
    const puts = { count: OBJECTS, bytes: OBJECT_BYTES, inFlight: PUTS_AT_ONCE };
    return {
      ours: () => server.measure("up", large),
      theirs: async () => numberOf(await peer.run("put", puts)),
    };
  },
};

/** As people have it: a file of that size, in parts of 5 MiB. */
const uploadsRclone: RatioRow = {
  name: "shared engine, UploadFile 160 MB",
  against: "`rclone copyto` of a file to the same store, four parts at once, from start to end",
  atLeast: 0,
  rate: "MiB/s",
  async sides(lab) {
    const { server, store } = await engine(lab);
    const folder = await lab.folder("memory");
    await writeFile(join(folder, "large"), Buffer.alloc(LARGE_BYTES, 0xa5));
    const [, keyId = ""] = /access_key_id = (\S+)/.exec(await readFile(store.credentialsFile, "utf8")) ?? [];
    // Nothing else of the environment, which may name certificates that rclone cannot take.
    const env = {
      PATH: process.env["PATH"],
      RCLONE_CONFIG: join(folder, "none"),
      RCLONE_S3_PROVIDER: "Other",
      RCLONE_S3_ENDPOINT: `http://127.0.0.1:${store.port}`,
      RCLONE_S3_ACCESS_KEY_ID: keyId,
      RCLONE_S3_SECRET_ACCESS_KEY: store.secret,
      RCLONE_S3_NO_CHECK_BUCKET: "true",
      RCLONE_S3_UPLOAD_CONCURRENCY: String(PUTS_AT_ONCE),
    };
    const program = inPath("rclone");
    return {
      ours: () => server.measure("up", large),
      async theirs() {
        const place = `:s3:${store.bucket}/rclone/${++round}`;
        const start = performance.now();
        await promisify(execFile)(program, ["copyto", join(folder, "large"), place], { env });
        return mibPerSecond(LARGE_BYTES, start);
      },
    };
  },
};

/** Bars without a promise behind them are floors that a fall would break. */
export const engineRows: Group = {
  name: "engine",
  rows: () => [
    createsBare(IN_FLIGHT, FILES),
    createsBare(1, SINGLE_FILES),
    createsOfMany,
    createsBound,
    uploadsBare,
    uploadsRclone,
    againstLocal("GetAttr, 64 in flight, rows at hand", "calls/s", 0.9, (server) =>
      server.measure("getAttr", looks),
    ),
    againstLocal("4 KiB files created, 64 in flight", "files/s", 0.1, (server) => create(server)),
    againstLocal("4 KiB files read, 64 in flight", "calls/s", 0.5, (server) =>
      server.measure("readFile", { ...looks, bytes: FILE_BYTES }),
    ),
    againstLocal("UploadFile 160 MB", "MiB/s", 0.2, (server) => server.measure("up", large)),
    againstLocal("DownloadFile 160 MB", "MiB/s", 0.3, (server) => server.measure("down", large)),
  ],
};
