// Tests reads of cached rows: the same answers as the local engine's, whatever of the rows is here.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { GroveError } from "#base/errors.ts";
import { SnapshotReader } from "#storage/metadata/snapshot-reader.ts";
import { PurgeCursor } from "#storage/writer/purge-cursor.ts";
import { type PostgresServer, postgresOfFile } from "#testing/postgres-server.ts";
import { CHANGE, LocalRows, makeRoot, NOW_MS, openWriter } from "./both-engines.fixture.ts";
import { OWNER, RandomCommands } from "./random-commands.fixture.ts";
import type { RowCache } from "./row-cache.ts";
import { makeSharedDatabase } from "./shared-database.fixture.ts";
import { SharedReader } from "./shared-reader.ts";
import type { SharedWriter } from "./shared-writer.ts";

let server: PostgresServer;
const skip = postgresOfFile((started) => {
  server = started;
});
const LONG = { skip, timeout: 120_000 };

function openReader(
  t: TestContext,
  { cache, writer }: { cache: RowCache; writer: SharedWriter },
  mayRead = () => true,
): SharedReader {
  const reader = new SharedReader({ cache, writer, mayRead });
  t.after(() => reader.close());
  return reader;
}

/** What a read answers, or the code of its refusal. */
function outcome<T>(read: () => T): T | string {
  try {
    return read();
  } catch (error) {
    if (error instanceof GroveError) return error.code;
    throw error;
  }
}

/** Reads of every kind, on inodes that are there, gone or never were. */
function readsOf(ids: readonly number[]): ((reader: SnapshotReader) => unknown)[] {
  const page = { limit: 3, pageToken: "" };
  return [
    (reader) => reader.root(OWNER),
    (reader) => reader.listTrash(OWNER, page),
    (reader) => reader.listTrash(OWNER, { ...page, originalPath: "/a" }),
    (reader) => reader.oldestTrash(OWNER, NOW_MS * 2, 5),
    ...[[], ["a"], ["a", "b"], ["b", "a", "c"], ["Ä"], ["d", "d", "d"]].map(
      (names) => (reader: SnapshotReader) => reader.resolve(OWNER, names),
    ),
    ...ids.flatMap((id) => [
      (reader: SnapshotReader) => reader.inodesBelow(id),
      (reader: SnapshotReader) => reader.content(id),
      (reader: SnapshotReader) => Buffer.from(reader.inline(id)).toString(),
      (reader: SnapshotReader) => {
        const record = reader.file(id);
        if (record.contentId === undefined) return record;
        const { positions, chunkIds } = reader.chunkList(record.contentId);
        return [record, [...positions], [...chunkIds].map((chunk) => reader.chunk(chunk)?.name)];
      },
      ...(["name", "name-desc", "size", "mtime-desc"] as const).map(
        (sort) => (reader: SnapshotReader) => reader.list(id, { ...page, sort }),
      ),
      (reader: SnapshotReader) => reader.list(id, { ...page, sort: "name", hiddenFrom: "bob@example.com" }),
    ]),
  ];
}

test(
  "every read answers as the local engine's does, with rows at hand, forgotten, and in between",
  LONG,
  async (t) => {
    const database = await makeSharedDatabase(t, server);
    const opened = await openWriter(t, database);
    await makeRoot(opened.client);
    const reader = openReader(t, opened);
    const local = new LocalRows(t);
    const localReader = new SnapshotReader(local.path, (error) => assert.fail(String(error)));
    t.after(() => localReader.close());
    const random = new RandomCommands(11, 2 ** 32 + 1);
    const reads = readsOf(Array.from({ length: 60 }, (_, at) => 2 ** 32 + 1 + at));
    for (let round = 0; round < 4; round++) {
      for (let step = 0; step < 60; step++) {
        const next = random.next();
        // The chunks' numbers differ between the engines.
        if (next !== "purge" && next.command.op === "markDamaged") continue;
        const expected = local.run(next);
        if (next === "purge") await opened.writer.purgeSlice(OWNER, new PurgeCursor());
        else await opened.writer.submit(OWNER, next.command).catch(() => undefined);
        if (next !== "purge") random.learn(expected);
      }
      if (round % 2 === 1) opened.writer.forget();
      for (const [at, read] of reads.entries()) {
        localReader.renew();
        const expected = outcome(() => read(localReader));
        const actual = await reader.read(OWNER, (view) => outcome(() => read(view)));
        assert.deepEqual(actual, expected, `round ${round}, read ${at}: ${String(read)}`);
        if (round === 3 && at % 5 === 0) opened.writer.forget();
      }
    }
  },
);

test(
  "nothing is read without a lease, of a root that is elsewhere, or of one that is not there",
  LONG,
  async (t) => {
    const database = await makeSharedDatabase(t, server);
    const opened = await openWriter(t, database);
    await makeRoot(opened.client);
    await makeRoot(opened.client, "bob@example.com", "two");
    let mayRead = true;
    const reader = openReader(t, opened, () => mayRead);
    const code = (wanted: string) => (error: unknown) => error instanceof GroveError && error.code === wanted;
    assert.equal((await reader.read(OWNER, (view) => view.root(OWNER)))?.owner, OWNER);
    await assert.rejects(
      reader.read("bob@example.com", (view) => view.roots()),
      code("WRONG_NODE"),
    );
    await assert.rejects(
      reader.read("eve@example.com", (view) => view.roots()),
      code("NO_SUCH_PATH"),
    );
    mayRead = false;
    await assert.rejects(
      reader.read(OWNER, (view) => view.root(OWNER)),
      code("STORE_UNAVAILABLE"),
    );
  },
);

test(
  "a warm read asks the database for nothing, and a cold one at a depth of eight twice",
  LONG,
  async (t) => {
    const database = await makeSharedDatabase(t, server);
    const first = await openWriter(t, database);
    let parentId = (await makeRoot(first.client)) * 2 ** 32 + 1;
    const names = ["1", "2", "3", "4", "5", "6", "7", "8"];
    for (const name of names) {
      const made = await first.writer.submit(OWNER, { op: "createDirectory", ...CHANGE, parentId, name });
      parentId = made.inode.id;
    }
    const opened = await openWriter(t, database);
    const reader = openReader(t, opened);
    const resolve = async (): Promise<number> => {
      const { missing } = await reader.read(OWNER, (view) => view.resolve(OWNER, names), names);
      assert.deepEqual(missing, []);
      return opened.fetches();
    };
    const cold = await resolve();
    assert.equal(await resolve(), cold);
    assert.ok(cold <= 2, `${cold} fetches`);
  },
);
