// Tests of a root's way from one store to another, while it is used and across restarts of either side.
import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { isGroveError } from "#base/errors.ts";
import { rootNumberOf } from "#storage/contract/inode.ts";
import { DEPARTED_ROOTS_MAX, RootPlaces } from "#storage/metadata/root-places.ts";
import { migrate } from "#storage/metadata/schema.ts";
import {
  beginMove,
  fillRoot,
  MOVE,
  NUMBER,
  portrait,
  pullAll,
  pullOnce,
  put,
  Side,
  switchOver,
} from "./moved-root.fixture.ts";
import { BOB } from "./shares.fixture.ts";
import { assertSound, chunkFiles, inodeAt, OWNER, patterned, query, refusal } from "./store.fixture.ts";

const BY = { owner: OWNER, by: OWNER, accessVersion: undefined };
const MOVED = { moveId: MOVE, owner: OWNER };

test("a root arrives with files, shares, trash, begun uploads, usage and inode numbers, and leaves nothing behind", async (context) => {
  const { from, to, before } = await beginMove(context);
  await pullAll(from, to);
  assert.equal(to.storage.root(OWNER), undefined);
  assert.deepEqual(to.storage.roots(), []);
  await to.storage.close();
  assert.throws(() => assertSound(to.directory), refusal("BAD_ARGUMENT"));
  await to.restart();
  await switchOver(from, to);
  assert.deepEqual(await portrait(to.storage), before);
  assert.equal(from.storage.root(OWNER), undefined);
  assert.deepEqual(from.storage.roots(), []);
  assert.deepEqual(
    from.storage.moves.list().map(({ state, address }) => [state, address]),
    [["departed", "n2.example.com:50051"]],
  );
  await to.restart();
  assert.deepEqual(await portrait(to.storage), before);
  assert.ok(chunkFiles(from.directory).length > 0);
  await from.storage.moves.endExport(MOVE);
  await to.storage.moves.endImport(MOVE);
  while (query(from.directory, "SELECT 1 FROM inode").length > 0 || chunkFiles(from.directory).length > 0) {
    // A process that ends meanwhile leaves data that the check finds sound.
    assert.deepEqual(query(from.directory, "SELECT id FROM inode WHERE (flags & 2) <> 0"), []);
    await new Promise((resolve) => setImmediate(resolve));
  }
  await put(to.storage, inodeAt(to.storage, "top").id, "new", patterned(200_000));
  await Promise.all([from.storage.close(), to.storage.close()]);
  assertSound(from.directory);
  assertSound(to.directory);
});

test("what changes while the root is copied arrives as it is at the freeze, also across restarts of either side", async (context) => {
  const { from, to } = await beginMove(context);
  let step = 0;
  const change = async (): Promise<void> => {
    const { storage } = from;
    const top = inodeAt(storage, "top").id;
    const at = step++;
    if (at > 40) return;
    const [one, other] = [inodeAt(storage, "top", `f${2 * at}`), inodeAt(storage, "top", `f${298 - 2 * at}`)];
    if (at < 30) {
      // Two files exchange their names, which lie in different buckets.
      const rename = (inodeId: number, name: string) =>
        storage.rename({ ...BY, inodeId, parentId: top, name, onConflict: "fail" });
      await rename(one.id, "between");
      await rename(other.id, one.name);
      await rename(one.id, other.name);
    }
    if (at % 3 === 0)
      await storage.remove({
        ...BY,
        inodeId: inodeAt(storage, "top", "inner", `f${2 * at + 1}`).id,
        recursive: true,
      });
    if (at % 4 === 0)
      await storage.trash({ ...BY, inodeId: inodeAt(storage, "top", "inner", `f${2 * at + 91}`).id });
    if (at % 5 === 0) await put(storage, top, "two chunks", patterned(4_100_000, at));
    if (at === 7) await storage.remove({ ...BY, inodeId: inodeAt(storage, "copy").id, recursive: true });
    if (at === 38) {
      const [namespace, name] = ["urn:x", "colour"];
      const edit = { kind: "set", namespace, name, xml: "<c xmlns='urn:x'>red</c>" } as const;
      await storage.properties.change({ ...BY, inodeId: inodeAt(storage, "top", "inner").id, edits: [edit] });
    }
    if (at === 39) await storage.locks.end(OWNER, "urn:uuid:1");
    if (at % 10 === 6) await from.restart();
    if (at % 10 === 9) await to.restart();
  };
  await pullAll(from, to, change);
  for (let more = step; more < 41; more++) await change();
  assert.ok((await pullOnce(from, to, [])).left > 0);
  const before = await portrait(from.storage);
  await switchOver(from, to);
  assert.deepEqual(await portrait(to.storage), before);
  await Promise.all([from.storage.close(), to.storage.close()]);
  assertSound(from.directory);
  assertSound(to.directory);
});

test("a frozen root refuses every change, over a restart too, and takes them again once the move is undone", async (context) => {
  const { from, to, parentId } = await beginMove(context);
  await pullAll(from, to);
  await from.storage.moves.freeze(MOVE);
  const changes = [
    () => from.storage.createDirectory({ ...BY, parentId, name: "new" }),
    () => from.storage.uploads.drop("01UPLOAD"),
    () => from.storage.shares.revoke({ ...BY, inodeId: inodeAt(from.storage, "top").id, username: BOB }),
    () => from.storage.trash({ ...BY, inodeId: inodeAt(from.storage, "top").id }),
  ];
  for (const change of changes) await assert.rejects(change, refusal("NODE_DRAINING"));
  await from.restart();
  for (const change of changes) await assert.rejects(change, refusal("NODE_DRAINING"));
  const before = await portrait(from.storage);
  await from.storage.moves.endExport(MOVE);
  await to.storage.moves.endImport(MOVE);
  assert.deepEqual(await portrait(from.storage), before);
  for (const change of changes) await change();
  assert.deepEqual(query(from.directory, "SELECT name FROM sqlite_schema WHERE type = 'trigger'"), []);
  while (chunkFiles(to.directory).length > 0) await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(query(to.directory, "SELECT 1 FROM inode UNION ALL SELECT 1 FROM file_chunk"), []);
  await Promise.all([from.storage.close(), to.storage.close()]);
  assertSound(from.directory);
  assertSound(to.directory);
});

test("a root whose number is taken gets another, with the same files under new inode numbers", async (context) => {
  const [from, to] = [await Side.open(context), await Side.open(context)];
  await fillRoot(from.storage);
  await to.storage.createRoot({ owner: "bob@example.com", rootId: "01BOB", number: NUMBER });
  await from.storage.moves.beginExport(MOVED);
  const { number } = await to.storage.moves.beginImport({ ...MOVED, numbers: [NUMBER, NUMBER + 1] });
  assert.equal(number, NUMBER + 1);
  await pullAll(from, to);
  await switchOver(from, to);
  assert.equal(rootNumberOf(to.storage.root(OWNER)?.directoryId ?? 0), NUMBER + 1);
  await to.storage.restore({
    ...BY,
    trashId: to.storage.listTrash(OWNER, { limit: 1, pageToken: "" }).items[0]?.id ?? "",
    names: undefined,
    onConflict: "fail",
  });
  assert.equal(inodeAt(to.storage, "top", "old", "x").sizeBytes, 70);
  await Promise.all([from.storage.close(), to.storage.close()]);
  assertSound(to.directory);
});

test("a chunk that arrives with other bytes is refused, and rows that belong elsewhere are", async (context) => {
  const { from, to } = await beginMove(context);
  const { buckets } = await from.storage.moves.nextRound(MOVE, [], 100_000_000);
  const [chunk] = await to.storage.moves.missingChunks(MOVE, buckets);
  assert.ok(chunk !== undefined);
  const wrong = Buffer.alloc(chunk.length);
  await assert.rejects(to.storage.moves.putChunk(MOVE, chunk, wrong), refusal("CHECKSUM_MISMATCH"));
  assert.deepEqual(chunkFiles(to.directory), []);
  const strange = { kind: 0, a: 0, b: 0, changes: 1, lines: ['["d",300,"AA=="]'] } as const;
  await assert.rejects(to.storage.moves.putBuckets(MOVE, [strange]), refusal("BAD_ARGUMENT"));
  await Promise.all([from.storage.close(), to.storage.close()]);
});

test("chunk files that have landed without their rows go with the end of the only import", async (context) => {
  const { from, to } = await beginMove(context);
  const { buckets } = await from.storage.moves.nextRound(MOVE, [], 100_000_000);
  for (const chunk of await to.storage.moves.missingChunks(MOVE, buckets)) {
    const bytes = await from.storage.moves.readChunk(MOVE, chunk.name);
    await to.storage.moves.putChunk(MOVE, chunk, bytes ?? Buffer.alloc(0));
  }
  assert.ok(chunkFiles(to.directory).length > 1);
  await to.storage.moves.endImport(MOVE);
  assert.deepEqual(chunkFiles(to.directory), []);
  await to.storage.moves.beginImport({ ...MOVED, numbers: [NUMBER] });
  await pullAll(from, to);
  await switchOver(from, to);
  await Promise.all([from.storage.close(), to.storage.close()]);
  assertSound(to.directory);
});

test("chunk files that have landed stay while buckets of another kind or another move are put", async (context) => {
  const { from, to } = await beginMove(context);
  await to.storage.moves.beginImport({ moveId: "02MOVE", owner: BOB, numbers: [NUMBER + 1] });
  const { buckets } = await from.storage.moves.nextRound(MOVE, [], 100_000_000);
  const chunks = await to.storage.moves.missingChunks(MOVE, buckets);
  assert.ok(chunks.length > 1);
  for (const chunk of chunks) {
    const bytes = await from.storage.moves.readChunk(MOVE, chunk.name);
    await to.storage.moves.putChunk(MOVE, chunk, bytes ?? Buffer.alloc(0));
  }
  await to.storage.moves.putBuckets("02MOVE", []);
  await to.storage.moves.putBuckets(
    MOVE,
    buckets.filter(({ kind }) => kind !== 1),
  );
  assert.equal(chunkFiles(to.directory).length, chunks.length);
  assert.deepEqual(await to.storage.moves.missingChunks(MOVE, buckets), []);
  await to.storage.moves.putBuckets(
    MOVE,
    buckets.filter(({ kind }) => kind === 1),
  );
  await to.storage.moves.endImport("02MOVE");
  await pullAll(from, to);
  const before = await portrait(from.storage);
  await switchOver(from, to);
  assert.deepEqual(await portrait(to.storage), before);
  await Promise.all([from.storage.close(), to.storage.close()]);
  assertSound(to.directory);
});

test("no root is made in the place of one that has left, over restarts and once its copy is gone, until a later move brings it back", async (context) => {
  const { from, to } = await beginMove(context);
  await pullAll(from, to);
  await switchOver(from, to);
  const isElsewhere = (error: unknown): boolean =>
    isGroveError(error, "WRONG_NODE") && error.metadata["address"] === "n2.example.com:50051";
  const again = { owner: OWNER, rootId: "01ROOT" };
  await assert.rejects(from.storage.createRoot(again), isElsewhere);
  await from.storage.moves.endExport(MOVE);
  await to.storage.moves.endImport(MOVE);
  while (query(from.directory, "SELECT 1 FROM inode").length > 0)
    await new Promise((resolve) => setImmediate(resolve));
  await from.restart();
  await assert.rejects(from.storage.createRoot(again), isElsewhere);
  const address = "n2.example.com:50051";
  const left = { rootId: "01ROOT", owner: OWNER, moveId: MOVE, target: "n2", address };
  assert.deepEqual(from.storage.moves.departedRoots(OWNER), [left]);
  assert.deepEqual(from.storage.moves.departedRoots(BOB), []);
  assert.deepEqual(to.storage.moves.departedRoots(), []);
  const BACK = "02MOVE";
  await to.storage.moves.beginExport({ moveId: BACK, owner: OWNER });
  await from.storage.moves.beginImport({ moveId: BACK, owner: OWNER, numbers: [NUMBER] });
  const head = await to.storage.moves.freeze(BACK);
  await to.storage.moves.depart(BACK, "n1.example.com:50051", "n1");
  await from.storage.moves.finishImport(BACK, head, 1);
  assert.deepEqual(from.storage.moves.departedRoots(), []);
  assert.equal((await from.storage.createRoot(again)).rootId, "01ROOT");
  assert.deepEqual(
    to.storage.moves.departedRoots().map(({ target, moveId }) => [target, moveId]),
    [["n1", BACK]],
  );
  await Promise.all([from.storage.close(), to.storage.close()]);
});

test("a kept copy that is taken back is the root as it was, with its shares, over a restart in between", async (context) => {
  const { from, to, before } = await beginMove(context);
  await pullAll(from, to);
  await switchOver(from, to);
  await from.restart();
  assert.equal(from.storage.root(OWNER), undefined);
  await from.storage.moves.takeBack(MOVE);
  await from.storage.moves.takeBack(MOVE);
  assert.deepEqual(await portrait(from.storage), before);
  assert.deepEqual(from.storage.moves.list(), []);
  assert.deepEqual(from.storage.moves.departedRoots(), []);
  assert.deepEqual([...(from.storage.moves.arrivals() ?? [])], [["01ROOT", `${MOVE}+`]]);
  await put(from.storage, inodeAt(from.storage, "top").id, "new", patterned(200_000));
  await from.restart();
  assert.notEqual(from.storage.root(OWNER), undefined);
  await Promise.all([from.storage.close(), to.storage.close()]);
  assertSound(from.directory);
});

test("a root that is frozen for a switch of which its node has not heard is taken back, over a restart too", async (context) => {
  const { from, to, before } = await beginMove(context);
  await pullAll(from, to);
  await from.storage.moves.freeze(MOVE);
  await from.restart();
  await from.storage.moves.takeBack(MOVE);
  await from.storage.moves.takeBack(MOVE);
  assert.deepEqual(await portrait(from.storage), before);
  assert.deepEqual(from.storage.moves.list(), []);
  assert.deepEqual([...(from.storage.moves.arrivals() ?? [])], [["01ROOT", `${MOVE}+`]]);
  assert.deepEqual(query(from.directory, "SELECT name FROM sqlite_schema WHERE type = 'trigger'"), []);
  await put(from.storage, inodeAt(from.storage, "top").id, "new", patterned(200_000));
  await from.restart();
  await put(from.storage, inodeAt(from.storage, "top").id, "newer", patterned(200_000));
  await Promise.all([from.storage.close(), to.storage.close()]);
  assertSound(from.directory);
});

test("the notes of roots that have left are bounded: those that left first are forgotten", () => {
  const db = new DatabaseSync(":memory:");
  migrate(db, "data");
  const places = new RootPlaces(db);
  const root = (index: number) => ({
    rootId: `R${index}`,
    owner: OWNER,
    moveId: `M${String(index).padStart(6, "0")}`,
  });
  places.left(root(0), { target: "n2", address: "" });
  // As if so many had left one by one.
  db.exec(`
    WITH RECURSIVE further (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM further WHERE n < ${DEPARTED_ROOTS_MAX})
    INSERT INTO root_place (root_id, owner, move_id, is_here, target, address)
      SELECT 'R' || n, owner, printf('M%06d', n), is_here, target, address FROM root_place, further`);
  places.left(root(DEPARTED_ROOTS_MAX + 1), { target: "n2", address: "" });
  const { count } = db.prepare("SELECT count(*) AS count FROM root_place").get() as { count: number };
  assert.equal(count, DEPARTED_ROOTS_MAX);
  assert.doesNotThrow(() => places.requireNotDeparted("R1"));
  assert.throws(() => places.requireNotDeparted("R2"), refusal("WRONG_NODE"));
  db.close();
});
