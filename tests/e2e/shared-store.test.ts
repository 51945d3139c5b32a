// Tests of two MetaServers on one PostgreSQL under kills: nothing acknowledged is lost.
import assert from "node:assert/strict";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type PostgresServer, startPostgres, withoutPostgres } from "#testing/postgres-server.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { until } from "#testing/until.ts";
import { Person } from "./people.ts";
import { freePlace, type Place, type Program, startGrove, stopProgram } from "./processes.ts";

const skip = withoutPostgres();
/** More rounds: GROVE_E2E_ROUNDS=20 node --test tests/e2e/shared-store.test.ts */
const ROUNDS = Number(process.env["GROVE_E2E_ROUNDS"] ?? 1);
const FILES = 60;
const MOCK = { SVC_AUTH_MOCK: "1" };
const ends: (() => Promise<void>)[] = [];
let database: PostgresServer;

before(async () => {
  if (skip === false) database = await startPostgres((end) => ends.push(end));
});
after(async () => {
  for (const end of ends) await end();
});

/** A server that can be killed and restarted in its place. */
class Restartable {
  readonly place: Place;
  readonly #words: readonly string[];
  readonly #said: RegExp;
  program: Program | undefined;

  constructor(place: Place, words: readonly string[], said: RegExp) {
    this.place = place;
    this.#words = words;
    this.#said = said;
  }

  async start(): Promise<void> {
    this.program = startGrove(this.#words, { env: MOCK });
    await this.program.says(this.#said);
  }

  async kill(): Promise<void> {
    if (this.program !== undefined) await stopProgram(this.program, "SIGKILL");
  }
}

interface SharedCluster {
  readonly folder: string;
  readonly metaservers: readonly [Restartable, Restartable];
  readonly nodes: readonly [Restartable, Restartable];
  /** Flags for sign-ins: both MetaServers. */
  readonly metaserverFlag: string;
}

async function startCluster(t: TestContext): Promise<SharedCluster> {
  const folder = scratchFolder("grove-e2e-");
  const name = await database.createDatabase();
  const urlFile = join(folder, "meta-url");
  const password = encodeURIComponent(database.password);
  const url = `postgres://grove:${password}@127.0.0.1:${database.port}/${name}`;
  await writeFile(urlFile, `${url}\n`, { mode: 0o600 });
  const metaserver = async (id: string): Promise<Restartable> => {
    const place = await freePlace();
    const data = join(folder, id);
    const words = ["metaserver", "-data", data, "-listen", place.address, "-meta_file", urlFile];
    return new Restartable(place, words, /"event":"serving"/);
  };
  const metaservers = [await metaserver("m1"), await metaserver("m2")] as const;
  const [m1, m2] = metaservers.map(({ place }) => place.address) as [string, string];
  const node = async (id: string, asks: string): Promise<Restartable> => {
    const place = await freePlace();
    const words = ["fileserver", "-data", join(folder, id), "-id", id, "-listen", place.address];
    const flags = ["-advertise", place.address, "-metaserver", asks, "-reserve", "1MiB"];
    return new Restartable(place, [...words, ...flags], /: serves .* on /);
  };
  const nodes = [await node("n1", `${m1},${m2}`), await node("n2", `${m2},${m1}`)] as const;
  for (const server of [...metaservers, ...nodes]) {
    t.after(() => server.kill());
    await server.start();
  }
  return { folder, metaservers, nodes, metaserverFlag: `${m1},${m2}` };
}

/** Signs in a new user and stores one file; true when that was acknowledged. */
async function arrive(cluster: SharedCluster, name: string): Promise<boolean> {
  const person = new Person(cluster.folder, name);
  const { code, stderr } = await person.grove(
    "login",
    "--metaserver",
    cluster.metaserverFlag,
    "--mock",
    person.email,
  );
  assert.ok(code === 0 || code === 7, stderr);
  if (code !== 0) return false;
  const stored = await person.withInput(`of ${name}`, "write", "/own.txt");
  assert.ok(stored.code === 0 || stored.code === 7, stored.stderr);
  return stored.code === 0;
}

test("node, MetaServers and database killed in turn under 'grove put -r': nothing acknowledged is lost, clients recover by themselves", {
  skip,
  timeout: 180_000 + ROUNDS * 60_000,
}, async (t) => {
  const cluster = await startCluster(t);
  const { folder, metaservers, nodes } = cluster;
  const tree = join(folder, "tree");
  await mkdir(tree);
  for (let n = 0; n < FILES; n++) await writeFile(join(tree, `f${n}`), `${n}\n`.repeat(1 + n * 100));
  const alice = new Person(folder, "alice");
  await alice.ok("login", "--metaserver", cluster.metaserverFlag, "--mock", alice.email);
  await alice.ok("mkdir", "/home");

  const over = new AbortController();
  const puts = (async () => {
    let count = 0;
    for (; !over.signal.aborted || count < 2; count++) await alice.ok("put", "-r", tree, `/home/put${count}`);
    return count;
  })();
  const arrived: string[] = [];
  const arrivals = (async () => {
    for (let n = 0; !over.signal.aborted || arrived.length < 3; n++) {
      if (await arrive(cluster, `new${n}`)) arrived.push(`new${n}`);
    }
  })();
  const working = Promise.all([puts, arrivals]);
  const until = async (count: number): Promise<void> => {
    while (arrived.length < count) await Promise.race([sleep(50), working]);
  };

  for (let round = 0; round < ROUNDS; round++) {
    for (const server of [...nodes, ...metaservers]) {
      await server.kill();
      // One MetaServer is enough for newcomers. A killed node restarts at once, since its users need it.
      if (metaservers.includes(server)) await until(arrived.length + 1);
      await server.start();
    }
    await database.stop("immediate");
    await sleep(500);
    await database.start();
    await until(arrived.length + 1);
  }
  over.abort();
  const [count] = await working;

  const wanted = await readdir(tree);
  for (const put of [0, count - 1]) {
    await alice.ok("get", "-r", `/home/put${put}`, join(folder, `back${put}`));
    for (const name of wanted) {
      const [sent, back] = await Promise.all(
        [tree, join(folder, `back${put}`)].map((at) => readFile(join(at, name), "utf8")),
      );
      assert.equal(back, sent, name);
    }
  }
  for (const name of arrived) {
    assert.equal(await new Person(folder, name).ok("cat", "/own.txt"), `of ${name}`);
  }
  for (const { program } of [...metaservers, ...nodes]) {
    assert.ok(!(program?.output() ?? "").includes(database.password));
  }
});

test("the store is lost: registrations bring back roots and shares, and every file is where it was (D19)", {
  skip,
  timeout: 120_000,
}, async (t) => {
  const cluster = await startCluster(t);
  const [alice, bob] = ["alice", "bob"].map((name) => new Person(cluster.folder, name)) as [Person, Person];
  for (const person of [alice, bob]) {
    await person.ok("login", "--metaserver", cluster.metaserverFlag, "--mock", person.email);
  }
  await alice.ok("mkdir", "/docs");
  await alice.withInput("shared", "write", "/docs/a.txt");
  await alice.ok("share", "/docs", bob.email);
  const places = await bob.ok("roots", "--json");
  assert.match(places, /alice@example\.com/);
  const name = (
    await database.sql("postgres", "SELECT max(datname) FROM pg_database WHERE datname LIKE 'grove%'")
  ).trim();
  await database.sql(name, "DROP SCHEMA grove CASCADE");
  // Within two heartbeats both nodes have reported their roots.
  await until(async () => {
    const { code, stdout } = await bob.grove("roots", "--json");
    return code === 0 && stdout === places;
  });
  assert.equal(await bob.ok("cat", "alice@example.com:/docs/a.txt"), "shared");
  for (const { place } of cluster.metaservers) {
    const ready = await fetch(`${place.metricsUrl}/ready`);
    assert.equal(ready.status, 200);
  }
});
