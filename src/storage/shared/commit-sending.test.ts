// Tests how groups go to PostgreSQL: by a statement that is prepared once, and with the bytes of their first try.
import assert from "node:assert/strict";
import { test } from "node:test";
import type pg from "pg";
import { type PostgresServer, postgresOfFile } from "#testing/postgres-server.ts";
import { connectShared } from "./shared-connection.ts";
import { content, contents, firstWaiting, hold, makeSharedDatabase } from "./shared-database.fixture.ts";

let server: PostgresServer;
const skip = postgresOfFile((started) => {
  server = started;
});
const LONG = { skip, timeout: 120_000 };

test(
  "a group that is sent again has the bytes of the first time, whatever became of their buffer",
  LONG,
  async (t) => {
    const database = await makeSharedDatabase(t, server);
    const other = await database.connect();
    const root = await hold(other, 1);
    await other.query("BEGIN; LOCK TABLE inline_content");
    const data = Buffer.from("first");
    const done = database
      .client()
      .commit([root], [{ table: "inline_content", gone: [], rows: [{ inode_id: 7, data }] }]);
    const pid = await firstWaiting(server, "Lock");
    data.write("other");
    await other.query("SELECT pg_terminate_backend($1)", [pid]);
    await other.query("COMMIT");
    await done;
    assert.deepEqual(await contents(other), { 7: "first" });
  },
);

test("a connection prepares the statement of its groups once, and keeps its plan", LONG, async (t) => {
  const database = await makeSharedDatabase(t, server);
  const root = await hold(await database.connect(), 1);
  const connections: pg.Client[] = [];
  const connect = async (): Promise<pg.Client> => {
    const made = await connectShared(database.address);
    connections.push(made);
    return made;
  };
  const client = database.client({ connect });
  for (let id = 1; id <= 3; id++) await client.commit([root], [content(id, "small")]);
  const prepared = await connections[0]?.query(
    "SELECT generic_plans + custom_plans AS runs FROM pg_prepared_statements WHERE statement LIKE '%commit_rows%'",
  );
  assert.deepEqual([connections.length, prepared?.rows], [1, [{ runs: 3 }]]);
});
