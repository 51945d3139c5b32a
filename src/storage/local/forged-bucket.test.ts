// Tests of what the two ends of a move refuse: the other end may be a node in wrong hands.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type InodeId, ROOT_STRIDE } from "#storage/contract/inode.ts";
import type { MoveBucket } from "#storage/contract/root-move.ts";
import type { Storage } from "#storage/contract/storage.ts";
import { FLAG_HAS_GRANTS } from "#storage/metadata/schema.ts";
import { fillRoot, MOVE, NUMBER, put, Side } from "./moved-root.fixture.ts";
import { chunkFiles, OWNER, patterned, query, readAll, refusal } from "./store.fixture.ts";

const VICTIM = "victim@example.com";
const SECRET = patterned(200_000, 7);
const MOVED = { moveId: MOVE, owner: OWNER };

/** A root of another user, with a number beside that of the moving one. */
async function addVictim(storage: Storage, number: number): Promise<InodeId> {
  const { directoryId: parentId } = await storage.createRoot({ owner: VICTIM, rootId: "01VICTIM", number });
  const sink = storage.beginUpload({ owner: VICTIM, sizeBytes: undefined });
  sink.beginMessage();
  await sink.write(SECRET);
  sink.endMessage();
  const by = { owner: VICTIM, by: VICTIM, accessVersion: undefined, ifMatch: undefined, mtimeMs: 0 };
  return (await sink.commit({ ...by, parentId, name: "secret", onExists: "fail" })).inode.id;
}

test("the target of a move gets chunks of the moving root alone, and none after the move has ended", async (context) => {
  const from = await Side.open(context);
  await fillRoot(from.storage);
  const before = new Set(chunkFiles(from.directory));
  await addVictim(from.storage, NUMBER + 1);
  const nameOf = (file: string): string => file.split("/").at(-1) ?? "";
  const [own, foreign] = [
    nameOf([...before][0] ?? ""),
    nameOf(chunkFiles(from.directory).find((file) => !before.has(file)) ?? ""),
  ];
  await from.storage.moves.beginExport(MOVED);
  assert.ok((await from.storage.moves.readChunk(MOVE, own))?.length);
  assert.equal(await from.storage.moves.readChunk(MOVE, foreign), undefined);
  await from.storage.moves.endExport(MOVE);
  await assert.rejects(from.storage.moves.readChunk(MOVE, own), refusal("NO_SUCH_PATH"));
  await from.storage.close();
});

test("rows that a source sends for a place outside of the moving root are refused, and change nothing", async (context) => {
  const to = await Side.open(context);
  const secretId = await addVictim(to.storage, NUMBER + 1);
  const [{ contentId }] = query(
    to.directory,
    `SELECT content_id AS contentId FROM inode WHERE id = ${secretId}`,
  ) as [{ contentId: number }];
  await to.storage.moves.beginImport({ ...MOVED, numbers: [NUMBER] });
  const within = (id: number): number => id - NUMBER * ROOT_STRIDE;
  const file = (parent: number, content: number | null): string =>
    JSON.stringify(["i", 2, parent, "stolen", 1, 200_000, 0, 1, 0, 0, 0, content, OWNER, 0, 0, 0, 0]);
  const bucket = (facts: Partial<Record<keyof MoveBucket, unknown>>): MoveBucket =>
    ({ kind: 0, a: 0, b: 0, changes: 1, lines: [], ...facts }) as MoveBucket;
  const other = ROOT_STRIDE / 256;
  for (const [what, forged] of [
    ["a bucket of ids of the root behind", bucket({ a: other })],
    ["a bucket of ids of the root before", bucket({ a: -1 })],
    ["small contents of the root behind", bucket({ kind: 2, a: ROOT_STRIDE / 16 })],
    ["the chunk list of another root's file", bucket({ kind: 1, a: within(contentId) })],
    ["positions before the first", bucket({ kind: 1, a: 2, b: -1 })],
    ["a fraction", bucket({ a: 0.5 })],
    ["no number", bucket({ a: "0" })],
    ["an unknown kind", bucket({ kind: 3 })],
    ["a file with another root's content", bucket({ lines: [file(1, within(contentId))] })],
    ["a file in another root's folder", bucket({ lines: [file(ROOT_STRIDE + 1, null)] })],
    ["a file in a folder before the root", bucket({ lines: [file(-1, null)] })],
    ["an item for removal outside", bucket({ lines: [JSON.stringify(["p", 2, within(contentId)])] })],
    ["lines that are none", bucket({ lines: "[]" })],
    ["a line that is no row", bucket({ lines: [5] })],
  ] as const) {
    await assert.rejects(to.storage.moves.putBuckets(MOVE, [forged]), refusal("BAD_ARGUMENT"), what);
  }
  assert.deepEqual(
    query(
      to.directory,
      `SELECT 1 FROM inode WHERE id BETWEEN ${NUMBER * ROOT_STRIDE} AND ${(NUMBER + 1) * ROOT_STRIDE - 1}`,
    ),
    [],
  );
  assert.ok((await readAll(to.storage, secretId)).equals(SECRET));
  const chunk = (name: string, length: number): MoveBucket =>
    bucket({ kind: 1, a: 2, lines: [JSON.stringify(["c", 2, 0, name, length, 0, "", null, null])] });
  for (const forged of [
    chunk("../../metadata.db", 5),
    chunk("00".repeat(16), 4_000_001),
    chunk("00".repeat(16), -1),
  ]) {
    await assert.rejects(to.storage.moves.missingChunks(MOVE, [forged]), refusal("BAD_ARGUMENT"));
  }
  await to.storage.close();
});

test("a root's number is taken only in its range, and not while its former rows here are being removed", async (context) => {
  const to = await Side.open(context);
  for (const number of [0, -1, 0.5, 2 ** 21, 2 ** 40]) {
    await assert.rejects(
      to.storage.moves.beginImport({ ...MOVED, numbers: [number] }),
      refusal("BAD_ARGUMENT"),
      String(number),
    );
  }
  const { directoryId } = await to.storage.createRoot({ owner: OWNER, rootId: "01ROOT", number: NUMBER });
  for (let index = 0; index < 3_000; index++) {
    const by = { owner: OWNER, by: OWNER, accessVersion: undefined };
    await to.storage.createDirectory({ ...by, parentId: directoryId, name: `d${index}` });
  }
  await put(to.storage, directoryId, "file", patterned(200_000));
  const owned = { owner: OWNER, by: OWNER, accessVersion: undefined };
  await to.storage.shares.grant({ ...owned, inodeId: directoryId, username: VICTIM });
  await to.storage.moves.beginExport({ ...MOVED, moveId: "01BEFORE" });
  await to.storage.moves.freeze("01BEFORE");
  await to.storage.moves.depart("01BEFORE", "n2.example.com:50051");
  await to.storage.moves.endExport("01BEFORE");
  // A check in between finds no mark without its share.
  const marked = `SELECT id FROM inode WHERE (flags & ${FLAG_HAS_GRANTS}) <> 0`;
  assert.deepEqual(query(to.directory, marked), []);
  const again = (): Promise<unknown> =>
    to.storage.moves.beginImport({ ...MOVED, numbers: [NUMBER, NUMBER + 1] });
  await assert.rejects(again(), refusal("OVERLOADED"));
  while (query(to.directory, "SELECT 1 FROM inode").length > 0)
    await new Promise((resolve) => setImmediate(resolve));
  while (query(to.directory, "SELECT 1 FROM file_chunk").length > 0)
    await new Promise((resolve) => setImmediate(resolve));
  await again();
  assert.deepEqual(
    to.storage.moves.list().map(({ number, state }) => [number, state]),
    [[NUMBER, "arriving"]],
  );
  await to.storage.close();
});
