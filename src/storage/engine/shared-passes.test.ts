// Tests that scrub and recount find on the shared engine what they find on local disks, and list it in the same words.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { existsSync, renameSync } from "node:fs";
import { dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import type pg from "pg";
import { systemClock } from "#base/clock.ts";
import { type Logger, silentLogger } from "#base/log.ts";
import { systemFraction } from "#base/random.ts";
import { crc32 } from "#os/crc32.ts";
import type { RecountSettings } from "#storage/contract/recount-types.ts";
import { againWhenRowsCome } from "#storage/contract/rows-to-come.ts";
import type { ScrubSettings } from "#storage/contract/scrub-types.ts";
import type { Storage } from "#storage/contract/storage.ts";
import { fillForRecount, NONE, PLANTED } from "#storage/local/planted-drift.fixture.ts";
import { BY_OWNER, OWNER, patterned, refusal } from "#storage/local/store.fixture.ts";
import { chunkKey } from "#storage/object-store/chunk-blocks.ts";
import { openRequests } from "#storage/object-store/object-store.ts";
import { bytesBody } from "#storage/object-store/s3-client.ts";
import type { StoreRequests } from "#storage/object-store/store-requests.ts";
import { storeSettings } from "#storage/object-store/store-settings.ts";
import { connectShared } from "#storage/shared/shared-connection.ts";
import { enginePlaces } from "#testing/engine-places.ts";
import { until } from "#testing/until.ts";
import { type EnginePlace, enginePlace, inodeAt, openEngine, readAll, upload } from "./engine.fixture.ts";

const places = enginePlaces();
const { skip } = places;
const LONG = { skip, timeout: 120_000 };
const SCRUB: ScrubSettings = { bytesPerSecond: 2 ** 40, pauseMs: 86_400_000 };
const RECOUNT: RecountSettings = { rowsPerSecond: 2 ** 40, pauseMs: 3_600_000 };

async function scrubbed(storage: Storage): Promise<void> {
  const before = storage.scrubState().lastEndedAtMs;
  storage.startScrub(SCRUB);
  await until(() => storage.scrubState().lastEndedAtMs !== before && !storage.scrubState().isRunning);
}

async function counted(storage: Storage): Promise<void> {
  const before = storage.recountState().lastEndedAtMs;
  storage.startRecount(RECOUNT);
  await until(() => storage.recountState().lastEndedAtMs !== before && !storage.recountState().isRunning);
}

async function database(t: TestContext, place: EnginePlace): Promise<pg.Client> {
  const client = await connectShared(place.database);
  t.after(() => client.end());
  return client;
}

async function bucket(
  t: TestContext,
  place: EnginePlace,
): Promise<{ requests: StoreRequests; prefix: string }> {
  const settings = storeSettings(place.storeUrl);
  const deps = { clock: systemClock, fraction: systemFraction, logger: silentLogger };
  const requests = await openRequests({ settings, ...deps });
  t.after(() => requests.client.close());
  return { requests, prefix: settings.prefix };
}

type Harm = (bytes: Buffer, other: Buffer) => Buffer | undefined;

/** As the scrub of local disks is tried, on objects in the place of files. */
const DAMAGES: Readonly<Record<string, Harm>> = {
  "a flipped bit": (bytes) => {
    const harmed = Buffer.from(bytes);
    harmed[299_999] = (harmed[299_999] ?? 0) ^ 1;
    return harmed;
  },
  "a cut end": (bytes) => bytes.subarray(0, 299_999),
  "bytes too many": (bytes) => Buffer.concat([bytes, Buffer.alloc(1)]),
  "no bytes": () => Buffer.alloc(0),
  "no object": () => undefined,
  "another chunk's bytes": (_, other) => other,
};

test(
  "what is wrong in the store with chunks that nobody reads is found by the scrub, in the trash too",
  LONG,
  async (t) => {
    const place = await enginePlace(places);
    const { storage } = await openEngine(t, place);
    const client = await database(t, place);
    const { requests, prefix } = await bucket(t, place);
    const { directoryId } = await storage.createRoot({ owner: OWNER, rootId: "01ROOT" });
    const other = patterned(300_000, 99);
    const names = Object.keys(DAMAGES);
    for (const [index, name] of ["good", ...names].entries()) {
      const bytes = patterned(300_000, index);
      await upload(storage, OWNER, directoryId, name, bytes);
      const { id } = await inodeAt(storage, OWNER, name);
      if (name === "a cut end") await storage.trash({ ...BY_OWNER, inodeId: id });
      const harm = DAMAGES[name];
      if (harm === undefined) continue;
      const { rows } = await client.query(
        "SELECT chunk.name FROM chunk JOIN file_chunk ON chunk_id = chunk.id JOIN inode USING (content_id) WHERE inode.id = $1",
        [id],
      );
      const key = chunkKey(prefix, (rows[0] as { name: string }).name);
      const harmed = harm(bytes, other);
      if (harmed === undefined) await requests.deleteMany([key]);
      else await requests.client.put(key, bytesBody([harmed], harmed.length), crc32(harmed), false);
    }
    const told: string[] = [];
    storage.onDamage(({ problem }) => told.push(problem));
    await scrubbed(storage);
    await until(() => storage.damagedFiles().count === names.length);
    assert.deepEqual(
      storage
        .damagedFiles()
        .listed.map(({ owner, path, isTrashed, sizeBytes }) => [owner, path, isTrashed, sizeBytes]),
      names.map((name) => [OWNER, `/${name}`, name === "a cut end", 300_000]),
    );
    assert.deepEqual(told.toSorted(), [
      "does not match its checksum in block 0",
      "does not match its checksum in block 1",
      "has an object of 0 bytes instead of 300000",
      "has an object of 299999 bytes instead of 300000",
      "has an object of 300001 bytes instead of 300000",
      "has no object",
    ]);
    const { lastFound, lastReadBytes } = storage.scrubState();
    assert.equal(lastFound, names.length);
    assert.ok(lastReadBytes >= 300_000);
    const at = async (name: string): Promise<number> => (await inodeAt(storage, OWNER, name)).id;
    await assert.rejects(readAll(storage, await at("a flipped bit")), refusal("CORRUPT"));
    assert.ok((await readAll(storage, await at("good"))).equals(patterned(300_000, 0)));
    // New content ends the damage.
    await upload(storage, OWNER, directoryId, "no object", patterned(10));
    assert.equal(
      (await againWhenRowsCome(() => storage.resolve(OWNER, ["no object"]).chain.at(-1)))?.damaged,
      false,
    );
    // Another process knows it without a scrub of its own.
    const next = await openEngine(t, place, { name: "n2" });
    await storage.close();
    await until(() => next.storage.damagedFiles().count === names.length - 1);
  },
);

test(
  "changed, short and missing bytes of small files are found by the scrub, and wrong lists of chunks",
  LONG,
  async (t) => {
    const place = await enginePlace(places);
    const { storage } = await openEngine(t, place);
    const { directoryId: parentId } = await storage.createRoot({ owner: OWNER, rootId: "01ROOT" });
    for (const name of ["flipped", "short", "gone", "good", "empty"]) {
      const data = name === "empty" ? Buffer.alloc(0) : patterned(1_000);
      await storage.createFile({ ...BY_OWNER, parentId, name, data, mtimeMs: 0 });
    }
    await upload(storage, OWNER, parentId, "list", patterned(4_100_000));
    const client = await database(t, place);
    const where = (name: string): string => `WHERE inode_id = (SELECT id FROM inode WHERE name = '${name}')`;
    await client.query(`UPDATE inline_content SET data = decode(repeat('00', 1000), 'hex') ${where("flipped")};
    UPDATE inline_content SET data = substr(data, 1, 999) ${where("short")};
    DELETE FROM inline_content ${where("gone")}; DELETE FROM file_chunk WHERE position = 1`);
    await scrubbed(storage);
    await until(() => storage.damagedFiles().count === 4);
    assert.deepEqual(
      storage.damagedFiles().listed.map(({ path }) => path),
      ["/flipped", "/short", "/gone", "/list"],
    );
  },
);

test(
  "a scrub without an answer of the store waits and marks nothing, and goes on with the next process",
  LONG,
  async (t) => {
    const place = await enginePlace(places);
    const { storage, store: objects, directory } = await openEngine(t, place);
    const { directoryId } = await storage.createRoot({ owner: OWNER, rootId: "01ROOT" });
    for (const name of ["a", "b"])
      await upload(storage, OWNER, directoryId, name, patterned(300_000, name.length));
    // Slow enough never to end.
    storage.startScrub({ ...SCRUB, bytesPerSecond: 1_000 });
    await until(() => (storage.scrubState().pass?.readBytes ?? 0) > 0);
    objects.requests.client.close();
    await storage.close();
    const again = await openEngine(t, place, { directory });
    const { pass, isRunning } = again.storage.scrubState();
    assert.equal(isRunning, false);
    assert.ok((pass?.readBytes ?? 0) >= 300_000 && pass?.part === "chunks");
    again.store.requests.client.close();
    again.storage.startScrub(SCRUB);
    await until(() => again.storage.scrubState().isRunning);
    assert.equal(again.storage.scrubState().pass?.found, 0);
    await again.storage.close();
    const last = await openEngine(t, place, { directory });
    await until(() => last.storage.roots().length === 1);
    await scrubbed(last.storage);
    assert.equal(last.storage.scrubState().lastFound, 0);
    assert.equal(last.storage.damagedFiles().count, 0);
  },
);

test("a bucket that is away is no damage: the scrub waits for it", LONG, async (t) => {
  const place = await enginePlace(places);
  const waits: string[] = [];
  const logger: Logger = { ...silentLogger, warn: (event) => waits.push(event) };
  const { storage } = await openEngine(t, place, { logger });
  const { directoryId } = await storage.createRoot({ owner: OWNER, rootId: "01ROOT" });
  await upload(storage, OWNER, directoryId, "a", patterned(300_000));
  const folder = join(dirname(places.store.credentialsFile), "data", places.store.bucket);
  renameSync(folder, `${folder}-away`);
  t.after(() => existsSync(folder) || renameSync(`${folder}-away`, folder));
  storage.startScrub(SCRUB);
  const isEnded = (): boolean => storage.scrubState().lastEndedAtMs !== undefined;
  await until(() => isEnded() || waits.includes("storage.scrub_waits"));
  renameSync(`${folder}-away`, folder);
  assert.equal(storage.scrubState().pass?.found, 0);
  assert.ok((await readAll(storage, (await inodeAt(storage, OWNER, "a")).id)).equals(patterned(300_000)));
});

test("a bucket whose content is away is no damage: reads and the scrub wait for it", LONG, async (t) => {
  const place = await enginePlace(places);
  const waits: string[] = [];
  const logger: Logger = { ...silentLogger, warn: (event) => waits.push(event) };
  const { storage } = await openEngine(t, place, { logger });
  const { directoryId } = await storage.createRoot({ owner: OWNER, rootId: "01ROOT" });
  await upload(storage, OWNER, directoryId, "a", patterned(300_000));
  const bucket = join(dirname(places.store.credentialsFile), "data", places.store.bucket);
  const folder = join(bucket, place.database.config.database ?? "");
  renameSync(folder, `${folder}-away`);
  t.after(() => existsSync(folder) || renameSync(`${folder}-away`, folder));
  const { id } = await inodeAt(storage, OWNER, "a");
  await assert.rejects(readAll(storage, id), refusal("STORE_UNAVAILABLE"));
  storage.startScrub(SCRUB);
  const isEnded = (): boolean => storage.scrubState().lastEndedAtMs !== undefined;
  await until(() => isEnded() || waits.includes("storage.scrub_waits"));
  renameSync(`${folder}-away`, folder);
  assert.equal(storage.scrubState().pass?.found, 0);
  assert.ok((await readAll(storage, id)).equals(patterned(300_000)));
});

test(
  "every counter planted wrong is found by the recount as on local disks, and right ones are not (D16, A-17)",
  LONG,
  async (t) => {
    const place = await enginePlace(places);
    const first = await openEngine(t, place);
    await fillForRecount(first.storage);
    await counted(first.storage);
    assert.deepEqual(first.storage.recountState().drift, NONE);
    assert.equal(first.storage.recountState().lastRoots, 2);
    await first.storage.close();
    const client = await database(t, place);
    const { rows } = await client.query("SELECT number FROM root ORDER BY number");
    assert.deepEqual(rows, [{ number: 1 }, { number: 2 }]);
    for (const [what, [sql, drift]] of Object.entries(PLANTED)) {
      const portrait = await rowsOf(client);
      await client.query(sql);
      const found: string[] = [];
      const logger: Logger = { ...silentLogger, error: (event) => found.push(event) };
      const { storage } = await openEngine(t, place, {
        name: createHash("md5").update(what).digest("hex"),
        logger,
      });
      await until(() => storage.roots().length === 2);
      await counted(storage);
      assert.deepEqual(storage.recountState().drift, { ...NONE, ...drift }, what);
      assert.ok(found.includes("quota_drift"), found.join());
      await storage.close();
      await putBack(client, portrait);
    }
  },
);

type Rows = Readonly<Record<string, unknown>>;

async function rowsOf(client: pg.Client): Promise<Rows> {
  const found: Record<string, unknown> = {};
  for (const table of ["root", "inode", "upload"]) {
    const { rows } = await client.query(`SELECT json_agg(t) AS rows FROM ${table} t`);
    found[table] = (rows[0] as { rows: unknown }).rows;
  }
  return found;
}

async function putBack(client: pg.Client, rows: Rows): Promise<void> {
  for (const [table, all] of Object.entries(rows)) {
    await client.query(`DELETE FROM ${table}`);
    await client.query(`INSERT INTO ${table} SELECT * FROM json_populate_recordset(NULL::${table}, $1)`, [
      JSON.stringify(all),
    ]);
  }
}
