// Tests of the check of a shared engine: sound while it is used, and each kind of difference is found.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import pg from "pg";
import { systemClock } from "#base/clock.ts";
import { silentLogger } from "#base/log.ts";
import { systemFraction } from "#base/random.ts";
import { crc32 } from "#os/crc32.ts";
import { sweepBlocks } from "#storage/object-store/block-sweeps.ts";
import { chunkKey } from "#storage/object-store/chunk-blocks.ts";
import { RECOVERY_WINDOW_MS } from "#storage/object-store/dropped-chunks.ts";
import { openRequests } from "#storage/object-store/object-store.ts";
import { bytesBody } from "#storage/object-store/s3-client.ts";
import { storeSettings } from "#storage/object-store/store-settings.ts";
import { connectShared } from "#storage/shared/shared-connection.ts";
import { enginePlaces } from "#testing/engine-places.ts";
import { until } from "#testing/until.ts";
import { type EnginePlace, enginePlace, inodeAt, openEngine, readAll, upload } from "./engine.fixture.ts";
import { checkEngine } from "./engine-check.ts";

const places = enginePlaces();
const { skip } = places;

const OWNER = "ada@example.com";

async function differencesOf(place: EnginePlace): Promise<readonly string[]> {
  const bucket = storeSettings(place.storeUrl);
  const check = { database: [place.database], bucket, clock: systemClock, fraction: systemFraction };
  return (await checkEngine(check)).differences;
}

test("a used engine is sound; wrong counters, lost rows, lost and stray objects are found", {
  skip,
}, async (t) => {
  const place = await enginePlace(places);
  const { storage } = await openEngine(t, place);
  const root = await storage.createRoot({ owner: OWNER, rootId: "root" });
  const by = { owner: OWNER, by: OWNER, accessVersion: undefined };
  const folder = await storage.createDirectory({ ...by, parentId: root.directoryId, name: "docs" });
  const data = Buffer.from("small");
  await storage.createFile({ ...by, parentId: folder.inode.id, name: "a", data, mtimeMs: 0 });
  for (const name of ["large", "old", "trashed"]) {
    await upload(storage, OWNER, folder.inode.id, name, randomBytes(5_000_000));
  }
  await storage.remove({
    ...by,
    inodeId: (await inodeAt(storage, OWNER, "docs", "old")).id,
    recursive: false,
  });
  await storage.trash({ ...by, inodeId: (await inodeAt(storage, OWNER, "docs", "trashed")).id });
  assert.deepEqual(await differencesOf(place), []);

  const client = new pg.Client(place.database.config);
  await client.connect();
  t.after(() => client.end());
  const schema = place.database.schema;
  const settings = storeSettings(place.storeUrl);
  const requests = await openRequests({
    settings,
    clock: systemClock,
    fraction: systemFraction,
    logger: silentLogger,
  });
  t.after(() => requests.client.close());
  const put = (key: string) => requests.putNew(key, bytesBody([data], data.length), crc32(data));
  await client.query(`UPDATE ${schema}.root SET live_bytes = live_bytes + 1`);
  assert.match(
    (await differencesOf(place)).join("\n"),
    /^the root of ada@example\.com says \d+ .*; it is \d+$/,
  );
  await client.query(`UPDATE ${schema}.root SET live_bytes = live_bytes - 1`);

  await put(`${settings.prefix}chunks/no-name-of-ours`);
  await put(chunkKey(settings.prefix, `${"0".repeat(32)}00`));
  const strays = await differencesOf(place);
  assert.match(strays.join("\n"), /is no object of Grove's/);
  assert.match(strays.join("\n"), /belongs to no row/);
  assert.equal(strays.length, 2);
  await requests.deleteMany([
    `${settings.prefix}chunks/no-name-of-ours`,
    chunkKey(settings.prefix, `${"0".repeat(32)}00`),
  ]);
  assert.deepEqual(await differencesOf(place), []);

  const used = await client.query(`SELECT name FROM ${schema}.chunk WHERE refs > 0 ORDER BY name LIMIT 1`);
  const { name } = used.rows[0] as { name: string };
  await requests.deleteMany([chunkKey(settings.prefix, name)]);
  assert.deepEqual(await differencesOf(place), [`chunk ${name} has no object`]);
  await client.query(`UPDATE ${schema}.chunk SET refs = refs + 1 WHERE name = $1`, [name]);
  assert.match((await differencesOf(place)).join("\n"), new RegExp(`chunk ${name} says 2 uses; there are 1`));
  await client.query(`DELETE FROM ${schema}.inline_content`);
  assert.match((await differencesOf(place)).join("\n"), /docs\/a.* has stored bytes of another length/);
  await client.query(`DELETE FROM ${schema}.holding`);
  assert.match((await differencesOf(place)).join("\n"), /has no lease row/);
});

test("what came after a restored moment stays for the window of recovery, so that a later one can be restored", {
  skip,
}, async (t) => {
  const place = await enginePlace(places);
  const first = await openEngine(t, place);
  const { directoryId } = await first.storage.createRoot({ owner: OWNER, rootId: "root" });
  await upload(first.storage, OWNER, directoryId, "kept", randomBytes(100_000));
  const client = await connectShared(place.database);
  t.after(() => client.end());
  const tables = ["chunk", "file_chunk", "inode", "root"];
  const moment: unknown[] = [];
  for (const table of tables) {
    const { rows } = await client.query(`SELECT json_agg(t) AS rows FROM ${table} t`);
    moment.push((rows[0] as { rows: unknown }).rows);
  }
  await upload(first.storage, OWNER, directoryId, "late", randomBytes(100_000));
  await first.storage.close();
  for (const [at, table] of tables.entries()) {
    await client.query(`DELETE FROM ${table}`);
    await client.query(`INSERT INTO ${table} SELECT * FROM json_populate_recordset(NULL::${table}, $1)`, [
      JSON.stringify(moment[at]),
    ]);
  }
  // One object has a name of a block that was there at the moment, one of a block that came later.
  const settings = storeSettings(place.storeUrl);
  const deps = { clock: systemClock, fraction: systemFraction };
  const requests = await openRequests({ settings, ...deps, logger: silentLogger });
  t.after(() => requests.client.close());
  const bytes = Buffer.from("later");
  const stray = chunkKey(settings.prefix, `${"0".repeat(32)}00`);
  await requests.putNew(stray, bytesBody([bytes], bytes.length), crc32(bytes));
  const listed = async (): Promise<number> => {
    return (await requests.list(`${settings.prefix}chunks/`, "")).objects.length;
  };
  await checkEngine({ database: [place.database], bucket: settings, isRestored: true, ...deps });

  const next = await openEngine(t, place);
  const incarnation = await next.rows.incarnation();
  const removal = next.store.removal({ incarnation, recoveryWindowMs: RECOVERY_WINDOW_MS });
  const sweptAfter = async (ms: number): Promise<number> => {
    const clock = { wallMs: () => systemClock.wallMs() + ms };
    const sweep = { ...removal, blocks: next.rows, places: new Map(), clock };
    await sweepBlocks(sweep, new AbortController().signal);
    return listed();
  };
  assert.equal(await sweptAfter(RECOVERY_WINDOW_MS - 60_000), 3);
  assert.equal(await sweptAfter(RECOVERY_WINDOW_MS + 60_000), 1);
});

test("a bucket without the chunks of its database is refused, until fsck is told that they are lost", {
  skip,
}, async (t) => {
  const place = await enginePlace(places);
  const { storage, directory } = await openEngine(t, place);
  const { directoryId } = await storage.createRoot({ owner: OWNER, rootId: "root" });
  const bytes = randomBytes(100_000);
  await upload(storage, OWNER, directoryId, "large", bytes);
  await storage.close();
  const other = { ...place, storeUrl: place.storeUrl.replace("?", "-other?") };
  await assert.rejects(openEngine(t, other, { directory }), /hold nothing of the database, which has chunks/);
  const here = await openEngine(t, place, { directory });
  await until(() => here.storage.roots().length === 1);
  const file = await inodeAt(here.storage, OWNER, "large");
  assert.ok((await readAll(here.storage, file.id)).equals(bytes), "nothing was marked as damaged");
  await here.storage.close();

  const bucket = storeSettings(other.storeUrl);
  const check = { database: [place.database], bucket, clock: systemClock, fraction: systemFraction };
  const { differences } = await checkEngine({ ...check, isRestored: true });
  assert.match(differences.join(), /has no object/);
  const there = await openEngine(t, other, { directory });
  await until(() => there.storage.roots().length === 1);
  await upload(there.storage, OWNER, directoryId, "large", bytes);
});

test("a lost object that was put back makes its file whole again after a restore, and no other file", {
  skip,
  timeout: 120_000,
}, async (t) => {
  const place = await enginePlace(places);
  const { storage, store } = await openEngine(t, place);
  const { directoryId } = await storage.createRoot({ owner: OWNER, rootId: "root" });
  const bytes = randomBytes(100_000);
  for (const name of ["back", "lost"]) await upload(storage, OWNER, directoryId, name, bytes);
  const client = await connectShared(place.database);
  t.after(() => client.end());
  const { rows } = await client.query("SELECT name FROM chunk ORDER BY id");
  const keys = (rows as { name: string }[]).map(({ name }) => chunkKey(store.prefix, name));
  assert.equal((await store.requests.deleteMany(keys)).size, 0);
  for (const name of ["back", "lost"]) {
    await assert.rejects(readAll(storage, (await inodeAt(storage, OWNER, name)).id), /do not match/);
  }
  const marked = async (): Promise<unknown[]> =>
    (await client.query("SELECT name FROM inode WHERE (flags & 1) <> 0 ORDER BY name")).rows as unknown[];
  await until(async () => (await marked()).length === 2, "both marks");
  await store.requests.putNew(keys[0] ?? "", bytesBody([bytes], bytes.length), crc32(bytes));
  await storage.close();

  const bucket = storeSettings(place.storeUrl);
  const check = { database: [place.database], bucket, clock: systemClock, fraction: systemFraction };
  const { notes } = await checkEngine({ ...check, isRestored: true });
  assert.match(notes.join("\n"), /whole again.*: 1 chunks, 1 files/);
  assert.deepEqual(await marked(), [{ name: "lost" }]);
  const next = await openEngine(t, place);
  await until(() => next.storage.roots().length === 1);
  assert.ok((await readAll(next.storage, (await inodeAt(next.storage, OWNER, "back")).id)).equals(bytes));
});
