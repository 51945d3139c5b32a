// Tests of the check of a shared engine: sound while it is used, and each kind of difference is found.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import pg from "pg";
import { systemClock } from "#base/clock.ts";
import { silentLogger } from "#base/log.ts";
import { systemFraction } from "#base/random.ts";
import { crc32 } from "#os/crc32.ts";
import { chunkKey } from "#storage/object-store/chunk-blocks.ts";
import { openRequests } from "#storage/object-store/object-store.ts";
import { bytesBody } from "#storage/object-store/s3-client.ts";
import { storeSettings } from "#storage/object-store/store-settings.ts";
import { enginePlaces } from "#testing/engine-places.ts";
import { type EnginePlace, enginePlace, inodeAt, openEngine, upload } from "./engine.fixture.ts";
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
