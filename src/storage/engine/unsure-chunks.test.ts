// Tests of what becomes of chunks whose change has failed: they go at once only where it was surely not made.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { UploadSink } from "#storage/contract/inode.ts";
import { againWhenRowsCome } from "#storage/contract/rows-to-come.ts";
import type { Storage } from "#storage/contract/storage.ts";
import { patterned, refusal } from "#storage/local/store.fixture.ts";
import { joinInstances } from "#storage/shared/lease-rows.ts";
import { connectShared } from "#storage/shared/shared-connection.ts";
import { enginePlaces } from "#testing/engine-places.ts";
import { until } from "#testing/until.ts";
import { enginePlace, inodeAt, openEngine, upload } from "./engine.fixture.ts";
import type { OpenedEngine } from "./open-shared-storage.ts";

const places = enginePlaces();
const LONG = { skip: places.skip, timeout: 120_000 };
const ADA = "ada@example.com";
const BY_ADA = { owner: ADA, by: ADA, accessVersion: undefined };

async function objectsIn({ store: objects }: OpenedEngine): Promise<number> {
  return (await objects.requests.list(`${objects.prefix}chunks/`, "")).objects.length;
}

async function received(storage: Storage): Promise<UploadSink> {
  const sink = storage.beginUpload({ owner: ADA, sizeBytes: 300_000 });
  sink.beginMessage();
  await sink.write(patterned(300_000, 5));
  sink.endMessage();
  return sink;
}

test("chunks of a refused change go at once, and those of one that may be made stay", LONG, async (t) => {
  const place = await enginePlace(places);
  const engine = await openEngine(t, place);
  const { storage } = engine;
  const { directoryId: parentId } = await storage.createRoot({ owner: ADA, rootId: "01ROOT" });
  await upload(storage, ADA, parentId, "taken", patterned(300_000, 1));
  const target = { ...BY_ADA, parentId, onExists: "fail", ifMatch: undefined, mtimeMs: 0 } as const;
  const refused = await received(storage);
  await assert.rejects(refused.commit({ ...target, name: "taken" }), refusal("PATH_EXISTS"));
  assert.equal(await objectsIn(engine), 2);
  await refused.abort();
  assert.equal(await objectsIn(engine), 1);
  const client = await connectShared(place.database);
  t.after(() => client.end());
  await client.query(`
    CREATE FUNCTION fail() RETURNS TRIGGER LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''no''; END';
    CREATE TRIGGER fail BEFORE INSERT ON chunk EXECUTE FUNCTION fail()`);
  const failed = await received(storage);
  await assert.rejects(failed.commit({ ...target, name: "new" }), refusal("INTERNAL"));
  await failed.abort();
  assert.equal(await objectsIn(engine), 2);
  const { id: fileId } = await inodeAt(storage, ADA, "taken");
  const range = { ...BY_ADA, fileId, offset: 200_000, data: Buffer.from("x"), ifMatch: undefined };
  await assert.rejects(storage.writeRange(range), refusal("INTERNAL"));
  assert.equal(await objectsIn(engine), 3);
});

test(
  "chunks that got their names before their root left and came back make no file: they are swept",
  LONG,
  async (t) => {
    const place = await enginePlace(places);
    const engine = await openEngine(t, place);
    const { storage, readings } = engine;
    const { directoryId: parentId } = await storage.createRoot({ owner: ADA, rootId: "01ROOT" });
    const sink = storage.beginUpload({ owner: ADA, sizeBytes: 4_100_000 });
    sink.beginMessage();
    await sink.write(patterned(4_050_000, 5));
    await until(async () => (await objectsIn(engine)) === 1, "the first chunk");
    const client = await connectShared(place.database);
    t.after(() => client.end());
    await joinInstances(client, "other", "b:2");
    await client.query("UPDATE holding SET instance = 'other', epoch = epoch + 1");
    const lost = storage.createDirectory({ ...BY_ADA, parentId, name: "lost" });
    await assert.rejects(lost, refusal("WRONG_NODE"));
    await client.query("UPDATE instance SET is_ended = TRUE WHERE id = 'other'");
    await until(() => readings().takenOverTotal === 1 && readings().roots === 1, "the root to be back");
    await sink.write(patterned(50_000, 6));
    sink.endMessage();
    const target = { ...BY_ADA, parentId, onExists: "fail", ifMatch: undefined, mtimeMs: 0 } as const;
    await assert.rejects(sink.commit({ ...target, name: "old" }), refusal("WRONG_NODE"));
    await sink.abort();
    await againWhenRowsCome(() => storage.root(ADA));
    await upload(storage, ADA, parentId, "new", patterned(300_000, 1));
  },
);
