// Tests of files with thousands of chunks: a read looks up the chunks of its range, a cut those at its end.
import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type TestContext, test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { BLOCK_BYTES, CHUNK_BYTES } from "#base/limits.ts";
import { ChunkPins } from "#storage/chunks/chunk-pins.ts";
import { ListChecksum } from "#storage/chunks/list-checksum.ts";
import type { InodeId } from "#storage/contract/inode.ts";
import type { Storage } from "#storage/contract/storage.ts";
import { PURGE_SLICE_ROWS } from "#storage/metadata/content-rows.ts";
import { SnapshotReader } from "#storage/metadata/snapshot-reader.ts";
import { until } from "#testing/until.ts";
import { PinnedContent } from "./pinned-content.ts";
import {
  assertSound,
  BY_OWNER,
  copiesOf,
  inodeAt,
  OWNER,
  openTestStorage,
  patterned,
  query,
  refusal,
  upload,
} from "./store.fixture.ts";

/** Chunks of the file: too many for one command, on both sides of its middle. */
const CHUNKS = 4 * PURGE_SLICE_ROWS;
const SIZE_BYTES = CHUNKS * CHUNK_BYTES;
/** The bytes of each chunk; zeros follow up to its end. */
const BYTES = patterned(100_000);
const ROUNDS = 20;

const smallFile = copiesOf(async (storage) => {
  const root = await storage.createRoot({ owner: OWNER, rootId: "01ROOT" });
  await upload(storage, { parentId: root.directoryId, name: "huge", bytes: BYTES });
});

interface Huge {
  readonly storage: Storage;
  readonly directory: string;
  readonly fileId: InodeId;
  /** Ends the storage and checks it. */
  readonly end: () => Promise<void>;
}

/** A store whose file "huge" has the same chunk at each of its positions. */
async function hugeFile(t: TestContext): Promise<Huge> {
  const directory = await smallFile(t);
  const db = new DatabaseSync(join(directory, "inodes.db"));
  const { chunkId, crc } = db.prepare("SELECT id AS chunkId, crc32 AS crc FROM chunk").get() as {
    chunkId: number;
    crc: number;
  };
  const checksum = new ListChecksum();
  for (let position = 0; position < CHUNKS; position++) {
    checksum.add({ position, length: BYTES.length, crc32: crc });
  }
  db.exec(`
    WITH RECURSIVE more (position) AS (SELECT 1 UNION ALL SELECT position + 1 FROM more WHERE position < ${CHUNKS - 1})
      INSERT INTO file_chunk (content_id, position, chunk_id) SELECT content_id, position, ${chunkId} FROM more, inode
        WHERE inode.name = 'huge';
    UPDATE chunk SET refs = ${CHUNKS};
    UPDATE inode SET size = ${SIZE_BYTES};
    UPDATE inode SET crc32 = ${checksum.crcOf(SIZE_BYTES)} WHERE name = 'huge';
    UPDATE root SET live_bytes = ${SIZE_BYTES};
  `);
  db.close();
  const storage = await openTestStorage(directory);
  const end = async (): Promise<void> => {
    await storage.close();
    assertSound(directory);
  };
  t.after(() => storage.close());
  return { storage, directory, fileId: inodeAt(storage, "huge").id, end };
}

const listOf = (directory: string): unknown =>
  query(directory, "SELECT content_id FROM inode WHERE name = 'huge'")[0]?.["content_id"];

test("a read of a few bytes looks up its own chunk, whatever else the file has (D15)", async (t) => {
  const { storage, directory, fileId, end } = await hugeFile(t);
  const reader = new SnapshotReader(join(directory, "inodes.db"), assert.ifError);
  const rows: number[] = [];
  const deps = {
    reader: {
      file: (id: InodeId) => reader.file(id),
      inline: (id: InodeId) => reader.inline(id),
      chunk: (id: number) => reader.chunk(id),
      chunkList: (...wanted: Parameters<SnapshotReader["chunkList"]>) => {
        const list = reader.chunkList(...wanted);
        rows.push(list.positions.length);
        return list;
      },
    },
    files: { use: () => Promise.reject(new Error("not here")) },
    pins: new ChunkPins(),
    damaged: () => undefined,
  };
  const at = 1_000 * CHUNK_BYTES - 2_000;
  for (const length of [1_000, 4_096]) {
    const content = new PinnedContent(deps, reader.file(fileId), { offset: at, end: at + length });
    const whole = await content.rangeCrc32(999 * CHUNK_BYTES, CHUNK_BYTES);
    assert.notEqual(whole, 0);
    assert.throws(() => content.rangeCrc32(1_002 * CHUNK_BYTES, CHUNK_BYTES), refusal("INTERNAL"));
    content.close();
  }
  assert.deepEqual(rows, [1, 2]);
  const content = storage.openFile(fileId, { offset: at, end: at + 4_096 });
  const [before, after] = [await content.readBlock(at), await content.readBlock(1_000 * CHUNK_BYTES)];
  content.close();
  assert.ok(before.equals(Buffer.alloc(2_000)));
  assert.ok(after.subarray(0, BYTES.length).equals(BYTES));
  assert.equal(after.length, BLOCK_BYTES);
  reader.close();
  await end();
});

test("a write into a huge file looks up what it touches, and leaves the rest as it is (D15)", async (t) => {
  const { storage, directory, fileId, end } = await hugeFile(t);
  const list = listOf(directory);
  const data = Buffer.from("new");
  await storage.writeRange({ ...BY_OWNER, fileId, offset: 700 * CHUNK_BYTES, data, ifMatch: undefined });
  const content = storage.openFile(fileId);
  const expected = Buffer.from(BYTES);
  data.copy(expected);
  for (const [position, bytes] of [
    [699, BYTES],
    [700, expected],
    [701, BYTES],
  ] as const) {
    const block = await content.readBlock(position * CHUNK_BYTES);
    assert.ok(block.subarray(0, BYTES.length).equals(bytes), `${position}`);
  }
  content.close();
  assert.equal(listOf(directory), list);
  await end();
});

for (const [what, sizeBytes, isSameList] of [
  ["a little at its end, which leaves its list in place", SIZE_BYTES - 10 * CHUNK_BYTES - 3_999_000, true],
  ["a little at the end of its last chunk", SIZE_BYTES - 1, true],
  ["nearly all of it", 3 * CHUNK_BYTES + 50_000, false],
  ["half of it, in slices", SIZE_BYTES / 2 + 50_000, false],
] as const) {
  test(`a cut of a huge file takes ${what}, and what is left is exact (D15)`, async (t) => {
    const { storage, directory, fileId, end } = await hugeFile(t);
    const list = listOf(directory);
    const change = { ...BY_OWNER, fileId, sizeBytes, ifMatch: undefined };
    const { inode, usedDeltaBytes } = await storage.setSize(change);
    assert.deepEqual([inode.sizeBytes, usedDeltaBytes], [sizeBytes, sizeBytes - SIZE_BYTES]);
    assert.equal(listOf(directory) === list, isSameList);
    const last = Math.floor(sizeBytes / CHUNK_BYTES);
    const [{ chunks } = {}] = query(
      directory,
      "SELECT count(*) AS chunks FROM file_chunk JOIN inode USING (content_id) WHERE name = 'huge'",
    );
    assert.equal(chunks, last + 1);
    const content = storage.openFile(fileId);
    const block = await content.readBlock(last * CHUNK_BYTES);
    content.close();
    const left = Math.min(BYTES.length, sizeBytes - last * CHUNK_BYTES);
    assert.ok(block.subarray(0, left).equals(BYTES.subarray(0, left)));
    await until(() => query(directory, "SELECT 1 FROM purging UNION SELECT 1 FROM staging").length === 0);
    await end();
  });
}

test("what somebody else cuts off a huge file lies with all of it in the owner's trash (D13, D15)", async (t) => {
  const { storage, directory, fileId, end } = await hugeFile(t);
  const list = listOf(directory);
  const sizeBytes = SIZE_BYTES - 1;
  const change = { ...BY_OWNER, by: "eve@example.com", fileId, sizeBytes, ifMatch: undefined };
  await storage.setSize(change);
  const { liveBytes, trashBytes } = storage.root(OWNER)?.usage ?? assert.fail();
  assert.deepEqual([liveBytes, trashBytes], [sizeBytes, SIZE_BYTES]);
  const kept = query(directory, "SELECT content_id AS list FROM trash JOIN inode ON inode.id = inode_id");
  assert.deepEqual(
    kept.map((row) => row["list"]),
    [list],
  );
  assert.deepEqual(query(directory, "SELECT 1 FROM staging"), []);
  await end();
});

/** Cuts a huge file in half until what is kept is seen in staging, which lasts for milliseconds. */
async function seenStaging(
  t: TestContext,
): Promise<Huge & { readonly cutting: ReturnType<Storage["setSize"]> }> {
  for (let round = 1; ; round++) {
    const huge = await hugeFile(t);
    const cut = new AbortController();
    const change = { ...BY_OWNER, fileId: huge.fileId, sizeBytes: SIZE_BYTES / 2, ifMatch: undefined };
    const cutting = huge.storage.setSize(change).finally(() => cut.abort());
    while (!cut.signal.aborted) {
      await nextTurn();
      if (query(huge.directory, "SELECT 1 FROM staging").length === 1) return { ...huge, cutting };
    }
    await cutting;
    assert.ok(round < ROUNDS, "no look has met the staging");
  }
}

test("a huge file that is replaced while its kept part is staged is cut as it is then, and nothing stays staged (D15)", async (t) => {
  const { storage, directory, end, cutting } = await seenStaging(t);
  const parentId = storage.root(OWNER)?.directoryId ?? assert.fail();
  await upload(storage, { parentId, name: "huge", bytes: patterned(300_000, 2) });
  const { inode } = await cutting;
  // The new content is shorter than what was asked for: the file grows.
  assert.equal(inode.sizeBytes, SIZE_BYTES / 2);
  await until(() => query(directory, "SELECT 1 FROM purging UNION SELECT 1 FROM staging").length === 0);
  await end();
});
