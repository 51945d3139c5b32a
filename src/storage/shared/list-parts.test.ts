// Tests of long chunk lists in the cache of rows: only the parts that are read, written or cut are fetched.
import assert from "node:assert/strict";
import { test } from "node:test";
import { CHUNK_BYTES } from "#base/limits.ts";
import { PurgeCursor } from "#storage/writer/purge-cursor.ts";
import { type PostgresServer, postgresOfFile } from "#testing/postgres-server.ts";
import { CHANGE, makeRoot, openWriter } from "./both-engines.fixture.ts";
import { OWNER } from "./random-commands.fixture.ts";
import { LIST_PART, LIST_START } from "./row-facts.ts";
import { fetchRows } from "./row-fetch.ts";
import { makeSharedDatabase } from "./shared-database.fixture.ts";
import { SharedReader } from "./shared-reader.ts";
import type { SharedWriter } from "./shared-writer.ts";

let server: PostgresServer;
const skip = postgresOfFile((started) => {
  server = started;
});
const LONG = { skip, timeout: 120_000 };

const CHUNKS = 2_000;
const SIZE_BYTES = CHUNKS * CHUNK_BYTES;

const chunkAt = (position: number, name = `chunk ${position}`) => ({
  position,
  name,
  length: CHUNK_BYTES,
  crc32: position,
  blockCrcs: new Uint8Array(4),
});

/** Makes a file of many chunks, and returns it with its version and the id of its list. */
async function makeHugeFile(writer: SharedWriter, parentId: number) {
  const chunks = Array.from({ length: CHUNKS }, (_, position) => chunkAt(position));
  const target = { parentId, name: "huge", onExists: "fail", ifMatch: undefined, mtimeMs: 0 } as const;
  const content = { contentId: undefined, chunks };
  const made = {
    op: "commitUpload",
    ...CHANGE,
    ...target,
    sizeBytes: SIZE_BYTES,
    crc32: 1,
    content,
  } as const;
  const { inode } = await writer.submit(OWNER, made);
  return inode;
}

test(
  "of a long list the part around a range is fetched, for reads, writes and cuts at its end",
  LONG,
  async (t) => {
    const database = await makeSharedDatabase(t, server);
    const before = await openWriter(t, database);
    const parentId = (await makeRoot(before.client)) * 2 ** 32 + 1;
    const { id: fileId, version } = await makeHugeFile(before.writer, parentId);
    const opened = await openWriter(t, database);
    const { writer } = opened;
    const reader = new SharedReader({ ...opened, mayRead: () => true });
    t.after(() => reader.close());
    const record = await reader.read(OWNER, (rows) => rows.file(fileId));
    const contentId = record.contentId ?? assert.fail();
    const known = writer.cachedRows;
    const within = { from: 777, below: 779 };
    const list = await reader.read(OWNER, (rows) => rows.chunkList(contentId, within));
    assert.deepEqual([...list.positions], [777, 778]);
    const names = await reader.read(OWNER, (rows) => [...list.chunkIds].map((id) => rows.chunk(id)?.name));
    assert.deepEqual(names, ["chunk 777", "chunk 778"]);
    const rowsOfAPart = 2 * LIST_PART;
    assert.ok(writer.cachedRows - known <= rowsOfAPart, `${writer.cachedRows - known} rows`);
    // Across the border of two parts, one of them known.
    const border = await reader.read(OWNER, (rows) => rows.chunkList(contentId, { from: 831, below: 833 }));
    assert.deepEqual([...border.positions], [831, 832]);
    const common = { ...CHANGE, fileId, crc32: 1 };
    const written = await writer.submit(OWNER, {
      op: "writeChunks",
      ...common,
      expectedVersion: version,
      sizeBytes: SIZE_BYTES + CHUNK_BYTES,
      chunks: [chunkAt(1_000, "another"), chunkAt(CHUNKS)],
    });
    const cut = await writer.submit(OWNER, {
      op: "truncate",
      ...common,
      expectedVersion: written?.inode.version ?? 0,
      sizeBytes: SIZE_BYTES - 3 * CHUNK_BYTES,
      content: { keptBelow: CHUNKS - 3, chunks: [] },
    });
    assert.equal(cut?.usedDeltaBytes, -4 * CHUNK_BYTES);
    assert.ok(writer.cachedRows - known <= 6 * rowsOfAPart, `${writer.cachedRows - known} rows`);
    const { rows } = await opened.client.query(
      `SELECT position, name FROM file_chunk JOIN chunk ON chunk.id = chunk_id
     WHERE position IN (999, 1000, 1001) OR position > ${CHUNKS - 5} ORDER BY position`,
    );
    assert.deepEqual(
      rows.map(({ name }) => name as string),
      ["chunk 999", "another", "chunk 1001", "chunk 1996"],
    );
  },
);

test("the kept half of a long list is staged slice by slice, and becomes the cut file's", LONG, async (t) => {
  const database = await makeSharedDatabase(t, server);
  const { writer, client } = await openWriter(t, database);
  const parentId = (await makeRoot(client)) * 2 ** 32 + 1;
  const { id: fileId, version: expectedVersion } = await makeHugeFile(writer, parentId);
  const common = { ...CHANGE, fileId, expectedVersion };
  let contentId: number | undefined;
  const keptBelow = CHUNKS / 2;
  for (let from = 0; from < keptBelow; from += 512) {
    const below = Math.min(keptBelow, from + 512);
    const slice = await writer.submit(OWNER, { op: "stageKept", ...common, contentId, from, below });
    contentId = slice?.contentId ?? assert.fail();
  }
  const stale = { op: "stageKept", ...common, expectedVersion: 99, contentId, from: 0, below: 1 } as const;
  assert.equal(await writer.submit(OWNER, stale), undefined);
  const content = { keptBelow, chunks: [], contentId };
  const sizeBytes = keptBelow * CHUNK_BYTES;
  const cut = await writer.submit(OWNER, { op: "truncate", ...common, sizeBytes, crc32: 1, content });
  assert.equal(cut?.usedDeltaBytes, -sizeBytes);
  while (await writer.purgeSlice(OWNER, new PurgeCursor()));
  const { rows } = await client.query(
    `SELECT count(*) AS positions, (SELECT count(*) FROM chunk WHERE refs = 1) AS chunks,
       (SELECT count(*) FROM garbage) AS dropped, (SELECT count(*) FROM staging) AS staged FROM file_chunk`,
  );
  assert.deepEqual(rows, [{ positions: 1_000, chunks: 1_000, dropped: 1_000, staged: 0 }]);
});

test(
  "a long list is released and purged from its start on, and never fetched as a whole",
  LONG,
  async (t) => {
    const database = await makeSharedDatabase(t, server);
    const before = await openWriter(t, database);
    const parentId = (await makeRoot(before.client)) * 2 ** 32 + 1;
    const { id: inodeId } = await makeHugeFile(before.writer, parentId);
    let most = 0;
    const { writer, client } = await openWriter(t, database, "one", {
      fetch: async (facts) => {
        const fetched = await fetchRows(before.client, facts);
        most = Math.max(most, fetched.rows.length);
        return fetched;
      },
    });
    await writer.submit(OWNER, { op: "remove", ...CHANGE, inodeId, recursive: false });
    while (await writer.purgeSlice(OWNER, new PurgeCursor()));
    const { rows } = await client.query(
      "SELECT (SELECT count(*) FROM file_chunk) AS positions, (SELECT count(*) FROM purging) AS purging, (SELECT count(*) FROM garbage) AS dropped",
    );
    assert.deepEqual(rows, [{ positions: 0, purging: 0, dropped: CHUNKS }]);
    assert.ok(most <= 2 * LIST_START + 10, `${most} rows`);
  },
);
