// The shared engine against the local one in the same run, and against bare clients of its two places.
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Program } from "#bench/child.ts";
import { type Lab, numberOf } from "#bench/lab.ts";
import { type FileServerPair, startFileServer } from "#bench/node.ts";
import type { Group, RatioRow } from "#bench/row.ts";
import { startStore } from "#testing/object-stores.ts";
import { startPostgres } from "#testing/postgres-server.ts";

const IN_FLIGHT = 64;
const FILE_BYTES = 4_096;
const FILES = 3_000;
const CALLS = 10_000;
const ENTRIES = 2_000;
/** Bytes of an object, as the engine makes them; a file has as many as shall be sent. */
const OBJECT_BYTES = 4_000_000;
const OBJECTS = 40;
/** Requests of one upload at once. */
const PUTS_AT_ONCE = 4;
const LARGE_BYTES = OBJECT_BYTES * OBJECTS;
const LOCAL = "the local engine";

/** The engine's places with a FileServer on them, and a bare client of both. */
interface Engine {
  readonly server: FileServerPair;
  readonly peer: Program;
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
    const flags = ["-engine_file", file, "-store", `s3://${store.bucket}/bench?${query.toString()}`];
    const server = await startFileServer(lab, join(folder, "node"), "plain", flags);
    const peer = lab.program("engine-peer");
    const [, keyId = ""] = /access_key_id = (\S+)/.exec(await readFile(store.credentialsFile, "utf8")) ?? [];
    const place = { url, port: store.port, bucket: store.bucket, keyId, secret: store.secret };
    await peer.run("connect", place);
    await fill(server);
    return { server, peer };
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

async function create({ client, measure }: FileServerPair): Promise<number> {
  const folder = `/created-${++round}`;
  await client.run("makeFolder", folder);
  const files = { files: FILES, inFlight: IN_FLIGHT, bytes: FILE_BYTES };
  return measure("create", { ...files, folders: [folder], prefix: "file" });
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

const createsBare: RatioRow = {
  name: "shared engine, 4 KiB files created, 64 in flight",
  against: "a bare driver that sends groups of 64 to the same PostgreSQL",
  atLeast: 0.6,
  rate: "files/s",
  async sides(lab) {
    const { server, peer } = await engine(lab);
    const files = { files: FILES, bytes: FILE_BYTES };
    return { ours: () => create(server), theirs: async () => numberOf(await peer.run("create", files)) };
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

/** Bars without a promise behind them are floors that a fall would break. */
export const engineRows: Group = {
  name: "engine",
  rows: () => [
    createsBare,
    uploadsBare,
    againstLocal("GetAttr, 64 in flight, rows at hand", "calls/s", 0.9, (server) =>
      server.measure("getAttr", looks),
    ),
    againstLocal("4 KiB files created, 64 in flight", "files/s", 0.1, create),
    againstLocal("4 KiB files read, 64 in flight", "calls/s", 0.5, (server) =>
      server.measure("readFile", { ...looks, bytes: FILE_BYTES }),
    ),
    againstLocal("UploadFile 160 MB", "MiB/s", 0.2, (server) => server.measure("up", large)),
    againstLocal("DownloadFile 160 MB", "MiB/s", 0.3, (server) => server.measure("down", large)),
  ],
};
