// Tests that an older copy of the engine's database, restored beside the bucket, has every file of its moment.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { enginePlaces } from "#testing/engine-places.ts";
import { until } from "#testing/until.ts";
import { mustBeSound, quotaOf, signIn, startMixedCluster } from "./mixed-cluster.ts";
import { grove } from "./processes.ts";

const places = enginePlaces();
const { skip } = places;

test("a dump is restored beside the bucket: what was deleted since is back, what was made since is gone, and fsck is clean", {
  skip,
  timeout: 300_000,
}, async (t) => {
  const cluster = await startMixedCluster(t, places);
  const { folder, engine, flags } = cluster;
  const url = (await readFile(flags[1] ?? "", "utf8")).trim();
  await engine.e1.start();
  await engine.e2.start();
  const alice = await signIn(cluster, "alice");
  const [kept, late] = [join(folder, "kept"), join(folder, "late")];
  await writeFile(kept, randomBytes(9_000_000));
  await writeFile(late, randomBytes(5_000_000));
  await alice.ok("put", kept, "/kept");
  await alice.withInput("small", "write", "/small");
  const usage = await quotaOf(alice);

  const dump = join(folder, "engine.sql");
  execFileSync("pg_dump", ["--schema=grove_engine", "--file", dump, url]);

  // Life goes on: the file is deleted for good, others come, and leases change hands.
  await alice.ok("rm", "--permanent", "--yes", "/kept");
  await until(async () => (await cluster.count("garbage")) > 0, "chunks that wait for their removal");
  const home = (): "e1" | "e2" => (cluster.place(alice.email).home === "e1" ? "e1" : "e2");
  for (let times = 0; times < 2; times++) {
    const holder = home();
    await engine[holder].end("SIGTERM");
    await until(() => home() !== holder, "the other node serves her");
    await engine[holder].start();
  }
  await alice.ok("put", late, "/late");
  const last = home();
  for (const id of ["e1", "e2"] as const) await engine[id].end("SIGTERM");

  await cluster.ask("DROP SCHEMA grove_engine CASCADE");
  execFileSync("psql", ["--quiet", "--set", "ON_ERROR_STOP=1", "--file", dump, url], { stdio: "ignore" });
  const before = await grove(["fsck", ...flags, "-list"]);
  assert.equal(before.code, 1, before.stderr);
  assert.match(before.stdout, /belongs to no row/);
  const restored = await grove(["fsck", ...flags, "-list", "-restored"]);
  assert.equal(restored.code, 0, restored.stdout + restored.stderr);
  assert.match(restored.stdout, /note: \d+ objects of after the restored moment have no row/);
  await mustBeSound(cluster);

  // The other node serves the root now: its lease counts as newer than those of the lost days.
  const next = last === "e1" ? "e2" : "e1";
  await engine[next].start();
  await until(async () => (await alice.grove("ls", "/")).code === 0, "the restored root");
  assert.equal(home(), next);
  await alice.ok("get", "/kept", join(folder, "back"));
  assert.ok((await readFile(join(folder, "back"))).equals(await readFile(kept)));
  assert.equal(await alice.ok("cat", "/small"), "small");
  assert.deepEqual(await quotaOf(alice), usage);
  await alice.refused(3, "stat", "/late");
  await alice.ok("put", late, "/late");
  await engine[last].start();
  await mustBeSound(cluster);
});
