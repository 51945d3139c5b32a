// Tests of a root's way from the shared engine to a node's own disk, while it is used and over the ends of both.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { systemClock } from "#base/clock.ts";
import { systemFraction } from "#base/random.ts";
import { againWhenRowsCome } from "#storage/contract/rows-to-come.ts";
import {
  fillRoot,
  MOVE,
  portrait,
  pullAll,
  pullOnce,
  put,
  Side,
  switchOver,
} from "#storage/local/moved-root.fixture.ts";
import { inodeAt, OWNER, patterned, refusal } from "#storage/local/store.fixture.ts";
import { chunkKey } from "#storage/object-store/chunk-blocks.ts";
import { storeSettings } from "#storage/object-store/store-settings.ts";
import { connectShared } from "#storage/shared/shared-connection.ts";
import { enginePlaces } from "#testing/engine-places.ts";
import { until } from "#testing/until.ts";
import { type EnginePlace, enginePlace, openEngine } from "./engine.fixture.ts";
import { checkEngine } from "./engine-check.ts";

const places = enginePlaces();
const { skip } = places;
const LONG = { skip, timeout: 120_000 };
const BY = { owner: OWNER, by: OWNER, accessVersion: undefined };
const MOVED = { moveId: MOVE, owner: OWNER };

async function assertSound(place: EnginePlace): Promise<void> {
  const { differences } = await checkEngine({
    database: [place.database],
    bucket: storeSettings(place.storeUrl),
    clock: systemClock,
    fraction: systemFraction,
  });
  assert.deepEqual(differences, []);
}

async function ask(t: TestContext, place: EnginePlace, sql: string): Promise<Record<string, unknown>[]> {
  const client = await connectShared(place.database);
  t.after(() => client.end().catch(() => undefined));
  const { rows } = await client.query(sql);
  await client.end();
  return rows as Record<string, unknown>[];
}

async function counts(t: TestContext, place: EnginePlace, ...tables: string[]): Promise<number[]> {
  const sums = tables.map((table) => `(SELECT count(*) FROM ${table}) AS ${table}`);
  const [row] = await ask(t, place, `SELECT ${sums.join(", ")}`);
  return Object.values(row ?? {}).map(Number);
}

test(
  "a root leaves the engine with files, shares, trash, begun uploads, usage and inode numbers",
  LONG,
  async (t) => {
    const place = await enginePlace(places);
    const from = await openEngine(t, place);
    const to = await Side.open(t);
    await fillRoot(from.storage);
    const before = await portrait(from.storage);
    const { number } = await from.storage.moves.beginExport(MOVED);
    await to.storage.moves.beginImport({ ...MOVED, numbers: [number] });
    await pullAll(from, to);
    assert.equal(to.storage.root(OWNER), undefined);
    await assertSound(place);
    await switchOver(from, to);
    assert.deepEqual(await portrait(to.storage), before);
    assert.equal(await againWhenRowsCome(() => from.storage.root(OWNER)), undefined);
    assert.deepEqual(
      from.storage.moves.list().map(({ state }) => state),
      ["departed"],
    );
    // Nobody takes over what has left, and nothing of it is removed before the end.
    const [kept] = await counts(t, place, "file_chunk");
    const other = await openEngine(t, place, { name: "n2" });
    await from.storage.close();
    await until(async () => (await ask(t, place, "SELECT 1 FROM instance WHERE NOT is_ended")).length === 1);
    assert.deepEqual(other.storage.roots(), []);
    assert.deepEqual(await counts(t, place, "file_chunk"), [kept]);
    await assertSound(place);
    await other.storage.moves.takeOver(MOVE);
    await other.storage.moves.endExport(MOVE);
    assert.deepEqual(other.storage.moves.list(), []);
    const left = ["root", "holding", "departure", "move_bucket", "inode", "inline_content", "file_chunk"];
    const more = ["share_grant", "trash", "trash_grant", "lock", "property", "upload", "staging", "purging"];
    assert.deepEqual(
      await counts(t, place, ...left, ...more),
      [...left, ...more].map(() => 0),
    );
    const [{ chunks, dropped } = {}] = await ask(
      t,
      place,
      "SELECT (SELECT count(*) FROM chunk) AS chunks, (SELECT count(*) FROM garbage JOIN chunk ON id = chunk_id WHERE refs = 0) AS dropped",
    );
    assert.ok(chunks !== 0 && chunks === dropped, `${String(chunks)} chunks, ${String(dropped)} dropped`);
    await assertSound(place);
    await to.storage.moves.endImport(MOVE);
    // And comes back, under the number that it has.
    const back = { moveId: "02MOVE", owner: OWNER };
    await to.storage.moves.beginExport(back);
    await assert.rejects(
      other.storage.moves.beginImport({ ...back, numbers: [number] }),
      refusal("BAD_ARGUMENT"),
    );
    await to.storage.close();
  },
);

test(
  "what changes meanwhile leaves as it is at the freeze, while processes of both sides end and others go on",
  LONG,
  async (t) => {
    const place = await enginePlace(places);
    const from = { ...(await openEngine(t, place)) };
    const to = await Side.open(t);
    await fillRoot(from.storage);
    const { number } = await from.storage.moves.beginExport(MOVED);
    await to.storage.moves.beginImport({ ...MOVED, numbers: [number] });
    let step = 0;
    const inode = (...names: string[]) => againWhenRowsCome(() => inodeAt(from.storage, ...names));
    const change = async (): Promise<void> => {
      const at = step++;
      if (at > 24) return;
      const { storage } = from;
      const top = (await inode("top")).id;
      const [one, other] = [await inode("top", `f${2 * at}`), await inode("top", `f${298 - 2 * at}`)];
      // Two files exchange their names, which lie in different buckets.
      const rename = (inodeId: number, name: string) =>
        storage.rename({ ...BY, inodeId, parentId: top, name, onConflict: "fail" });
      await rename(one.id, "between");
      await rename(other.id, one.name);
      await rename(one.id, other.name);
      const inner = async (name: string): Promise<number> => (await inode("top", "inner", name)).id;
      if (at % 3 === 0)
        await storage.remove({ ...BY, inodeId: await inner(`f${2 * at + 1}`), recursive: true });
      if (at % 4 === 0) await storage.trash({ ...BY, inodeId: await inner(`f${2 * at + 91}`) });
      if (at % 5 === 0) await put(storage, top, "two chunks", patterned(4_100_000, at));
      if (at === 7) await storage.remove({ ...BY, inodeId: (await inode("copy")).id, recursive: true });
      if (at % 10 === 6) await to.restart();
      // Another process of the engine takes the root, and with it the move.
      if (at === 3 || at === 12) {
        const before = from.storage;
        Object.assign(from, await openEngine(t, place, { name: `n${at}` }));
        await before.close();
        await until(() => from.storage.roots().length === 1);
        assert.deepEqual(
          from.storage.moves.list().map(({ state }) => state),
          ["copying"],
        );
      }
    };
    await pullAll(from, to, change);
    for (let more = step; more < 25; more++) await change();
    await put(from.storage, (await inode("top")).id, "late", patterned(4_200_000, 9));
    assert.ok((await pullOnce(from, to, [])).left > 0);
    // A freeze holds over the end of the process that froze, and is taken back by the next.
    await from.storage.moves.freeze(MOVE);
    const file = { parentId: (await inode("top")).id, name: "x", data: patterned(5), mtimeMs: 0 };
    await assert.rejects(from.storage.createFile({ ...BY, ...file }), refusal("NODE_DRAINING"));
    const frozen = from.storage;
    Object.assign(from, await openEngine(t, place, { name: "n30" }));
    await frozen.close();
    await until(() => from.storage.roots().length === 1);
    assert.equal(from.storage.moves.isShut(OWNER), true);
    await assert.rejects(from.storage.createFile({ ...BY, ...file }), refusal("NODE_DRAINING"));
    await from.storage.moves.thaw(MOVE);
    assert.equal(from.storage.moves.isShut(OWNER), false);
    await from.storage.createFile({ ...BY, ...file });
    const before = await portrait(from.storage);
    await switchOver(from, to);
    assert.deepEqual(await portrait(to.storage), before);
    await to.storage.close();
    await from.storage.moves.endExport(MOVE);
    await assertSound(place);
  },
);

test("an undone departure leaves nothing behind, and the root goes on in the engine", LONG, async (t) => {
  const place = await enginePlace(places);
  const from = await openEngine(t, place);
  const to = await Side.open(t);
  await fillRoot(from.storage);
  const before = await portrait(from.storage);
  const { number } = await from.storage.moves.beginExport(MOVED);
  await to.storage.moves.beginImport({ ...MOVED, numbers: [number] });
  await pullAll(from, to);
  // A list that is an upload's no more has to be sent, though none of its rows has changed since.
  await ask(t, place, "INSERT INTO staging SELECT content_id, content_id >> 32 FROM file_chunk LIMIT 1");
  const pending = "SELECT 1 FROM move_bucket WHERE kind = 1 AND changes > sent";
  await pullAll(from, to);
  assert.deepEqual(await ask(t, place, pending), []);
  await ask(t, place, "DELETE FROM staging");
  assert.equal((await ask(t, place, pending)).length, 1);
  await from.storage.moves.freeze(MOVE);
  await from.storage.moves.endExport(MOVE);
  await to.storage.moves.endImport(MOVE);
  assert.deepEqual(await counts(t, place, "departure", "move_bucket"), [0, 0]);
  assert.deepEqual(await portrait(from.storage), before);
  const top = await againWhenRowsCome(() => inodeAt(from.storage, "top"));
  await put(from.storage, top.id, "later", patterned(100_000));
  assert.deepEqual(await counts(t, place, "move_bucket"), [0]);
  await assertSound(place);
  await to.storage.close();
});

test(
  "a damaged chunk is marked and leaves as damaged, and another root's chunks are not given out",
  LONG,
  async (t) => {
    const place = await enginePlace(places);
    const from = await openEngine(t, place);
    const to = await Side.open(t);
    await fillRoot(from.storage);
    const other = await from.storage.createRoot({ owner: "bob@example.com", rootId: "02ROOT" });
    const sink = from.storage.beginUpload({ owner: "bob@example.com", sizeBytes: undefined });
    sink.beginMessage();
    await sink.write(patterned(300_000, 8));
    sink.endMessage();
    const bob = {
      owner: "bob@example.com",
      by: "bob@example.com",
      accessVersion: undefined,
      ifMatch: undefined,
    };
    await sink.commit({ ...bob, parentId: other.directoryId, name: "f", onExists: "fail", mtimeMs: 0 });
    const [row] = await ask(
      t,
      place,
      `SELECT chunk.name FROM chunk JOIN file_chunk ON chunk_id = chunk.id JOIN inode USING (content_id)
     WHERE inode.name = 'two chunks' AND position = 0`,
    );
    const name = String(row?.["name"]);
    await from.store.requests.deleteMany([chunkKey(storeSettings(place.storeUrl).prefix, name)]);
    const { number } = await from.storage.moves.beginExport(MOVED);
    await to.storage.moves.beginImport({ ...MOVED, numbers: [number] });
    await pullAll(from, to);
    assert.deepEqual(await counts(t, place, "damaged_chunk"), [1]);
    const [foreign] = await ask(
      t,
      place,
      `SELECT left(name, 16) || lpad(to_hex(chunk.id), 16, '0') AS name FROM chunk
     JOIN file_chunk ON chunk_id = chunk.id WHERE content_id >> 32 <> ${number}`,
    );
    assert.ok(foreign !== undefined);
    assert.equal(await from.storage.moves.readChunk(MOVE, String(foreign["name"])), undefined);
    await assert.rejects(from.storage.moves.readChunk(MOVE, "../etc/passwd"), refusal("BAD_ARGUMENT"));
    await switchOver(from, to);
    assert.equal(inodeAt(to.storage, "top", "two chunks").damaged, true);
    await to.storage.close();
  },
);

test("a root changes hands within the engine, once its holder has frozen it", LONG, async (t) => {
  const place = await enginePlace(places);
  const from = await openEngine(t, place);
  const to = await openEngine(t, place, { name: "n2" });
  await fillRoot(from.storage);
  const before = await portrait(from.storage);
  assert.equal(await to.storage.moves.isNear(OWNER), true);
  assert.equal(await to.storage.moves.isNear("nobody@example.com"), false);
  await from.storage.moves.beginExport(MOVED);
  assert.equal(await to.storage.moves.takeNear(MOVED), false);
  await from.storage.moves.freeze(MOVE);
  assert.equal(await to.storage.moves.takeNear(MOVED), true);
  assert.equal(await to.storage.moves.takeNear(MOVED), true);
  assert.deepEqual(await portrait(to.storage), before);
  // The holder before answers nothing from what it knew, and hears of it.
  assert.equal(from.storage.moves.isShut(OWNER), true);
  await from.storage.moves.takeOver(MOVE);
  assert.deepEqual(await againWhenRowsCome(() => from.storage.roots()), []);
  assert.deepEqual(from.storage.moves.list(), []);
  const top = await againWhenRowsCome(() => inodeAt(to.storage, "top"));
  const file = (name: string) => ({ ...BY, parentId: top.id, name, data: patterned(5), mtimeMs: 0 });
  await assert.rejects(from.storage.createFile(file("early")), refusal("WRONG_NODE"));
  await put(to.storage, top.id, "later", patterned(100_000));
  assert.deepEqual(await counts(t, place, "departure", "move_bucket"), [0, 0]);
  // And back, with what has changed meanwhile.
  await to.storage.moves.beginExport(MOVED);
  await to.storage.moves.freeze(MOVE);
  assert.equal(await from.storage.moves.takeNear(MOVED), true);
  assert.notDeepEqual(await portrait(from.storage), before);
  await assert.rejects(to.storage.createFile(file("late")), refusal("NODE_DRAINING"));
  await from.storage.createFile(file("late"));
  await assertSound(place);
});

test("a frozen root whose move another process has ended takes changes again", LONG, async (t) => {
  const place = await enginePlace(places);
  const { storage } = await openEngine(t, place);
  await fillRoot(storage);
  await storage.moves.beginExport(MOVED);
  await storage.moves.freeze(MOVE);
  const { directoryId } = storage.root(OWNER) ?? assert.fail();
  await assert.rejects(put(storage, directoryId, "meanwhile", patterned(9)));
  await ask(t, place, "DELETE FROM departure");
  await storage.moves.takeOver(MOVE);
  await put(storage, directoryId, "after", patterned(9));
});

test(
  "a root that its move's target has taken over stays, whatever the source does after the switch",
  LONG,
  async (t) => {
    const place = await enginePlace(places);
    const from = await openEngine(t, place);
    await fillRoot(from.storage);
    await from.storage.moves.beginExport(MOVED);
    await from.storage.moves.freeze(MOVE);
    const target = await openEngine(t, place, { name: "n2" });
    await from.storage.close();
    await until(() => target.storage.roots().length === 1);
    const before = await portrait(target.storage);
    assert.equal(await target.storage.moves.takeNear(MOVED), true);
    assert.deepEqual(await counts(t, place, "departure", "move_bucket"), [0, 0]);
    const source = await openEngine(t, place, { name: "n3" });
    await source.storage.moves.takeOver(MOVE);
    await assert.rejects(source.storage.moves.depart(MOVE, "n2.example.com:50051"));
    await source.storage.moves.endExport(MOVE);
    assert.deepEqual(await portrait(target.storage), before);
    await put(target.storage, target.storage.root(OWNER)?.directoryId ?? 0, "after", patterned(9));
    await assertSound(place);
  },
);

test("what is left of a move whose end was cut off keeps its root from no other move", LONG, async (t) => {
  const place = await enginePlace(places);
  const { storage } = await openEngine(t, place);
  await fillRoot(storage);
  const { number } = await storage.moves.beginExport(MOVED);
  const more = `SELECT ${number}, 0, a, 0, 1, 0, '', 0 FROM generate_series(1000, 10000) AS a`;
  await ask(t, place, `INSERT INTO move_bucket ${more}`);
  // As after a kill between two of its parts.
  await ask(t, place, "UPDATE departure SET state = 'ended'");
  await storage.moves.beginExport({ ...MOVED, moveId: "02MOVE" });
  assert.deepEqual(await ask(t, place, "SELECT move_id FROM departure"), [{ move_id: "02MOVE" }]);
  assert.deepEqual(await counts(t, place, "move_bucket"), [0]);
  await assert.rejects(storage.moves.beginExport({ ...MOVED, moveId: "03MOVE" }), refusal("BAD_ARGUMENT"));
});
