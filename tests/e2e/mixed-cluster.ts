// A MetaServer, a node with disks of its own and two of the shared engine, as processes that tests may kill.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { metricsPortOf } from "#base/metrics-port.ts";
import type { EnginePlaces } from "#testing/engine-places.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { until } from "#testing/until.ts";
import { haltOnce } from "./halted-program.ts";
import { Server } from "./moving-cluster.ts";
import { operatorHere } from "./operator-here.ts";
import { Person } from "./people.ts";
import { freePlace, grove } from "./processes.ts";

/** Bytes that have come of an upload that is to be broken off. */
const BEGUN_BYTES = 8_000_000;
/** A quota that is the same over this time has no byte of a broken upload on its way any more. */
const QUIET_MS = 800;

/** Nodes with disks of their own, and those of the engine. */
export type NodeId = "n1" | "n2" | "e1" | "e2";

/** A node with a disk of its own, and two of the engine. */
export interface MixedCluster {
  readonly folder: string;
  readonly address: string;
  readonly own: Server;
  /** Another node with a disk of its own, for those that start it. */
  readonly other: Server;
  readonly engine: Readonly<Record<"e1" | "e2", Server>>;
  /** Words that name the engine's two places. */
  readonly flags: readonly string[];
  /** Runs a command on the metadata store. */
  operate(...words: string[]): Promise<string>;
  /** Rows of a table of the engine. */
  count(table: string): Promise<number>;
  /** Runs a statement on the engine's database. */
  ask(sql: string): Promise<Record<string, unknown>[]>;
  /** No root that comes is switched until the answer is called, which breaks off what has waited. */
  holdSwitch(): Promise<() => Promise<void>>;
  /** A node's /metrics. */
  metrics(id: NodeId): Promise<Record<string, unknown>>;
  /** Where a node listens. */
  addressOf(id: NodeId): string;
  /** The node where the store has a root, and the move of that root. */
  place(email: string): { readonly home: string; readonly state: string; readonly target: string };
}

/** Who may set quotas. */
const ADMIN = { SVC_ADMIN_EMAIL: "root@example.com" };
const SWITCH_LOCK = 7_001;
/** A root's head is kept right before its switch. */
const HELD_HEADS = `
  CREATE FUNCTION hold_head() RETURNS TRIGGER LANGUAGE plpgsql AS $body$
  BEGIN
    PERFORM pg_advisory_xact_lock(${SWITCH_LOCK});
    RETURN NEW;
  END $body$;
  CREATE TRIGGER hold_head BEFORE UPDATE OF head ON arrival FOR EACH ROW EXECUTE FUNCTION hold_head();`;

/** Starts the MetaServer alone; the nodes are started by the test. */
export async function startMixedCluster(
  t: TestContext,
  { database, store }: EnginePlaces,
): Promise<MixedCluster> {
  const folder = scratchFolder("grove-e2e-");
  const name = await database.createDatabase();
  const urlFile = join(folder, "engine-url");
  const password = encodeURIComponent(database.password);
  const url = `postgres://grove:${password}@127.0.0.1:${database.port}/${name}`;
  await writeFile(urlFile, `${url}\n`, { mode: 0o600 });
  const query = new URLSearchParams({
    endpoint: `http://127.0.0.1:${store.port}`,
    credentials: store.credentialsFile,
  });
  const flags = ["-engine_file", urlFile, "-store", `s3://${store.bucket}/${name}?${query.toString()}`];
  const { address } = await freePlace();
  const meta = new Server(
    join(folder, "meta"),
    ["metaserver", "-listen", address],
    /"event":"serving"/,
    ADMIN,
  );
  const ports = new Map<string, number>();
  const node = async (id: string, ...more: string[]): Promise<Server> => {
    const at = await freePlace();
    ports.set(id, at.port);
    const words = ["fileserver", "-id", id, "-listen", at.address, "-advertise", at.address];
    const usual = ["-metaserver", address, "-reserve", "1MiB", ...more];
    return new Server(join(folder, id), [...words, ...usual], /: serves .* on /, ADMIN);
  };
  const own = await node("n1");
  const other = await node("n2");
  const engine = { e1: await node("e1", ...flags), e2: await node("e2", ...flags) };
  for (const server of [meta, own, other, engine.e1, engine.e2]) t.after(() => server.end("SIGKILL"));
  await meta.start();
  const file = join(meta.data, "metadata.db");
  const connected = async (): Promise<pg.Client> => {
    const client = new pg.Client({ connectionString: url, options: "-c search_path=grove_engine" });
    await client.connect();
    return client;
  };
  const ask = async (sql: string): Promise<Record<string, unknown>[]> => {
    const client = await connected();
    try {
      return (await client.query(sql)).rows as Record<string, unknown>[];
    } finally {
      await client.end();
    }
  };
  return {
    folder,
    address,
    own,
    other,
    engine,
    flags,
    async operate(...words) {
      const { code, stdout, stderr } = await operatorHere([...words, "-meta", `sqlite:${file}`]);
      assert.equal(code, 0, stderr);
      return stdout;
    },
    ask,
    async count(table) {
      const [row] = await ask(`SELECT count(*)::int AS count FROM ${table}`);
      return Number(row?.["count"]);
    },
    async holdSwitch() {
      const client = await connected();
      await client.query(HELD_HEADS);
      await client.query("SELECT pg_advisory_lock($1)", [SWITCH_LOCK]);
      return async () => {
        const waiting = "SELECT pid FROM pg_locks WHERE NOT granted AND locktype = 'advisory' AND objid = $1";
        await client.query(`SELECT pg_terminate_backend(pid) FROM (${waiting}) others`, [SWITCH_LOCK]);
        await client.end();
      };
    },
    async metrics(id) {
      const port = metricsPortOf(ports.get(id) ?? 0);
      return (await (await fetch(`http://127.0.0.1:${port}/metrics`)).json()) as Record<string, unknown>;
    },
    addressOf: (id) => `127.0.0.1:${ports.get(id) ?? 0}`,
    place(email) {
      const rows = new DatabaseSync(file, { readOnly: true, timeout: 5_000 });
      try {
        const home = rows.prepare("SELECT fs_id FROM roots WHERE owner = ?").get(email);
        const row = rows.prepare("SELECT value FROM settings WHERE key = ?").get(`root_move:${email}`);
        const move = row === undefined ? {} : (JSON.parse(String(row["value"])) as Record<string, unknown>);
        const words = { state: String(move["state"] ?? ""), target: String(move["target"] ?? "") };
        return { home: String(home?.["fs_id"]), ...words };
      } finally {
        rows.close();
      }
    },
  };
}

/** Makes files of all sizes in folders. */
export async function makeTree(folder: string, count: number): Promise<void> {
  for (let index = 0; index < count; index++) {
    const inner = join(folder, `d${index % 5}`, `e${index % 7}`);
    await mkdir(inner, { recursive: true });
    const size = index % 40 === 0 ? 5_000_000 + index : index % 20 === 0 ? 200_000 + index : index * 9;
    await writeFile(join(inner, `f${index}`), randomBytes(size));
  }
}

/** What `grove quota` says. */
export async function quotaOf(person: Person): Promise<Record<string, unknown>> {
  return JSON.parse(await person.ok("quota", "--json")) as Record<string, unknown>;
}

/** Begins an upload of a large file, and kills its client when some of it has come. */
export async function breakOff(person: Person, file: string, path: string): Promise<void> {
  const put = person.start("put", file, path);
  await haltOnce(put, async () => Number((await quotaOf(person))["staging_bytes"]) > BEGUN_BYTES);
  put.child.kill("SIGKILL");
  await put.ended;
  // What has arrived is stored and charged also after its sender has gone.
  await until(async () => {
    const before = JSON.stringify(await quotaOf(person));
    await sleep(QUIET_MS);
    return JSON.stringify(await quotaOf(person)) === before;
  }, "an upload whose last bytes are charged");
}

/** Rejects, with what differs, unless the engine's rows and its bucket are sound. */
export async function mustBeSound({ flags }: MixedCluster): Promise<void> {
  const { code, stdout, stderr } = await grove(["fsck", ...flags, "-list"]);
  assert.equal(code, 0, stdout + stderr);
}

/** Signs a person in, and waits for the root. */
export async function signIn({ folder, address }: MixedCluster, name: string): Promise<Person> {
  const person = new Person(folder, name);
  await person.ok("login", "--metaserver", address, "--mock", person.email);
  await until(async () => (await person.grove("ls")).code === 0, "ls");
  return person;
}
