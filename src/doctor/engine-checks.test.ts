// Tests of the doctor's look at the shared engine: what it finds of a real database and a real bucket.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { openEngine } from "#storage/engine/engine.fixture.ts";
import { engineSettings } from "#storage/engine/engine-settings.ts";
import { enginePlaces } from "#testing/engine-places.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { engineChecks } from "./engine-checks.ts";
import { type Finding, runChecks } from "./finding.ts";

const places = enginePlaces();
const { skip } = places;

const storeUrl = (prefix: string, port = places.store.port): string =>
  `s3://${places.store.bucket}/${prefix}?${new URLSearchParams({
    endpoint: `http://127.0.0.1:${port}`,
    credentials: places.store.credentialsFile,
  }).toString()}`;

async function look(database: string, url: string): Promise<Finding[]> {
  const engineFile = join(scratchFolder("doctor-"), "engine");
  const secret = encodeURIComponent(places.database.password);
  const engine = `postgres://grove:${secret}@127.0.0.1:${places.database.port}/${database}\n`;
  await writeFile(engineFile, engine, { mode: 0o600 });
  const findings = await runChecks(engineChecks(await engineSettings({ engineFile, store: url }, {}), {}));
  const told = JSON.stringify(findings);
  assert.ok(!told.includes(places.database.password) && !told.includes(places.store.secret), told);
  return findings;
}

const said = (findings: readonly Finding[], name: string): string => {
  const finding = findings.find((one) => one.name === name);
  return `${finding?.state}: ${finding?.what}`;
};

async function openAt(t: TestContext, database: string, prefix: string): Promise<void> {
  const config = { host: places.database.socketFolder, port: places.database.port, user: "grove", database };
  await openEngine(t, { database: { config, schema: "grove_engine" }, storeUrl: storeUrl(prefix) });
}

test("a new database and bucket, and those of a FileServer that runs, are fit for it", {
  skip,
}, async (t) => {
  const database = await places.database.createDatabase();
  const fresh = await look(database, storeUrl("one"));
  assert.match(said(fresh, "engine's database"), /^ok: answers, and has no tables yet/);
  assert.match(said(fresh, "engine's bucket"), /^ok: an object was written, read and removed/);
  assert.equal(said(fresh, "database and bucket"), "ok: both are new");
  assert.match(said(fresh, "engine's database: standby"), /^warning: commits wait for no standby/);
  assert.match(said(fresh, "clock of the engine's database"), /^ok/);
  assert.match(said(fresh, "clock of the engine's bucket"), /^ok/);
  await openAt(t, database, "one");
  const used = await look(database, storeUrl("one"));
  assert.match(said(used, "engine's database"), /^ok: .* 1 FileServers under a lease, 0 roots$/);
  assert.equal(said(used, "database and bucket"), "ok: belong together");
});

test("a bucket of another database, none, a wrong key and a store that is away are failures", {
  skip,
}, async (t) => {
  const [one, other] = [await places.database.createDatabase(), await places.database.createDatabase()];
  await openAt(t, one, "two");
  await openAt(t, other, "three");
  assert.match(
    said(await look(other, storeUrl("two")), "database and bucket"),
    /^failed: .* belongs to another/,
  );
  const unnamed = await look(other, storeUrl("four"));
  assert.match(said(unnamed, "database and bucket"), /^failed: the bucket has no chunks of this database/);
  const away = await look("no_such_database", storeUrl("two", 9));
  assert.match(said(away, "engine's database"), /^failed: .*no_such_database/);
  assert.match(said(away, "engine's bucket"), /^failed: /);
  await writeFile(places.store.credentialsFile, "access_key_id = nobody\nsecret_access_key = wrong\n");
  const denied = await look(one, storeUrl("two"));
  assert.match(said(denied, "engine's bucket"), /^failed: /);
});
