// Tests how often commands wait for rows: a directory is fetched as a whole once names of it were asked for.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { type PostgresServer, postgresOfFile } from "#testing/postgres-server.ts";
import { CHANGE, makeRoot, openWriter } from "./both-engines.fixture.ts";
import { OWNER } from "./random-commands.fixture.ts";
import { makeSharedDatabase } from "./shared-database.fixture.ts";
import { SharedReader } from "./shared-reader.ts";

let server: PostgresServer;
const skip = postgresOfFile((started) => {
  server = started;
});
const LONG = { skip, timeout: 120_000 };

/** A root with so many files in its directory, and a process that has fetched the directory's own row. */
async function openAfter(t: TestContext, files: number) {
  const database = await makeSharedDatabase(t, server);
  const before = await openWriter(t, database);
  const parentId = (await makeRoot(before.client)) * 2 ** 32 + 1;
  const command = { op: "createFile", ...CHANGE, parentId, data: Buffer.from("1"), mtimeMs: 0 } as const;
  for (let at = 0; at < files; at++) await before.writer.submit(OWNER, { ...command, name: `old-${at}` });
  const opened = await openWriter(t, database);
  await opened.writer.know(OWNER, { kind: "inode", id: parentId });
  let last = opened.fetches();
  return {
    ...opened,
    /** Makes a file, and tells how many fetches there were since the last one. */
    async create(name: string): Promise<number> {
      await opened.writer.submit(OWNER, { ...command, name });
      const fetches = opened.fetches() - last;
      last += fetches;
      return fetches;
    },
  };
}

test("a second file in a small folder waits for no rows", LONG, async (t) => {
  const { create } = await openAfter(t, 32);
  assert.deepEqual([await create("a"), await create("b"), await create("c")], [1, 0, 0]);
  await assert.rejects(create("old-31"), { code: "PATH_EXISTS" });
});

test(
  "a larger folder is fetched as a whole after as many names as its entries are worth",
  LONG,
  async (t) => {
    const { create } = await openAfter(t, 66);
    const taken: number[] = [];
    for (const name of ["a", "b", "c", "d"]) taken.push(await create(name));
    assert.deepEqual(taken, [1, 1, 1, 0]);
  },
);

test("a path that was read and is not there to its end is made without another fetch", LONG, async (t) => {
  const { cache, writer, create } = await openAfter(t, 100);
  const reader = new SharedReader({ cache, writer, mayRead: () => true });
  t.after(() => reader.close());
  const { missing } = await reader.read(OWNER, (view) => view.resolve(OWNER, ["new"]), ["new"]);
  assert.deepEqual(missing, ["new"]);
  assert.equal(await create("new"), 1, "besides the fetch of the read");
});
