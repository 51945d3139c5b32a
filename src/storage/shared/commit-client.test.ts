// Tests commits against a real PostgreSQL: guards, lost answers, and a synchronous standby that lags and
// takes over.
import assert from "node:assert/strict";
import { test } from "node:test";
import type pg from "pg";
import { systemClock } from "#base/clock.ts";
import {
  type PostgresServer,
  postgresOfFile,
  startPostgres,
  startSynchronousStandby,
} from "#testing/postgres-server.ts";
import { until } from "#testing/until.ts";
import { ArrivalCommits } from "./arrival-commits.ts";
import { FencedError } from "./commit-client.ts";
import { connectShared } from "./shared-connection.ts";
import {
  addressOf,
  content,
  contents,
  firstWaiting,
  hold,
  makeSharedDatabase,
  waiting,
} from "./shared-database.fixture.ts";
import { SharedLine } from "./shared-line.ts";
import { makeSharedTables } from "./shared-schema.ts";

let server: PostgresServer;
const skip = postgresOfFile((started) => {
  server = started;
});
const LONG = { skip, timeout: 120_000 };

test(
  "a group is in all of its roots or in none: another epoch, batch or holder writes nothing",
  LONG,
  async (t) => {
    const database = await makeSharedDatabase(t, server);
    const other = await database.connect();
    const roots = [await hold(other, 1), await hold(other, 2)];
    const client = database.client();
    await client.commit(roots, [content(7, "first")]);
    assert.deepEqual(
      roots.map(({ batch }) => batch),
      [1, 1],
    );
    await hold(other, 2, 2);
    await assert.rejects(client.commit(roots, [content(8, "second")]), (error) => {
      assert.ok(error instanceof FencedError);
      assert.deepEqual([error.lost, error.isAbsent], [[2], true]);
      return true;
    });
    assert.deepEqual(await contents(other), { 7: "first" });
    // The root that is still held goes on, under the number that the resolution has left.
    await client.commit(roots.slice(0, 1), [content(9, "third")]);
    assert.deepEqual(await contents(other), { 7: "first", 9: "third" });
    const unheld = { number: 3, epoch: 1, batch: 0 };
    await assert.rejects(client.commit([unheld], [content(10, "none")]), FencedError);
  },
);

test("a call that comes late, after the resolution, changes nothing", LONG, async (t) => {
  const database = await makeSharedDatabase(t, server);
  const other = await database.connect();
  await hold(other, 1);
  const resolved = await other.query("SELECT * FROM resolve_group('late', '{1}', '{1}')");
  assert.deepEqual(resolved.rows, [{ root_number: 1, outcome: "absent", last_batch: 1 }]);
  const late = other.query("SELECT commit_group('late', '{1}', '{1}', '{1}', '{}', '{}', '{}')");
  await assert.rejects(late, { code: "40001" });
});

test("a connection that dies before the commit loses nothing and repeats nothing", LONG, async (t) => {
  const database = await makeSharedDatabase(t, server);
  const other = await database.connect();
  const root = await hold(other, 1);
  await other.query("BEGIN; LOCK TABLE inline_content");
  const done = database.client().commit([root], [content(7, "once")]);
  const pid = await firstWaiting(server, "Lock");
  await other.query("SELECT pg_terminate_backend($1)", [pid]);
  await other.query("COMMIT");
  await done;
  assert.deepEqual(await contents(other), { 7: "once" });
  // The number of the first try is used up, so that it could not come after the second.
  assert.equal(root.batch, 2);
});

test("what the database refuses is thrown, once it is certain that nothing was written", LONG, async (t) => {
  const database = await makeSharedDatabase(t, server);
  const other = await database.connect();
  const root = await hold(other, 1);
  const client = database.client();
  const bad = { table: "inline_content", gone: [], rows: [{ inode_id: 1, data: null }] };
  await assert.rejects(client.commit([root], [content(6, "with it"), bad]), { code: "23502" });
  await client.commit([root], [content(7, "after")]);
  assert.deepEqual(await contents(other), { 7: "after" });
});

test(
  "a name may go from one row to another within a group, and two rows may change names",
  LONG,
  async (t) => {
    const database = await makeSharedDatabase(t, server);
    const other = await database.connect();
    const root = await hold(other, 1);
    const client = database.client();
    const inode = (id: number, name: string): object => ({ ...EMPTY_INODE, id, parent_id: 1, name });
    await client.commit([root], [{ table: "inode", gone: [], rows: [inode(2, "a"), inode(3, "b")] }]);
    await client.commit([root], [{ table: "inode", gone: [], rows: [inode(2, "b"), inode(3, "a")] }]);
    await client.commit([root], [{ table: "inode", gone: [{ id: 2 }], rows: [inode(4, "b")] }]);
    const { rows } = await other.query("SELECT id, name FROM inode ORDER BY id");
    assert.deepEqual(rows, [
      { id: 3, name: "a" },
      { id: 4, name: "b" },
    ]);
    const taken = { table: "inode", gone: [], rows: [inode(5, "b")] };
    await assert.rejects(client.commit([root], [taken]), { code: "23505" });
  },
);

test(
  "a database of before gets the function of now, and nodes of before commit by theirs",
  LONG,
  async (t) => {
    const database = await makeSharedDatabase(t, server);
    const other = await database.connect();
    const root = await hold(other, 1);
    await other.query(
      "DROP FUNCTION commit_rows(TEXT, BIGINT[], BIGINT[], BIGINT[], TEXT[], INTEGER[], BIGINT[], TEXT[], BYTEA[])",
    );
    await makeSharedTables(other, database.address.schema);
    await database.client().commit([root], [content(7, "now")]);
    const rows = JSON.stringify([{ inode_id: 8, data: "\\x6f6c64" }]);
    await other.query(
      "SELECT commit_group('old', '{1}', '{1}', '{2}', '{inline_content}', $1::json[], $2::json[])",
      [[null], [rows]],
    );
    assert.deepEqual(await contents(other), { 7: "now", 8: "old" });
  },
);

test("in a database of before, no epoch of an arrival comes twice from now on", LONG, async (t) => {
  const database = await makeSharedDatabase(t, server);
  const other = await database.connect();
  await other.query(`
    DROP SEQUENCE arrival_epoch; DROP FUNCTION begin_departure(TEXT, BIGINT, BIGINT, BIGINT);
    INSERT INTO arrival (move_id, number, owner, state, head, instance, epoch, last_batch)
      VALUES ('m', 9, 'ada', 'arriving', '', 'old', 7, 0)`);
  // Each start looks for what is missing.
  for (let start = 0; start < 2; start++) await makeSharedTables(other, database.address.schema);
  const connect = (): Promise<pg.Client> => connectShared(database.address);
  const line = new SharedLine({ connect, clock: systemClock, answerMs: 30_000 });
  t.after(() => line.close());
  const arrivals = new ArrivalCommits(line, "new");
  const epochs = [7];
  for (let take = 0; take < 3; take++) {
    epochs.push((await arrivals.take("m"))[0]?.epoch ?? 0);
    const before = await other.query("UPDATE arrival SET epoch = epoch + 1 RETURNING epoch");
    epochs.push((before.rows[0] as { epoch: number }).epoch);
  }
  assert.deepEqual(
    epochs,
    [...new Set(epochs)].toSorted((a, b) => a - b),
  );
});

test("values of every type come as they were sent, those that are missing included", LONG, async (t) => {
  const database = await makeSharedDatabase(t, server);
  const other = await database.connect();
  const root = await hold(other, 1);
  const numbers = [0, -1, 2 ** 32, -(2 ** 32) - 1, Number.MAX_SAFE_INTEGER, -Number.MAX_SAFE_INTEGER];
  const fresh = numbers.map((size, at) => ({
    ...EMPTY_INODE,
    id: at + 2,
    parent_id: at === 0 ? null : 1,
    name: ["", "{}", "NULL", 'a "quoted" \\ one', "\u{1f333} ä", ","][at],
    size,
    created_by: at % 2 === 0 ? null : "ada@example.com",
  }));
  const bytes = Buffer.from(Array.from({ length: 256 }, (_, at) => at));
  const small = [bytes, Buffer.alloc(0), Buffer.alloc(65_536, 0xff)];
  await database.client().commit(
    [root],
    [
      { table: "inode", gone: [], fresh, rows: [] },
      {
        table: "inline_content",
        gone: [{ inode_id: 9 }],
        fresh: small.slice(1).map((data, at) => ({ inode_id: at + 3, data })),
        rows: [{ inode_id: 2, data: bytes }],
      },
    ],
  );
  const inodes = await other.query("SELECT id, parent_id, name, size, created_by FROM inode ORDER BY id");
  assert.deepEqual(
    inodes.rows,
    fresh.map(({ id, parent_id, name, size, created_by }) => ({ id, parent_id, name, size, created_by })),
  );
  const { rows } = await other.query("SELECT data FROM inline_content ORDER BY inode_id");
  assert.deepEqual(
    (rows as { data: Buffer }[]).map(({ data }) => data),
    small,
  );
  const again = { table: "inode", gone: [], fresh: fresh.slice(0, 1), rows: [] };
  await assert.rejects(database.client().commit([root], [again]), { code: "23505" });
});

test("a server that would answer too early, and a standby, are not used", LONG, async (t) => {
  const database = await makeSharedDatabase(t, server);
  for (const [setting, problem] of [
    ["synchronous_commit=local", /synchronous_commit is local/],
    ["default_transaction_read_only=on", /standby/],
    ["default_transaction_isolation=serializable", /serializable/],
  ] as const) {
    const config = { ...database.address.config, options: `-c ${setting}` };
    await assert.rejects(connectShared({ ...database.address, config }), problem);
  }
});

test(
  "no statement is compiled, whatever the server is set to: with large tables that took seconds each",
  LONG,
  async (t) => {
    const database = await makeSharedDatabase(t, server);
    const config = { ...database.address.config, options: "-c jit=on -c jit_above_cost=0" };
    const client = await connectShared({ ...database.address, config });
    t.after(() => client.end());
    const { rows } = await client.query(
      "EXPLAIN (ANALYZE, FORMAT JSON) SELECT id FROM inode WHERE id = ANY ('{1,2}')",
    );
    const [plan] = (rows[0] as { "QUERY PLAN": object[] })["QUERY PLAN"];
    assert.ok(plan !== undefined && !("JIT" in plan), JSON.stringify(plan));
  },
);

const EMPTY_INODE = {
  kind: 0,
  size: 0,
  crc32: 0,
  version: 1,
  mtime_ms: 0,
  ctime_ms: 0,
  flags: 0,
  child_count: 0,
  tree_inodes: 0,
  tree_files: 0,
  height: 0,
};

test(
  "with a synchronous standby an answer means both have it, however the first one was lost",
  LONG,
  async (t) => {
    const ownEnds: (() => Promise<void>)[] = [];
    t.after(async () => {
      for (const end of ownEnds.toReversed()) await end();
    });
    const primary = await startPostgres((end) => ownEnds.push(end));
    const database = await makeSharedDatabase(t, primary);
    const other = await database.connect();
    const roots = [await hold(other, 1), await hold(other, 2), await hold(other, 3), await hold(other, 4)];
    const [one, two, three, four] = roots as [
      (typeof roots)[0],
      (typeof roots)[0],
      (typeof roots)[0],
      (typeof roots)[0],
    ];
    const standby = await startSynchronousStandby(primary, (end) => ownEnds.push(end));
    const read = await connectShared(database.address);
    t.after(() => read.end());
    const batchOf = async (client: pg.Client, number: number): Promise<number> => {
      const { rows } = await client.query("SELECT last_batch AS batch FROM holding WHERE root_number = $1", [
        number,
      ]);
      return (rows[0] as { batch: number }).batch;
    };
    const state = (promise: Promise<void>): (() => string) => {
      let text = "waits";
      promise.then(
        () => (text = "done"),
        (error: unknown) => (text = String(error)),
      );
      return () => text;
    };

    await t.test("an answer waits for the standby, and until then others read the old batch", async () => {
      standby.signal("SIGSTOP");
      const done = database.client().commit([one], [content(1, "one")]);
      const is = state(done);
      await firstWaiting(primary, "SyncRep");
      assert.equal(await batchOf(read, 1), 0);
      // Who reads under the lock waits for the one that waits for the standby.
      await read.query("SET lock_timeout TO '300ms'");
      await assert.rejects(read.query("SELECT 1 FROM holding WHERE root_number = 1 FOR UPDATE"), {
        code: "55P03",
      });
      await read.query("RESET lock_timeout");
      assert.equal(is(), "waits");
      standby.signal("SIGCONT");
      await done;
      assert.equal(await batchOf(read, 1), 1);
    });

    await t.test(
      "a commit that the server has stopped waiting for is acknowledged with the standby's own answer",
      async () => {
        standby.signal("SIGSTOP");
        const done = database.client().commit([two], [content(2, "two")]);
        const is = state(done);
        const pid = await firstWaiting(primary, "SyncRep");
        // Its call returns as if all was well, with a warning only.
        await read.query("SELECT pg_cancel_backend($1)", [pid]);
        await until(async () => (await waiting(primary, "SyncRep")).some((other) => other !== pid));
        assert.equal(is(), "waits");
        standby.signal("SIGCONT");
        await done;
        assert.equal(two.batch, await batchOf(read, 2));
      },
    );

    await t.test("a connection that ends while it waits has committed once", async () => {
      standby.signal("SIGSTOP");
      const done = database.client().commit([three], [content(3, "three")]);
      const is = state(done);
      const pid = await firstWaiting(primary, "SyncRep");
      await read.query("SELECT pg_terminate_backend($1)", [pid]);
      await until(async () => (await waiting(primary, "SyncRep")).some((other) => other !== pid));
      assert.equal(is(), "waits");
      standby.signal("SIGCONT");
      await done;
      assert.equal(three.batch, await batchOf(read, 3));
      assert.deepEqual(await contents(read), { 1: "one", 2: "two", 3: "three" });
    });

    await t.test(
      "after a silent answer the client asks on another connection, which waits for the first",
      async () => {
        standby.signal("SIGSTOP");
        const done = database.client({ answerMs: 500 }).commit([one], [content(4, "four")]);
        const is = state(done);
        await firstWaiting(primary, "SyncRep");
        await firstWaiting(primary, "Lock");
        assert.equal(is(), "waits");
        standby.signal("SIGCONT");
        await done;
        assert.equal(one.batch, await batchOf(read, 1));
      },
    );

    await t.test(
      "when the primary dies, the promoted standby knows what was acknowledged, and the client goes on",
      async () => {
        let isPromoted = false;
        const client = database.client({
          connect: () => connectShared(isPromoted ? addressOf(standby, database.name) : database.address),
        });
        await client.commit([four], [content(5, "before")]);
        standby.signal("SIGSTOP");
        const done = client.commit([four], [content(6, "during")]);
        const is = state(done);
        await firstWaiting(primary, "SyncRep");
        await primary.stop("immediate");
        assert.equal(is(), "waits");
        standby.signal("SIGCONT");
        await standby.sql("postgres", "SELECT pg_promote()");
        isPromoted = true;
        await done;
        const promoted = await connectShared(addressOf(standby, database.name));
        assert.equal(four.batch, await batchOf(promoted, 4));
        const found = await contents(promoted);
        assert.deepEqual([found["5"], found["6"]], ["before", "during"]);
        await promoted.end();
      },
    );
  },
);
