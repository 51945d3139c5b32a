// Tests of a root's way from a node's own disk to the shared engine, while it is used and over the ends of both.
import assert from "node:assert/strict";
import { truncateSync } from "node:fs";
import { type TestContext, test } from "node:test";
import { systemClock } from "#base/clock.ts";
import { CLUSTER_ROOT_NUMBERS_FROM, ROOT_NUMBER_MAX } from "#base/limits.ts";
import { systemFraction } from "#base/random.ts";
import { chunkPath } from "#storage/chunks/chunk-names.ts";
import { rootNumberOf } from "#storage/contract/inode.ts";
import type { MoveBucket } from "#storage/contract/root-move.ts";
import { againWhenRowsCome } from "#storage/contract/rows-to-come.ts";
import {
  fillRoot,
  MOVE,
  NUMBER,
  portrait,
  pullAll,
  pullOnce,
  put,
  Side,
  switchOver,
} from "#storage/local/moved-root.fixture.ts";
import { inodeAt, OWNER, patterned, query, refusal } from "#storage/local/store.fixture.ts";
import { storeSettings } from "#storage/object-store/store-settings.ts";
import { connectShared } from "#storage/shared/shared-connection.ts";
import { enginePlaces } from "#testing/engine-places.ts";
import { until } from "#testing/until.ts";
import { type EnginePlace, enginePlace, openEngine, readAll, upload } from "./engine.fixture.ts";
import { checkEngine } from "./engine-check.ts";
import type { OpenedEngine } from "./open-shared-storage.ts";

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

async function counts(t: TestContext, place: EnginePlace, ...from: string[]): Promise<number[]> {
  const client = await connectShared(place.database);
  t.after(() => client.end().catch(() => undefined));
  const found: number[] = [];
  for (const what of from) {
    const { rows } = await client.query(`SELECT count(*) AS count FROM ${what}`);
    found.push((rows[0] as { count: number }).count);
  }
  await client.end();
  return found;
}

test(
  "a root comes to the engine with files, shares, trash, begun uploads, usage and inode numbers",
  LONG,
  async (t) => {
    const place = await enginePlace(places);
    const from = await Side.open(t);
    const to = await openEngine(t, place);
    await fillRoot(from.storage);
    const before = await portrait(from.storage);
    await from.storage.moves.beginExport(MOVED);
    const { number } = await to.storage.moves.beginImport({ ...MOVED, numbers: [NUMBER] });
    assert.equal(number, NUMBER);
    await pullAll(from, to);
    assert.equal(to.storage.root(OWNER), undefined);
    assert.deepEqual(to.storage.roots(), []);
    await assertSound(place);
    await switchOver(from, to);
    assert.deepEqual(await portrait(to.storage), before);
    const top = await againWhenRowsCome(() => inodeAt(to.storage, "top"));
    await upload(to.storage, OWNER, top.id, "new", patterned(5_000_000, 3));
    await to.storage.moves.endImport(MOVE);
    assert.deepEqual(to.storage.moves.list(), []);
    assert.deepEqual(await counts(t, place, "arrival", "move_bucket", "arrived_chunk"), [0, 0, 0]);
    await from.storage.moves.endExport(MOVE);
    await from.storage.close();
    await to.storage.close();
    await assertSound(place);
    const next = await openEngine(t, place, { name: "n2" });
    await until(async () => next.storage.roots().length === 1);
    const kept = await againWhenRowsCome(() => inodeAt(next.storage, "top", "two chunks"));
    assert.deepEqual(await readAll(next.storage, kept.id), patterned(5_000_000));
  },
);

test(
  "what changes meanwhile arrives as it is at the freeze, while processes of both sides end and others go on",
  LONG,
  async (t) => {
    const place = await enginePlace(places);
    const from = await Side.open(t);
    const to = { ...(await openEngine(t, place)) };
    const fenced = to.storage;
    await fillRoot(from.storage);
    await from.storage.moves.beginExport(MOVED);
    await to.storage.moves.beginImport({ ...MOVED, numbers: [NUMBER] });
    let step = 0;
    const change = async (): Promise<void> => {
      const { storage } = from;
      const at = step++;
      if (at > 24) return;
      const top = inodeAt(storage, "top").id;
      const [one, other] = [
        inodeAt(storage, "top", `f${2 * at}`),
        inodeAt(storage, "top", `f${298 - 2 * at}`),
      ];
      // Two files exchange their names, which lie in different buckets.
      const rename = (inodeId: number, name: string) =>
        storage.rename({ ...BY, inodeId, parentId: top, name, onConflict: "fail" });
      await rename(one.id, "between");
      await rename(other.id, one.name);
      await rename(one.id, other.name);
      const inner = (name: string): number => inodeAt(storage, "top", "inner", name).id;
      if (at % 3 === 0) await storage.remove({ ...BY, inodeId: inner(`f${2 * at + 1}`), recursive: true });
      if (at % 4 === 0) await storage.trash({ ...BY, inodeId: inner(`f${2 * at + 91}`) });
      if (at % 5 === 0) await put(storage, top, "two chunks", patterned(4_100_000, at));
      if (at === 7) await storage.remove({ ...BY, inodeId: inodeAt(storage, "copy").id, recursive: true });
      if (at % 10 === 6) await from.restart();
      // Another process of the engine goes on; the one before still runs.
      if (at === 3 || at === 12) {
        Object.assign(to, await openEngine(t, place, { name: `n${at}` }));
        await to.storage.moves.takeOver(MOVE);
      }
      // The same folder again, as after a kill.
      if (at === 18) {
        const { directory } = to;
        await to.storage.close();
        Object.assign(to, await openEngine(t, place, { directory }));
        // Another node may have the move by now: it goes on here when this one is told to.
        assert.deepEqual(to.storage.moves.list(), []);
        await to.storage.moves.takeOver(MOVE);
        assert.deepEqual(
          to.storage.moves.list().map(({ state }) => state),
          ["arriving"],
        );
      }
    };
    await pullAll(from, to, change);
    for (let more = step; more < 25; more++) await change();
    await put(from.storage, inodeAt(from.storage, "top").id, "late", patterned(4_200_000, 9));
    assert.ok((await pullOnce(from, to, [])).left > 0);
    const nothing = { kind: 0, a: 9, b: 0, changes: 1, lines: [] } as const;
    await assert.rejects(fenced.moves.putBuckets(MOVE, [nothing]), refusal("FENCED"));
    assert.deepEqual(fenced.moves.list(), []);
    const before = await portrait(from.storage);
    await switchOver(from, to);
    assert.deepEqual(await portrait(to.storage), before);
    await from.storage.close();
    await assertSound(place);
  },
);

test(
  "an undone move leaves nothing in the engine but chunks that wait for their removal",
  LONG,
  async (t) => {
    const place = await enginePlace(places);
    const from = await Side.open(t);
    const first = await openEngine(t, place);
    await fillRoot(from.storage);
    const before = await portrait(from.storage);
    await from.storage.moves.beginExport(MOVED);
    await first.storage.moves.beginImport({ ...MOVED, numbers: [NUMBER] });
    await pullAll(from, first);
    const second = await openEngine(t, place, { name: "n2" });
    await second.storage.moves.takeOver(MOVE);
    await first.storage.moves.endImport(MOVE);
    assert.ok((await counts(t, place, "inode"))[0] !== 0, "a fenced process removed rows");
    await second.storage.moves.endImport(MOVE);
    await from.storage.moves.endExport(MOVE);
    assert.deepEqual(
      await counts(
        t,
        place,
        "arrival",
        "move_bucket",
        "arrived_chunk",
        "inode",
        "inline_content",
        "file_chunk",
      ),
      [0, 0, 0, 0, 0, 0],
    );
    assert.deepEqual(
      await counts(t, place, "share_grant", "trash", "trash_grant", "lock", "property", "upload"),
      [0, 0, 0, 0, 0, 0],
    );
    const [chunks, dropped] = await counts(
      t,
      place,
      "chunk",
      "garbage JOIN chunk ON id = chunk_id WHERE refs = 0",
    );
    assert.ok(chunks !== 0 && chunks === dropped, `${chunks} chunks, ${dropped} dropped`);
    await assertSound(place);
    assert.deepEqual(await portrait(from.storage), before);
    // The same root comes again, with the same chunks under new names.
    const again = { moveId: "02MOVE", owner: OWNER };
    await from.storage.moves.beginExport(again);
    await second.storage.moves.beginImport({ ...again, numbers: [NUMBER] });
    const { buckets } = await from.storage.moves.nextRound("02MOVE", [], 100_000_000);
    assert.ok((await second.storage.moves.missingChunks("02MOVE", buckets)).length > 1);
    await from.storage.close();
  },
);

test(
  "a number of before cluster-wide numbers is not taken, and one of them is, up to the last",
  LONG,
  async (t) => {
    const to = await openEngine(t, await enginePlace(places));
    const begin = (moveId: string, ...numbers: number[]) =>
      to.storage.moves.beginImport({ moveId, owner: `${moveId}@example.com`, numbers });
    const from = CLUSTER_ROOT_NUMBERS_FROM;
    assert.equal((await begin("a", from - 1, from)).number, from);
    assert.equal((await begin("a", from + 7)).number, from);
    assert.equal((await begin("b", from, ROOT_NUMBER_MAX)).number, ROOT_NUMBER_MAX);
    await assert.rejects(begin("c", from, 7, ROOT_NUMBER_MAX + 1), refusal("BAD_ARGUMENT"));
    const root = await to.storage.createRoot({ owner: OWNER, rootId: "01ROOT" });
    assert.equal(rootNumberOf(root.directoryId), 1);
    await assert.rejects(
      to.storage.moves.beginImport({ moveId: "d", owner: OWNER, numbers: [from + 9] }),
      refusal("PATH_EXISTS"),
    );
  },
);

test(
  "chunks with other bytes and rows of other roots are refused, and damage comes along",
  LONG,
  async (t) => {
    const place = await enginePlace(places);
    const from = await Side.open(t);
    const to = await openEngine(t, place);
    await fillRoot(from.storage);
    const { moves } = to.storage;
    await from.storage.moves.beginExport(MOVED);
    await moves.beginImport({ ...MOVED, numbers: [NUMBER] });
    const { buckets } = await from.storage.moves.nextRound(MOVE, [], 100_000_000);
    const [chunk] = await moves.missingChunks(MOVE, buckets);
    if (chunk !== undefined) {
      await assert.rejects(
        moves.putChunk(MOVE, chunk, Buffer.alloc(chunk.length)),
        refusal("CHECKSUM_MISMATCH"),
      );
    }
    for (const lines of [['["d",300,"AA=="]'], ['["i",-5,null,"",1,0,0,1,0,0,0,null,null,0,0,0,0]']]) {
      const strange = { kind: 0, a: 0, b: 0, changes: 1, lines } as const;
      await assert.rejects(moves.putBuckets(MOVE, [strange]), refusal("BAD_ARGUMENT"));
    }
    await assert.rejects(
      moves.putBuckets(MOVE, [{ kind: 0, a: 2 ** 24, b: 0, changes: 1, lines: [] }]),
      refusal("BAD_ARGUMENT"),
    );
    const large = inodeAt(from.storage, "top", "two chunks");
    await spoil(from, large.id);
    await pullAll(from, to);
    await switchOver(from, to);
    const arrived = await againWhenRowsCome(() => inodeAt(to.storage, "top", "two chunks"));
    assert.equal(arrived.damaged, true);
    await from.storage.close();
    assert.deepEqual(await counts(t, place, "damaged_chunk"), [1]);
    await assertSound(place);
  },
);

/** Cuts the file of a large file's first chunk, and has it found. */
async function spoil({ directory, storage }: Side, fileId: number): Promise<void> {
  const [row] = query(
    directory,
    `SELECT chunk.name AS name FROM chunk JOIN file_chunk ON chunk_id = chunk.id JOIN inode USING (content_id)
     WHERE inode.id = ${fileId} AND position = 0`,
  ) as { name: string }[];
  truncateSync(chunkPath(directory, String(row?.name)), 1_000);
  await assert.rejects(readAll(storage, fileId));
  await until(() => storage.damagedFiles().count > 0);
}

/** Brings all chunks of a root to a process, and no rows; returns the buckets. */
async function bringChunks(
  { storage }: Side,
  to: Pick<OpenedEngine, "storage">,
): Promise<readonly MoveBucket[]> {
  const { moves } = to.storage;
  const { buckets } = await storage.moves.nextRound(MOVE, [], 100_000_000);
  for (const chunk of await moves.missingChunks(MOVE, buckets)) {
    const bytes = (await storage.moves.readChunk(MOVE, chunk.name)) ?? assert.fail();
    await moves.putChunk(MOVE, chunk, bytes);
  }
  return buckets;
}

async function objectsIn({ store: objects }: Pick<OpenedEngine, "store">): Promise<number> {
  return (await objects.requests.list(`${objects.prefix}chunks/`, "")).objects.length;
}

test(
  "a target that another one has replaced ends nothing of the arrival, however often it began",
  LONG,
  async (t) => {
    const place = await enginePlace(places);
    const from = await Side.open(t);
    const first = await openEngine(t, place);
    const second = await openEngine(t, place, { name: "n2" });
    await fillRoot(from.storage);
    await from.storage.moves.beginExport(MOVED);
    const begin = ({ storage }: OpenedEngine) => storage.moves.beginImport({ ...MOVED, numbers: [NUMBER] });
    await begin(first);
    await bringChunks(from, first);
    const brought = await objectsIn(first);
    assert.ok(brought > 0);
    await second.storage.moves.takeOver(MOVE);
    await first.storage.moves.endImport(MOVE);
    assert.equal(await objectsIn(first), brought);
    assert.deepEqual(first.storage.moves.list(), []);
    // Each begins it anew once, so that both have had as many epochs of it.
    const third = await openEngine(t, place, { name: "n3" });
    await second.storage.moves.endImport(MOVE);
    await begin(first);
    await third.storage.moves.takeOver(MOVE);
    await third.storage.moves.endImport(MOVE);
    await begin(second);
    await second.storage.moves.putBuckets(MOVE, await bringChunks(from, second));
    await first.storage.moves.endImport(MOVE);
    assert.notDeepEqual(await counts(t, place, "inode"), [0]);
    assert.equal((await counts(t, place, "arrival"))[0], 1);
    await from.storage.close();
  },
);

test(
  "a chunk whose row came and went before its list comes again comes with its bytes again",
  LONG,
  async (t) => {
    const place = await enginePlace(places);
    const from = await Side.open(t);
    const to = await openEngine(t, place);
    await fillRoot(from.storage);
    await from.storage.moves.beginExport(MOVED);
    await to.storage.moves.beginImport({ ...MOVED, numbers: [NUMBER] });
    const buckets = await bringChunks(from, to);
    const lists = buckets.filter(({ kind }) => kind === 1);
    assert.ok(lists.length > 0);
    const emptied = lists.map((bucket) => ({ ...bucket, changes: bucket.changes + 1, lines: [] }));
    const again = lists.map((bucket) => ({ ...bucket, changes: bucket.changes + 2 }));
    const { moves } = to.storage;
    // All in one commit, which is not what the first of them said: its sender tries again.
    await assert.rejects(moves.putBuckets(MOVE, [...buckets, ...emptied]), refusal("CHECKSUM_MISMATCH"));
    const missing = await moves.missingChunks(MOVE, again);
    assert.ok(missing.length > 0);
    for (const chunk of missing) {
      const bytes = (await from.storage.moves.readChunk(MOVE, chunk.name)) ?? assert.fail();
      await moves.putChunk(MOVE, chunk, bytes);
    }
    await moves.putBuckets(MOVE, again);
    await moves.endImport(MOVE);
    await from.storage.close();
    await assertSound(place);
  },
);
