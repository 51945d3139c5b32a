// Tests of take-overs whose answers are lost, in a real PostgreSQL.
import assert from "node:assert/strict";
import { test } from "node:test";
import type pg from "pg";
import { systemClock } from "#base/clock.ts";
import { silentLogger } from "#base/log.ts";
import { endInstance, joinInstances } from "#storage/shared/lease-rows.ts";
import { connectShared } from "#storage/shared/shared-connection.ts";
import { makeSharedDatabase } from "#storage/shared/shared-database.fixture.ts";
import { SharedLine } from "#storage/shared/shared-line.ts";
import { type PostgresServer, postgresOfFile } from "#testing/postgres-server.ts";
import { until } from "#testing/until.ts";
import { HeldRoots } from "./held-roots.ts";

let server: PostgresServer;
const skip = postgresOfFile((started) => {
  server = started;
});

test("roots are served whose take-over was made and not answered", { skip, timeout: 60_000 }, async (t) => {
  const database = await makeSharedDatabase(t, server);
  const client = await database.connect();
  await joinInstances(client, "one", "a:1");
  for (const owner of ["ada", "bob"]) await client.query("SELECT make_root($1, $1, 'one', 5)", [owner]);
  let lost = 0;
  const connect = async (): Promise<pg.Client> => {
    const made = await connectShared(database.address);
    const ask = made.query.bind(made) as (...words: unknown[]) => Promise<unknown>;
    const query = async (...words: unknown[]): Promise<unknown> => {
      const answer = await ask(...words);
      if (!String(words[0]).includes("take_roots") || lost > 0) return answer;
      lost++;
      await made.end();
      throw new Error("Connection terminated unexpectedly");
    };
    return Object.assign(made, { query });
  };
  const line = (): SharedLine => new SharedLine({ connect, clock: systemClock, answerMs: 5_000 });
  const lines = [line(), line()] as const;
  const gained: string[] = [];
  const roots = new HeldRoots({
    instance: "two",
    before: "",
    address: "b:2",
    line: lines[0],
    leaseLine: lines[1],
    clock: systemClock,
    fraction: () => 0,
    logger: silentLogger,
    taking: () => Promise.resolve(),
    left: () => Promise.resolve(),
    changed: (change) => gained.push(...change.gained.map(({ owner, epoch }) => `${owner} ${epoch}`)),
    ended: () => undefined,
    leaseMs: 2_000,
  });
  t.after(async () => {
    await roots.stop();
    for (const one of lines) one.close();
  });
  await roots.start();
  await endInstance(client, "one");
  await until(() => gained.length > 0, "the roots to be served");
  assert.equal(lost, 1);
  assert.deepEqual(gained, ["ada 2", "bob 2"]);
  assert.equal(roots.of("ada")?.epoch, 2);
});

test("a process that ends says so again when its first word was lost", {
  skip,
  timeout: 60_000,
}, async (t) => {
  const database = await makeSharedDatabase(t, server);
  const client = await database.connect();
  let lost = 0;
  const connect = async (): Promise<pg.Client> => {
    const made = await connectShared(database.address);
    const ask = made.query.bind(made) as (...words: unknown[]) => Promise<unknown>;
    const query = async (...words: unknown[]): Promise<unknown> => {
      if (!/is_ended = TRUE/.test(String(words[0])) || lost > 1) return ask(...words);
      lost++;
      await made.end();
      throw new Error("Connection terminated unexpectedly");
    };
    return Object.assign(made, { query });
  };
  const line = (): SharedLine => new SharedLine({ connect, clock: systemClock, answerMs: 5_000 });
  const lines = [line(), line()] as const;
  t.after(() => {
    for (const one of lines) one.close();
  });
  const roots = new HeldRoots({
    instance: "one",
    before: "",
    address: "a:1",
    line: lines[0],
    leaseLine: lines[1],
    clock: systemClock,
    fraction: () => 0,
    logger: silentLogger,
    taking: () => Promise.resolve(),
    left: () => Promise.resolve(),
    changed: () => undefined,
    ended: () => undefined,
  });
  await roots.start();
  await roots.stop();
  assert.equal(lost, 2);
  const { rows } = await client.query("SELECT id, is_ended FROM instance");
  assert.deepEqual(rows, [{ id: "one", is_ended: true }]);
});

test("a root that leaves for another node while its taker brings it in is not served there", {
  skip,
  timeout: 60_000,
}, async (t) => {
  const database = await makeSharedDatabase(t, server);
  const client = await database.connect();
  await joinInstances(client, "one", "a:1");
  for (const owner of ["ada", "bob"]) await client.query("SELECT make_root($1, $1, 'one', 5)", [owner]);
  const { rows } = await client.query("SELECT number FROM root WHERE owner = 'ada'");
  const [{ number }] = rows as [{ number: number }];
  await client.query("SELECT begin_departure('move', $1, 1)", [number]);
  await client.query("SELECT set_departure('move', 1, 'frozen')");
  await endInstance(client, "one");
  const connect = (): Promise<pg.Client> => connectShared(database.address);
  const line = (): SharedLine => new SharedLine({ connect, clock: systemClock, answerMs: 5_000 });
  const lines = [line(), line()] as const;
  const [gained, left]: [string[], string[]] = [[], []];
  const roots = new HeldRoots({
    instance: "two",
    before: "one",
    address: "b:2",
    line: lines[0],
    leaseLine: lines[1],
    clock: systemClock,
    fraction: () => 0,
    logger: silentLogger,
    // The process that follows the holder of before goes on with the move.
    taking: async () => {
      await client.query("SELECT depart_root('move', 'c:3')");
    },
    left: async (gone) => {
      left.push(...gone.map(({ owner }) => owner));
    },
    changed: (change) => gained.push(...change.gained.map(({ owner }) => owner)),
    ended: () => undefined,
    leaseMs: 2_000,
  });
  t.after(async () => {
    await roots.stop();
    for (const one of lines) one.close();
  });
  await roots.start();
  assert.deepEqual(gained, ["bob"]);
  assert.deepEqual(left, ["ada"]);
  assert.equal(roots.of("ada"), undefined);
});

test("roots that come at the same time are brought in once", {
  skip,
  timeout: 60_000,
}, async (t) => {
  const database = await makeSharedDatabase(t, server);
  const client = await database.connect();
  const connect = (): Promise<pg.Client> => connectShared(database.address);
  const line = (): SharedLine => new SharedLine({ connect, clock: systemClock, answerMs: 5_000 });
  const lines = [line(), line()] as const;
  const brought: string[] = [];
  const roots = new HeldRoots({
    instance: "two",
    before: "",
    address: "b:2",
    line: lines[0],
    leaseLine: lines[1],
    clock: systemClock,
    fraction: () => 0,
    logger: silentLogger,
    taking: async (taken) => {
      brought.push(taken.map(({ owner }) => owner).join());
    },
    left: () => Promise.resolve(),
    changed: () => undefined,
    ended: () => undefined,
    leaseMs: 2_000,
  });
  t.after(async () => {
    await roots.stop();
    for (const one of lines) one.close();
  });
  await roots.start();
  for (const owner of ["ada", "bob"]) await client.query("SELECT make_root($1, $1, 'two', 5)", [owner]);
  const { rows } = await client.query('SELECT root_number AS "number", epoch FROM holding ORDER BY 1');
  await Promise.all((rows as { number: number; epoch: number }[]).map((taken) => roots.adopt(taken)));
  assert.equal(brought.join(), "ada,bob");
  assert.notEqual(roots.of("ada"), undefined);
  assert.notEqual(roots.of("bob"), undefined);
});
