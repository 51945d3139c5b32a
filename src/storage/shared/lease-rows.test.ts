// Tests leases and take-overs in a real PostgreSQL.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type PostgresServer, postgresOfFile } from "#testing/postgres-server.ts";
import { FencedError } from "./commit-client.ts";
import {
  endInstance,
  holderOf,
  joinInstances,
  renewInstance,
  rootsOf,
  runningInstances,
  takeRoots,
} from "./lease-rows.ts";
import { content, contents, makeSharedDatabase } from "./shared-database.fixture.ts";

let server: PostgresServer;
const skip = postgresOfFile((started) => {
  server = started;
});
const LONG = { skip, timeout: 120_000 };

test(
  "roots go from a process whose number stands still to one that runs, and its lease ends with it",
  LONG,
  async (t) => {
    const database = await makeSharedDatabase(t, server);
    const client = await database.connect();
    await joinInstances(client, "one", "a:1");
    await joinInstances(client, "two", "b:2");
    for (const owner of ["ada", "bob", "eve"])
      await client.query("SELECT make_root($1, $1, 'one', 5)", [owner]);
    assert.deepEqual(await rootsOf(client, "one", 2), [1, 2]);
    assert.equal(await renewInstance(client, "one"), true);
    const [one] = await runningInstances(client);
    assert.deepEqual(one, { id: "one", beat: 2, leaseMs: 10_000 });
    const take = { by: "two", from: { id: "one", beat: 1 }, roots: [1, 2] };
    // It has moved since that number was seen.
    assert.deepEqual(await takeRoots(client, take), []);
    const holder = { number: 1, id: "one", beat: 2, address: "a:1", isEnded: false };
    assert.deepEqual(await holderOf(client, "ada"), holder);
    await client.query("INSERT INTO staging VALUES ($1, 1), ($2, 3)", [2 ** 32 + 5, 3 * 2 ** 32 + 5]);
    await client.query("INSERT INTO copying VALUES ($1)", [2 * 2 ** 32 + 7]);
    const taken = await takeRoots(client, { ...take, from: { id: "one", beat: 2 } });
    assert.deepEqual(taken, [
      { number: 1, epoch: 2, batch: 0 },
      { number: 2, epoch: 2, batch: 0 },
    ]);
    assert.equal(await renewInstance(client, "one"), false);
    assert.equal((await holderOf(client, "eve"))?.isEnded, true);
    // The new holder purges what was left unfinished, and only in the roots that it took.
    const { rows } = await client.query("SELECT inode_id, content_id FROM purging ORDER BY content_id");
    assert.deepEqual(rows, [
      { inode_id: null, content_id: 2 ** 32 + 5 },
      { inode_id: 2 * 2 ** 32 + 7, content_id: null },
    ]);
    // The rest comes later, from whom has ended, whatever the number.
    const rest = await takeRoots(client, { by: "two", from: { id: "one", beat: 0 }, roots: [1, 2, 3] });
    assert.deepEqual(rest, [{ number: 3, epoch: 2, batch: 0 }]);
    // Who has ended itself takes nothing.
    await endInstance(client, "two");
    await joinInstances(client, "three", "c:3");
    assert.deepEqual(await takeRoots(client, { by: "one", from: { id: "two", beat: 1 }, roots: [1] }), []);
    assert.equal(
      (await takeRoots(client, { by: "three", from: { id: "two", beat: 9 }, roots: [1] })).length,
      1,
    );
  },
);

test(
  "a process that was taken over commits nothing, and learns what of it was committed before",
  LONG,
  async (t) => {
    const database = await makeSharedDatabase(t, server);
    const client = await database.connect();
    await joinInstances(client, "one", "a:1");
    await joinInstances(client, "two", "b:2");
    await client.query("SELECT make_root('ada', 'ada', 'one', 5)");
    const held = { number: 1, epoch: 1, batch: 0 };
    const commits = database.client();
    await commits.commit([held], [content(2 ** 32 + 2, "before")]);
    // A commit whose answer is lost, and a take-over before anyone asks.
    await client.query("SELECT commit_group('lost', '{1}', '{1}', '{2}', '{}', '{}', '{}')");
    await takeRoots(client, { by: "two", from: { id: "one", beat: 1 }, roots: [1] });
    const asked = await client.query("SELECT outcome FROM resolve_group('lost', '{1}', '{1}')");
    assert.deepEqual(asked.rows, [{ outcome: "committed" }]);
    const other = await client.query("SELECT outcome FROM resolve_group('other', '{1}', '{1}')");
    assert.deepEqual(other.rows, [{ outcome: "fenced" }]);
    await assert.rejects(commits.commit([held], [content(2 ** 32 + 3, "late")]), (error) => {
      assert.ok(error instanceof FencedError);
      assert.deepEqual([error.lost, error.isAbsent], [[1], true]);
      return true;
    });
    await joinInstances(client, "three", "c:3");
    await takeRoots(client, { by: "three", from: { id: "two", beat: 1 }, roots: [1] });
    const unknown = await client.query("SELECT outcome FROM resolve_group('lost', '{1}', '{1}')");
    assert.deepEqual(unknown.rows, [{ outcome: "unknown" }]);
    assert.deepEqual(await contents(client), { [2 ** 32 + 2]: "before" });
  },
);
