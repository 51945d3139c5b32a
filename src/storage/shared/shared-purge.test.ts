// Tests of the removal of what is detached, root by root, on PostgreSQL.
import assert from "node:assert/strict";
import { test } from "node:test";
import { PurgeCursor } from "#storage/writer/purge-cursor.ts";
import { type PostgresServer, postgresOfFile } from "#testing/postgres-server.ts";
import { CHANGE, directory, makeRoot, openWriter, refusal } from "./both-engines.fixture.ts";
import { OWNER } from "./random-commands.fixture.ts";
import { makeSharedDatabase } from "./shared-database.fixture.ts";

let server: PostgresServer;
const skip = postgresOfFile((started) => {
  server = started;
});
const LONG = { skip, timeout: 120_000 };

test("what several roots have removed is purged, each under its own epoch", LONG, async (t) => {
  const database = await makeSharedDatabase(t, server);
  const { writer, client } = await openWriter(t, database);
  const tops = new Map<string, number>();
  for (const owner of [OWNER, "bob@example.com"])
    tops.set(owner, (await makeRoot(client, owner)) * 2 ** 32 + 1);
  for (const owners of [[...tops.keys()], [...tops.keys()].toReversed()]) {
    for (const owner of owners) {
      const { inode } = await writer.submit(owner, directory(owner, tops.get(owner) ?? 0, "gone"));
      await writer.submit(owner, directory(owner, inode.id, "below"));
      const { op, parentId: _, name: __, ...rest } = directory(owner, 0, "");
      assert.equal(op, "createDirectory");
      await writer.submit(owner, { ...rest, op: "remove", inodeId: inode.id, recursive: true });
    }
    for (const left of [1, 0]) {
      while (await writer.purgeSlice(owners[1 - left] ?? "", new PurgeCursor()));
      const { rows } = await client.query("SELECT count(*) AS left FROM purging");
      assert.deepEqual(rows, [{ left }]);
    }
    const { rows } = await client.query("SELECT count(*) AS count FROM inode");
    assert.deepEqual(rows, [{ count: 2 }]);
  }
});

test("what the database does not let go is passed over, and what is older goes", LONG, async (t) => {
  const database = await makeSharedDatabase(t, server);
  const { writer, client } = await openWriter(t, database);
  const parentId = (await makeRoot(client)) * 2 ** 32 + 1;
  const ids: number[] = [];
  for (const name of ["older", "odd"]) {
    const { inode } = await writer.submit(OWNER, directory(OWNER, parentId, name));
    await writer.submit(OWNER, directory(OWNER, inode.id, "below"));
    await writer.submit(OWNER, { op: "remove", ...CHANGE, inodeId: inode.id, recursive: true });
    ids.push(inode.id);
  }
  await client.query(
    `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'odd'; END $$;
     CREATE TRIGGER odd BEFORE DELETE ON inode FOR EACH ROW WHEN (old.id = ${ids[1]}) EXECUTE FUNCTION refuse()`,
  );
  const cursor = new PurgeCursor();
  let refused = 0;
  for (let goesOn = true; goesOn; ) {
    try {
      const hasGone = await writer.purgeSlice(OWNER, cursor);
      if (hasGone) cursor.removed();
      goesOn = hasGone || cursor.atEnd();
    } catch (error) {
      assert.ok(refusal("INTERNAL")(error), String(error));
      goesOn = ++refused < 10 && cursor.passOver();
    }
  }
  const { rows } = await client.query("SELECT coalesce(inode_id, content_id)::float8 AS id FROM purging");
  assert.deepEqual(rows, [{ id: ids[1] }]);
});
