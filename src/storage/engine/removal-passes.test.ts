// Tests of what goes from the bucket: chunks without a file, remains of processes that ended, and nothing else.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ChangeContext } from "#storage/contract/inode.ts";
import { patterned } from "#storage/local/store.fixture.ts";
import { compareBucket } from "#storage/object-store/bucket-list.ts";
import { connectShared } from "#storage/shared/shared-connection.ts";
import { enginePlaces } from "#testing/engine-places.ts";
import { until } from "#testing/until.ts";
import { enginePlace, inodeAt, openEngine, readAll, upload } from "./engine.fixture.ts";
import type { OpenedEngine } from "./open-shared-storage.ts";

const places = enginePlaces();
const { skip } = places;
const LONG = { skip, timeout: 120_000 };
const ADA = "ada@example.com";
const BY_ADA: ChangeContext = { owner: ADA, by: ADA, accessVersion: undefined };

async function differences({ store: objects, rows }: OpenedEngine): Promise<string[]> {
  const found: string[] = [];
  for await (const { kind } of compareBucket(objects.requests, objects.prefix, rows)) found.push(kind);
  return found;
}

async function objectsIn({ store: objects }: OpenedEngine): Promise<number> {
  return (await objects.requests.list(`${objects.prefix}chunks/`, "")).objects.length;
}

test("chunks without a file go after the window of recovery, and those of files stay", LONG, async (t) => {
  const place = await enginePlace(places);
  const engine = await openEngine(t, place);
  const { storage, passes } = engine;
  const root = await storage.createRoot({ owner: ADA, rootId: "01ROOT" });
  const kept = patterned(5_000_000, 1);
  await upload(storage, ADA, root.directoryId, "kept", kept);
  await upload(storage, ADA, root.directoryId, "removed", patterned(5_000_000, 2));
  assert.equal(await objectsIn(engine), 4);
  const removed = await inodeAt(storage, ADA, "removed");
  await storage.remove({ ...BY_ADA, inodeId: removed.id, recursive: false });
  const client = await connectShared(place.database);
  t.after(() => client.end());
  const dropped = async (): Promise<number> =>
    (await client.query("SELECT count(*) AS count FROM garbage")).rows[0].count as number;
  await until(async () => (await dropped()) === 2);
  assert.deepEqual(await passes.run(), { removed: 0, kept: 0 });
  assert.equal(await objectsIn(engine), 4);
  await client.query("UPDATE garbage SET dropped_at = dropped_at - interval '8 days'");
  assert.deepEqual(await passes.run(), { removed: 2, kept: 0 });
  assert.equal(await objectsIn(engine), 2);
  assert.equal(await dropped(), 0);
  assert.deepEqual(await differences(engine), []);
  assert.ok((await readAll(storage, (await inodeAt(storage, ADA, "kept")).id)).equals(kept));
});

test(
  "what was dropped before a jump of the database's clock stays until the window has passed",
  LONG,
  async (t) => {
    const place = await enginePlace(places);
    const engine = await openEngine(t, place);
    const { storage, passes } = engine;
    const { directoryId } = await storage.createRoot({ owner: ADA, rootId: "01ROOT" });
    await upload(storage, ADA, directoryId, "removed", patterned(5_000_000, 2));
    const removed = await inodeAt(storage, ADA, "removed");
    await storage.remove({ ...BY_ADA, inodeId: removed.id, recursive: false });
    const client = await connectShared(place.database);
    t.after(() => client.end());
    const set = (field: string, plus: number): Promise<unknown> =>
      client.query(
        `UPDATE removal_clock SET known = jsonb_set(known, '{${field}}', to_jsonb((known->>'${field}')::float8 + $1::float8))`,
        [plus],
      );
    const days = 86_400_000;
    await until(
      async () => ((await client.query("SELECT * FROM garbage")).rowCount ?? 0) === 2,
      "the end of the file's removal",
    );
    assert.deepEqual(await passes.run(), { removed: 0, kept: 0 });
    // All that the database knew of its clock is eight days ago by now.
    await client.query("UPDATE garbage SET dropped_at = dropped_at - interval '8 days'");
    await set("seenMs", -8 * days);
    assert.deepEqual(await passes.run(), { removed: 0, kept: 0 });
    assert.deepEqual(await passes.run(), { removed: 0, kept: 0 });
    await set("passedMs", 7 * days);
    assert.deepEqual(await passes.run(), { removed: 2, kept: 0 });
  },
);

test("what a process put and never committed goes with the blocks of its epoch", LONG, async (t) => {
  const place = await enginePlace(places);
  const first = await openEngine(t, place);
  const root = await first.storage.createRoot({ owner: ADA, rootId: "01ROOT" });
  await upload(first.storage, ADA, root.directoryId, "kept", patterned(5_000_000, 1));
  const sink = first.storage.beginUpload({ owner: ADA, sizeBytes: 8_000_000 });
  sink.beginMessage();
  const bytes = patterned(8_000_000, 3);
  for (let at = 0; at < bytes.length; at += 65_536) await sink.write(bytes.subarray(at, at + 65_536));
  await until(async () => (await objectsIn(first)) === 4);
  const client = await connectShared(place.database);
  t.after(() => client.end());
  await client.query("UPDATE instance SET is_ended = TRUE");
  const second = await openEngine(t, place, { name: "n2" });
  await until(() => second.storage.root(ADA) !== undefined);
  // Its row is for what the process before has: an object that no row explains would be an orphan.
  assert.deepEqual(await differences(second), []);
  await client.query("UPDATE holding SET taken_at = taken_at - interval '8 days'");
  const counts = await second.passes.run();
  assert.ok((counts?.removed ?? 0) > 0);
  assert.equal(await objectsIn(second), 2);
  const { rows } = await client.query("SELECT count(*) AS count FROM chunk_block WHERE epoch = 1");
  assert.deepEqual(rows, [{ count: 0 }]);
  assert.deepEqual(await differences(second), []);
});

test(
  "a block is swept for the second time as its own epoch ended, however often its root was taken since",
  LONG,
  async (t) => {
    const place = await enginePlace(places);
    const engine = await openEngine(t, place);
    const root = await engine.storage.createRoot({ owner: ADA, rootId: "01ROOT" });
    await upload(engine.storage, ADA, root.directoryId, "kept", patterned(300_000, 1));
    await engine.storage.close();
    const next = await openEngine(t, place, { name: "n2" });
    await until(() => next.storage.roots().length === 1);
    const client = await connectShared(place.database);
    t.after(() => client.end());
    const blocks = async (): Promise<unknown[]> =>
      (await client.query("SELECT is_swept_once FROM chunk_block WHERE epoch = 1")).rows as unknown[];
    await client.query("UPDATE holding SET taken_at = clock_timestamp() - interval '2 hours'");
    await next.passes.run();
    assert.deepEqual(await blocks(), [{ is_swept_once: true }]);
    await client.query("UPDATE holding SET taken_at = clock_timestamp(), epoch = epoch + 1");
    await next.passes.run();
    assert.deepEqual(await blocks(), [{ is_swept_once: true }]);
    await client.query("UPDATE chunk_block SET closed_at = closed_at - interval '8 days'");
    await next.passes.run();
    assert.deepEqual(await blocks(), []);
  },
);
