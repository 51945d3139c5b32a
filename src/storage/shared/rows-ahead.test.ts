// Tests what comes with content that reads wait for: in which directories, how much, and for which root.
import assert from "node:assert/strict";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { ROOT_STRIDE, rootNumberOf } from "#storage/contract/inode.ts";
import { KIND_FILE } from "#storage/metadata/schema.ts";
import { type PostgresServer, postgresOfFile } from "#testing/postgres-server.ts";
import { temporaryDirectory } from "#testing/temporary-folder.ts";
import { CHANGE, makeRoot, openWriter } from "./both-engines.fixture.ts";
import { OWNER } from "./random-commands.fixture.ts";
import { RowCache } from "./row-cache.ts";
import type { Fact } from "./row-facts.ts";
import { AHEAD_BYTES_MAX, AHEAD_ROWS_MAX } from "./rows-ahead.ts";
import { makeSharedDatabase } from "./shared-database.fixture.ts";
import { SharedReader } from "./shared-reader.ts";

let server: PostgresServer;
const skip = postgresOfFile((started) => {
  server = started;
});

/** A file of a directory. Those with a list are large. */
interface File {
  readonly size: number;
  readonly list?: number;
}

function openCache(t: TestContext): RowCache {
  const cache = new RowCache(join(temporaryDirectory(t), "rows.db"), 1);
  t.after(() => cache.close());
  return cache;
}

/** Puts files into a directory of a root; returns their numbers in the order of their names. */
function list(cache: RowCache, root: number, files: readonly File[], isWhole = true): number[] {
  const [parent, first] = [root * ROOT_STRIDE + 1, root * ROOT_STRIDE + 1_000];
  const rows = files.map(({ size, list: content }, at) => ({
    table: "inode",
    row: {
      id: first + at,
      parent_id: parent,
      name: `f${String(at).padStart(6, "0")}`,
      kind: KIND_FILE,
      size,
      crc32: 0,
      version: 1,
      mtime_ms: 0,
      ctime_ms: 0,
      flags: 0,
      content_id: content ?? null,
      created_by: null,
      child_count: 0,
      tree_inodes: 0,
      tree_files: 0,
      height: 0,
    },
  }));
  const number: Fact = { kind: "number", id: root };
  const facts: readonly Fact[] = isWhole ? [number, { kind: "children", id: parent }] : [number];
  cache.accept({ facts, rows });
  return files.map((_, at) => first + at);
}

const inline = (id: number): Fact => ({ kind: "inline", id });
const many = (count: number, size: number): File[] => Array.from({ length: count }, () => ({ size }));

test("a read in a listed directory brings eight files behind it, and their bytes are bounded", (t) => {
  const cache = openCache(t);
  const small = list(cache, 1, many(40, 100));
  assert.deepEqual(cache.toFetch([inline(small[3] ?? 0)]), small.slice(3, 12).map(inline));
  const large = list(cache, 2, many(40, 30_000));
  assert.deepEqual(cache.toFetch([inline(large[0] ?? 0)]), large.slice(0, 3).map(inline));
});

test("nothing comes ahead where names alone are asked for, or entries are not all known", (t) => {
  const cache = openCache(t);
  const files = list(cache, 1, many(40, 100), false);
  assert.deepEqual(cache.toFetch([inline(files[0] ?? 0)]), [inline(files[0] ?? 0)]);
  list(cache, 2, many(40, 100));
  const name: Fact = { kind: "name", id: 2 * ROOT_STRIDE + 2, name: "other" };
  assert.deepEqual(cache.toFetch([name]), [name]);
});

test("chunk lists come ahead as small files do; empty files and what is known do not", (t) => {
  const cache = openCache(t);
  const files = list(cache, 1, [
    { size: 10 },
    { size: 0 },
    { size: 70_000, list: ROOT_STRIDE + 7 },
    { size: 10 },
    { size: 10 },
    // Longer than what a fetch brings ahead.
    { size: 4_000_000_000_000, list: ROOT_STRIDE + 8 },
  ]);
  cache.accept({ facts: [inline(files[3] ?? 0)], rows: [] });
  assert.deepEqual(cache.toFetch([inline(files[0] ?? 0)]), [
    inline(files[0] ?? 0),
    { kind: "list", id: ROOT_STRIDE + 7 },
    inline(files[4] ?? 0),
  ]);
});

test("who reads on gets more, up to 256 files and the limits of rows and bytes, shared by roots", (t) => {
  const cache = openCache(t);
  const ahead = (asked: readonly number[]): Fact[] => cache.toFetch(asked.map(inline)).slice(asked.length);
  const one = list(cache, 1, many(2_000, 100));
  cache.accept({ facts: one.slice(0, 100).map(inline), rows: [] });
  assert.equal(ahead(one.slice(100, 101)).length, 256);
  const two = list(cache, 2, many(2_000, 60_000));
  cache.accept({ facts: two.slice(0, 100).map(inline), rows: [] });
  const bytesOf = (facts: readonly Fact[], root: number): number =>
    60_000 * facts.filter((fact) => "id" in fact && rootNumberOf(fact.id) === root).length;
  assert.equal(bytesOf(ahead(two.slice(100, 101)), 2), AHEAD_BYTES_MAX - (AHEAD_BYTES_MAX % 60_000));
  const both = ahead([...one.slice(100, 101), ...two.slice(100, 101)]);
  const half = AHEAD_BYTES_MAX / 2;
  assert.equal(bytesOf(both, 2), half - (half % 60_000));
  const lists = Array.from({ length: 300 }, (_, at) => ({
    size: 40_000_000,
    list: 3 * ROOT_STRIDE + at + 1,
  }));
  const three = list(cache, 3, [...many(100, 10), ...lists]);
  cache.accept({ facts: three.slice(0, 99).map(inline), rows: [] });
  // Ten chunks, each with a position.
  assert.equal(ahead(three.slice(99, 100)).length, Math.floor(AHEAD_ROWS_MAX / 20));
});

test("600 small files of a listed folder are read with few fetches, and each has its own bytes", {
  skip,
  timeout: 120_000,
}, async (t) => {
  const database = await makeSharedDatabase(t, server);
  const before = await openWriter(t, database);
  const parentId = (await makeRoot(before.client)) * ROOT_STRIDE + 1;
  await Promise.all(
    Array.from({ length: 600 }, (_, at) => {
      const file = { parentId, name: `f${at}`, data: Buffer.from(`bytes of f${at}`), mtimeMs: 0 };
      return before.writer.submit(OWNER, { op: "createFile", ...CHANGE, ...file });
    }),
  );
  const { writer, cache, fetches } = await openWriter(t, database);
  const reader = new SharedReader({ cache, writer, mayRead: () => true });
  t.after(() => reader.close());
  const page = { limit: 1_000, pageToken: "", sort: "name" } as const;
  const { entries } = await reader.read(OWNER, (view) => view.list(parentId, page));
  assert.equal(entries.length, 600);
  const listed = fetches();
  for (const { id, name } of entries) {
    const bytes = await reader.read(OWNER, (view) => view.inline(id));
    assert.equal(Buffer.from(bytes).toString(), `bytes of ${name}`);
  }
  const took = fetches() - listed;
  assert.ok(took <= 6, `${took} fetches`);
});
