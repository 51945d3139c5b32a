// Tests of two FileServers on one shared engine: one is killed, and its users go on at the other.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import pg from "pg";
import { metricsPortOf } from "#base/metrics-port.ts";
import { enginePlaces } from "#testing/engine-places.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { until } from "#testing/until.ts";
import { haltOnce } from "./halted-program.ts";
import { Person } from "./people.ts";
import { freePlace, type Place, type Program, startGrove, stopProgram } from "./processes.ts";

const places = enginePlaces();
const { skip } = places;
const MOCK = { SVC_AUTH_MOCK: "1" };

interface EngineCluster {
  readonly folder: string;
  readonly metaserver: string;
  /** URL of the metadata store. */
  readonly meta: string;
  readonly nodes: readonly (Place & Program)[];
  /** Rows of a table of the engine. */
  count(from: string): Promise<number>;
}

async function startCluster(t: TestContext): Promise<EngineCluster> {
  const folder = scratchFolder("grove-e2e-");
  const name = await places.database.createDatabase();
  const urlFile = join(folder, "engine-url");
  const password = encodeURIComponent(places.database.password);
  const url = `postgres://grove:${password}@127.0.0.1:${places.database.port}/${name}`;
  await writeFile(
    urlFile,
    `${url}
`,
    { mode: 0o600 },
  );
  const query = new URLSearchParams({
    endpoint: `http://127.0.0.1:${places.store.port}`,
    credentials: places.store.credentialsFile,
  });
  const storeUrl = `s3://${places.store.bucket}/${name}?${query.toString()}`;
  const meta = await freePlace();
  const metaserver = startGrove(["metaserver", "-data", join(folder, "meta"), "-listen", meta.address], {
    env: MOCK,
  });
  t.after(() => stopProgram(metaserver, "SIGKILL"));
  await metaserver.says(/"event":"serving"/);
  const node = async (id: string): Promise<Place & Program> => {
    const place = await freePlace();
    const words = ["fileserver", "-data", join(folder, id), "-id", id, "-listen", place.address];
    const flags = ["-advertise", place.address, "-metaserver", meta.address, "-reserve", "1MiB"];
    const engine = ["-engine_file", urlFile, "-store", storeUrl];
    const program = startGrove([...words, ...flags, ...engine], { env: MOCK });
    t.after(() => stopProgram(program, "SIGKILL"));
    await program.says(/: serves .* on /);
    return { ...program, ...place };
  };
  const nodes = [await node("n1"), await node("n2")];
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  t.after(() => client.end());
  const count = async (from: string): Promise<number> => {
    const { rows } = await client.query(`SELECT count(*)::int AS count FROM grove_engine.${from}`);
    return (rows[0] as { count: number }).count;
  };
  const metadata = `sqlite:${join(folder, "meta", "metadata.db")}`;
  return { folder, metaserver: meta.address, meta: metadata, nodes, count };
}

/** The node that serves a person's root: it has made it. */
function holderOf({ nodes }: EngineCluster, email: string): Place & Program {
  const holder = nodes.find((node) => node.output().includes(`"user":"${email}"`));
  assert.ok(holder, `no node has made the root of ${email}`);
  return holder;
}

test("a FileServer is killed: its users go on at another one within 15 seconds, and nothing is missing", {
  skip,
  timeout: 240_000,
}, async (t) => {
  const cluster = await startCluster(t);
  const { folder, metaserver } = cluster;
  const alice = new Person(folder, "alice");
  const bob = new Person(folder, "bob");
  for (const person of [alice, bob]) {
    await person.ok("login", "--metaserver", metaserver, "--mock", person.email);
  }
  const large = join(folder, "large");
  await writeFile(large, randomBytes(9_000_001));
  const tree = join(folder, "tree");
  await mkdir(tree);
  for (let n = 0; n < 20; n++) await writeFile(join(tree, `f${n}`), `${n}\n`.repeat(1 + n * 900));
  await alice.ok("put", large, "/large");
  await alice.ok("put", "-r", tree, "/tree");
  await alice.ok("share", "/tree", bob.email);
  await alice.withInput("to be thrown away", "write", "/old");
  await alice.ok("rm", "/old");
  assert.match(await alice.ok("ls", "/"), /large/);

  const holder = holderOf(cluster, alice.email);
  const huge = join(folder, "huge");
  const hugeBytes = randomBytes(60_000_000);
  await writeFile(huge, hugeBytes);
  const putting = alice.start("put", huge, "/huge");
  // Some of it is staged, and it is not done.
  await haltOnce(putting, async () => (await cluster.count("upload WHERE staged_bytes > 8000000")) > 0);
  putting.child.kill("SIGCONT");
  await stopProgram(holder, "SIGKILL");
  const killedAtMs = performance.now();
  const later = join(folder, "later");
  await writeFile(later, "after the kill");
  await until(async () => (await alice.grove("put", later, "/later")).code === 0);
  const downMs = performance.now() - killedAtMs;
  t.diagnostic(`served again after ${Math.round(downMs)} ms`);

  const { code, stderr } = await putting.ended;
  assert.equal(code, 0, stderr);
  await alice.ok("get", "/huge", join(folder, "huge-back"));
  assert.ok((await readFile(join(folder, "huge-back"))).equals(hugeBytes));
  await alice.ok("get", "/large", join(folder, "back"));
  assert.ok((await readFile(join(folder, "back"))).equals(await readFile(large)));
  await alice.ok("get", "-r", "/tree", join(folder, "tree-back"));
  for (let n = 0; n < 20; n++) {
    assert.equal(
      await readFile(join(folder, "tree-back", `f${n}`), "utf8"),
      await readFile(join(tree, `f${n}`), "utf8"),
    );
  }
  assert.equal(await alice.ok("cat", "/later"), "after the kill");
  assert.match(await alice.ok("trash", "ls"), /old/);
  assert.match(await bob.ok("ls", `${alice.email}:/tree`), /f19/);
  const other = cluster.nodes.find((node) => node !== holder);
  assert.match(other?.output() ?? "", /"event":"engine.took_over"/);
  const metrics = await fetch(`http://127.0.0.1:${metricsPortOf(Number(other?.port))}/metrics`);
  const figures = (await metrics.json()) as Record<string, number>;
  // Bob's root may have been on the same node, and be taken over in the same step or in another.
  const taken = [...(other?.output() ?? "").matchAll(/"roots":(\d+).*"event":"engine.took_over"/g)];
  const roots = taken.reduce((sum, [, count]) => sum + Number(count), 0);
  assert.equal(figures["engine_taken_over_total"], roots);
  assert.ok((figures["engine_lease_age_ms"] ?? -1) >= 0 && (figures["engine_rows_cached"] ?? 0) > 0);
  for (const { output } of cluster.nodes) {
    assert.ok(!output().includes(places.database.password) && !output().includes(places.store.secret));
  }
  // A loaded machine's own slowness comes on top of the lease's 10 s.
  assert.ok(downMs < 45_000, `it took ${downMs} ms`);
});

test("a FileServer that stood still beyond its lease serves nothing more, ends, and comes back as another", {
  skip,
  timeout: 240_000,
}, async (t) => {
  const cluster = await startCluster(t);
  const { folder, metaserver, nodes } = cluster;
  const alice = new Person(folder, "alice");
  await alice.ok("login", "--metaserver", metaserver, "--mock", alice.email);
  const own = join(folder, "own");
  await writeFile(own, "before");
  await alice.ok("put", own, "/own");
  const holder = holderOf(cluster, alice.email);
  const other = nodes.find((node) => node !== holder);
  holder.child.kill("SIGSTOP");
  await other?.says(/"event":"engine.took_over"/);
  await writeFile(own, "meanwhile");
  await until(async () => (await alice.grove("put", own, "/own")).code === 0);
  holder.child.kill("SIGCONT");
  const { code, stderr } = await holder.ended;
  assert.notEqual(code, 0);
  assert.match(stderr, /the lease on the shared engine has ended/);
  assert.equal(await alice.ok("cat", "/own"), "meanwhile");
});
