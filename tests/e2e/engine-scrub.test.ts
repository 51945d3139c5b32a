// Tests that a FileServer of the shared engine finds lost objects and wrong counters by itself, and tells of them.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { systemClock } from "#base/clock.ts";
import { silentLogger } from "#base/log.ts";
import { systemFraction } from "#base/random.ts";
import { chunkKey } from "#storage/object-store/chunk-blocks.ts";
import { openRequests } from "#storage/object-store/object-store.ts";
import { storeSettings } from "#storage/object-store/store-settings.ts";
import { enginePlaces } from "#testing/engine-places.ts";
import { until } from "#testing/until.ts";
import { signIn, startMixedCluster } from "./mixed-cluster.ts";
import { freePlace, grove } from "./processes.ts";

const places = enginePlaces();
const { skip } = places;

test("a lost object and a wrong counter are found without a read, told in /metrics, and named by fsck", {
  skip,
  timeout: 300_000,
}, async (t) => {
  const cluster = await startMixedCluster(t, places);
  const { folder, engine, flags } = cluster;
  await engine.e1.start();
  const alice = await signIn(cluster, "alice");
  for (const name of ["lost", "kept"]) {
    await writeFile(join(folder, name), randomBytes(200_000));
    await alice.ok("put", join(folder, name), `/${name}`);
  }
  const settings = storeSettings(flags[3] ?? "");
  const requests = await openRequests({
    settings,
    clock: systemClock,
    fraction: systemFraction,
    logger: silentLogger,
  });
  t.after(() => requests.client.close());
  const [row] = await cluster.ask(
    "SELECT chunk.name FROM chunk JOIN file_chunk ON chunk_id = chunk.id JOIN inode USING (content_id) WHERE inode.name = 'lost'",
  );
  const lost = String(row?.["name"]);
  await requests.deleteMany([chunkKey(settings.prefix, lost)]);
  await engine.e1.end("SIGTERM");
  await cluster.ask("UPDATE root SET live_bytes = live_bytes + 7");
  // A pass that ended before would wait for its day.
  for (const pass of ["scrub", "recount"])
    await rm(join(engine.e1.data, "engine", `${pass}.json`), { force: true });

  await engine.e1.start();
  const before = await cluster.metrics("e1");
  assert.deepEqual([before["damaged_file_count"], before["scrub_last_pass_unix"]], [0, null]);
  let figures: Record<string, unknown> = {};
  await until(async () => {
    figures = await cluster.metrics("e1");
    return figures["damaged_file_count"] === 1 && figures["quota_drift_bytes"] === 7;
  }, "the scrub and the recount have found it");
  assert.match(await alice.refused(1, "get", "/lost", join(folder, "back")), /damaged/);
  await alice.ok("get", "/kept", join(folder, "back"));
  const { code, stdout } = await grove(["fsck", ...flags, "-list"]);
  assert.notEqual(code, 0);
  assert.match(stdout, new RegExp(`chunk ${lost} has no object`));
  assert.match(stdout, /live bytes/);
  assert.doesNotMatch(stdout, /-repair/, "nothing is repaired there");

  // A folder of another cluster, which names this engine by mistake.
  const foreign = join(folder, "foreign");
  await mkdir(foreign, { mode: 0o700 });
  await writeFile(join(foreign, "cluster_id"), "another\n");
  const words = ["fileserver", "-id", "f1", "-data", foreign, "-listen", (await freePlace()).address];
  const refused = await grove([...words, "-metaserver", cluster.address, "-mock", ...flags]);
  assert.notEqual(refused.code, 0);
  assert.match(refused.stderr, /database belongs to the cluster .*, and this node is of another/);
});
