// Tests that a root moves from a node's own disk to the shared engine while its users work, over kills of either side.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, type TestContext, test } from "node:test";
import { promisify } from "node:util";
import pg from "pg";
import { startStore, type TestStore, withoutStore } from "#testing/object-stores.ts";
import { type PostgresServer, startPostgres, withoutPostgres } from "#testing/postgres-server.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { until } from "#testing/until.ts";
import { checkData } from "./checked-data.ts";
import { Server } from "./moving-cluster.ts";
import { Person } from "./people.ts";
import { freePlace, grove } from "./processes.ts";

const skip = withoutPostgres() || withoutStore("versitygw");
const run = promisify(execFile);
const ends: (() => Promise<void>)[] = [];
let database: PostgresServer;
let store: TestStore;

before(async () => {
  if (skip !== false) return;
  database = await startPostgres((end) => ends.push(end));
  store = await startStore("versitygw", (end) => ends.push(end));
});
after(async () => {
  for (const end of ends.toReversed()) await end();
});

/** A node with a disk of its own, and two of the engine; those are started by the test. */
interface MixedCluster {
  readonly folder: string;
  readonly address: string;
  readonly own: Server;
  readonly engine: Readonly<Record<"e1" | "e2", Server>>;
  /** Words that name the engine's two places. */
  readonly places: readonly string[];
  /** Runs a command on the metadata store. */
  operate(...words: string[]): Promise<string>;
  /** Rows of a table of the engine. */
  count(table: string): Promise<number>;
  /** The node where the store has a root, and the move of that root. */
  place(email: string): { readonly home: string; readonly state: string; readonly target: string };
}

async function startCluster(t: TestContext): Promise<MixedCluster> {
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
  const places = ["-engine_file", urlFile, "-store", `s3://${store.bucket}/${name}?${query.toString()}`];
  const { address } = await freePlace();
  const meta = new Server(join(folder, "meta"), ["metaserver", "-listen", address], /"event":"serving"/);
  const node = async (id: string, ...more: string[]): Promise<Server> => {
    const at = await freePlace();
    const words = ["fileserver", "-id", id, "-listen", at.address, "-advertise", at.address];
    const flags = ["-metaserver", address, "-reserve", "1MiB", ...more];
    return new Server(join(folder, id), [...words, ...flags], /: serves .* on /);
  };
  const own = await node("n1");
  const engine = { e1: await node("e1", ...places), e2: await node("e2", ...places) };
  for (const server of [meta, own, engine.e1, engine.e2]) t.after(() => server.end("SIGKILL"));
  await meta.start();
  await own.start();
  const file = join(meta.data, "metadata.db");
  return {
    folder,
    address,
    own,
    engine,
    places,
    async operate(...words) {
      const { code, stdout, stderr } = await grove([...words, "-meta", `sqlite:${file}`]);
      assert.equal(code, 0, stderr);
      return stdout;
    },
    async count(table) {
      const client = new pg.Client({ connectionString: url });
      await client.connect();
      try {
        const { rows } = await client.query(`SELECT count(*)::int AS count FROM grove_engine.${table}`);
        return (rows[0] as { count: number }).count;
      } finally {
        await client.end();
      }
    },
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

async function makeTree(folder: string, count: number): Promise<void> {
  for (let index = 0; index < count; index++) {
    const inner = join(folder, `d${index % 5}`, `e${index % 7}`);
    await mkdir(inner, { recursive: true });
    const size = index % 40 === 0 ? 9_000_000 + index : index % 20 === 0 ? 200_000 + index : index * 9;
    await writeFile(join(inner, `f${index}`), randomBytes(size));
  }
}

async function quotaOf(person: Person): Promise<Record<string, unknown>> {
  return JSON.parse(await person.ok("quota", "--json")) as Record<string, unknown>;
}

/** Rejects, with what differs, unless the engine's rows and its bucket are sound. */
async function mustBeSound({ places }: MixedCluster): Promise<void> {
  const { code, stdout, stderr } = await grove(["fsck", ...places, "-list"]);
  assert.equal(code, 0, stdout + stderr);
}

async function signIn({ folder, address }: MixedCluster, name: string): Promise<Person> {
  const person = new Person(folder, name);
  await person.ok("login", "--metaserver", address, "--mock", person.email);
  await until(async () => (await person.grove("ls")).code === 0, "ls");
  return person;
}

test("a root moves to the engine under put -r and get -r, over kills of both sides: no call fails, and nothing is missing", {
  skip,
  timeout: 300_000,
}, async (t) => {
  const cluster = await startCluster(t);
  const { folder, own, engine } = cluster;
  const [alice, bob] = [await signIn(cluster, "alice"), await signIn(cluster, "bob")];
  const [first, second, large] = [join(folder, "first"), join(folder, "second"), join(folder, "large.bin")];
  await makeTree(first, 121);
  await makeTree(second, 121);
  await writeFile(large, randomBytes(120_000_000));
  await alice.ok("put", "-r", first, "/");
  await alice.ok("share", "/first", bob.email);
  await alice.withInput("to be deleted", "write", "/gone.txt");
  await alice.ok("rm", "/gone.txt");
  const begun = alice.start("put", large, "/large.bin");
  await until(async () => Number((await quotaOf(alice))["staging_bytes"]) > 8_000_000, "a begun upload");
  begun.child.kill("SIGKILL");
  await begun.ended;
  const before = await quotaOf(alice);
  const etag = JSON.parse(await alice.ok("stat", "/first/d0/e0/f0", "--json"))["etag"] as string;
  await engine.e1.start();
  await engine.e2.start();

  const put = alice.start("put", "-r", second, "/");
  const get = bob.start("get", "-r", `${alice.email}:/first`, join(folder, "by-bob"));
  await cluster.operate("root", "move", alice.email, "-to", "e1");
  await until(async () => (await cluster.count("arrived_chunk")) > 1, "chunks that have come");
  // Neither side has a word in it.
  await Promise.all([engine.e1.restart(), own.restart()]);
  await until(() => cluster.place(alice.email).home === "e1", "the switch");
  for (const [what, program] of [
    ["put -r of the owner", put],
    ["get -r of the other user", get],
  ] as const) {
    const { code, stderr } = await program.ended;
    assert.equal(code, 0, `${what}: ${stderr}`);
  }
  const now = await quotaOf(alice);
  assert.equal(now["staging_bytes"], before["staging_bytes"]);
  assert.equal(now["trash_bytes"], before["trash_bytes"]);
  assert.equal(JSON.parse(await alice.ok("stat", "/first/d0/e0/f0", "--json"))["etag"], etag);
  for (const [path, at] of [
    ["/first", first],
    ["/second", second],
  ] as const) {
    const back = join(folder, `back${path.slice(1)}`);
    await alice.ok("get", "-r", path, back);
    await run("diff", ["-r", at, back]);
    await rm(back, { recursive: true });
  }
  await run("diff", ["-r", first, join(folder, "by-bob")]);
  await alice.ok("put", large, "/large.bin");
  await alice.ok("get", "/large.bin", join(folder, "large-back"));
  await run("cmp", [large, join(folder, "large-back")]);
  await alice.ok("trash", "restore", "/gone.txt");
  assert.equal(await alice.ok("cat", "/gone.txt"), "to be deleted");
  await alice.ok("unshare", "/first", bob.email);
  assert.notEqual((await bob.grove("ls", `${alice.email}:/first`)).code, 0);
  await cluster.operate("root", "move", alice.email, "-confirm");
  await until(() => cluster.place(alice.email).state === "", "the end of the move");

  // The node that serves it dies, and the other one of the engine goes on.
  await engine.e1.end("SIGKILL");
  await until(async () => (await alice.grove("cat", "/gone.txt")).code === 0, "the other node");
  await alice.ok("get", "-r", "/second", join(folder, "after"));
  await run("diff", ["-r", second, join(folder, "after")]);
  assert.deepEqual((await quotaOf(alice))["staging_bytes"], 0);
  await mustBeSound(cluster);
  for (const server of [engine.e2, own]) await server.end("SIGTERM");
  await checkData(own.data);
});

test("the target in the engine dies for good: its other node goes on with the move, and a drain takes the rest along", {
  skip,
  timeout: 240_000,
}, async (t) => {
  const cluster = await startCluster(t);
  const { folder, own, engine } = cluster;
  const [alice, bob] = [await signIn(cluster, "alice"), await signIn(cluster, "bob")];
  const [tree, large] = [join(folder, "tree"), join(folder, "large")];
  await makeTree(tree, 41);
  // So much that its move takes longer than a death of its target.
  await writeFile(large, randomBytes(250_000_000));
  for (const person of [alice, bob]) await person.ok("put", "-r", tree, "/");
  await alice.ok("put", large, "/large");
  const before = [await alice.ok("quota", "--json"), await bob.ok("quota", "--json")];
  await engine.e1.start();
  await engine.e2.start();
  await cluster.operate("root", "move", alice.email, "-to", "e1");
  await until(async () => (await cluster.count("arrived_chunk")) > 1, "chunks that have come");
  await engine.e1.end("SIGKILL");
  assert.equal(cluster.place(alice.email).home, "n1");
  await until(() => cluster.place(alice.email).target === "e2", "the other node as the target");
  await until(() => cluster.place(alice.email).home === "e2", "the switch");
  await cluster.operate("node", "drain", "n1", "-to_engine", "-yes");
  assert.equal(cluster.place(bob.email).home, "e2");
  for (const [index, person] of [alice, bob].entries()) {
    await until(async () => (await person.grove("ls", "/tree")).code === 0, "ls");
    const back = join(folder, `back${index}`);
    await person.ok("get", "-r", "/tree", back);
    await run("diff", ["-r", tree, back]);
    assert.equal(await person.ok("quota", "--json"), before[index]);
  }
  await alice.ok("get", "/large", join(folder, "large-back"));
  await run("cmp", [large, join(folder, "large-back")]);
  await cluster.operate("node", "drain", "n1", "-confirm");
  await until(() => [alice, bob].every(({ email }) => cluster.place(email).state === ""), "the ends");
  assert.equal(await cluster.count("arrival"), 0);
  await mustBeSound(cluster);
  await own.end("SIGTERM");
  await checkData(own.data);
});
