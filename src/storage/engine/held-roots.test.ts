// Tests of take-overs whose answers are lost, in a real PostgreSQL.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type pg from "pg";
import { systemClock } from "#base/clock.ts";
import { silentLogger } from "#base/log.ts";
import { endInstance, joinInstances } from "#storage/shared/lease-rows.ts";
import { connectShared } from "#storage/shared/shared-connection.ts";
import { makeSharedDatabase } from "#storage/shared/shared-database.fixture.ts";
import { SharedLine } from "#storage/shared/shared-line.ts";
import { type PostgresServer, postgresOfFile } from "#testing/postgres-server.ts";
import { until } from "#testing/until.ts";
import { HeldRoots, type HeldRootsDeps } from "./held-roots.ts";

/** A process "two" that has not begun, and ends with the test. */
function makeRoots(
  t: TestContext,
  { connect, ...parts }: Partial<HeldRootsDeps> & { readonly connect: () => Promise<pg.Client> },
): HeldRoots {
  const line = (): SharedLine => new SharedLine({ connect, clock: systemClock, answerMs: 5_000 });
  const lines = [line(), line()] as const;
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
    changed: () => undefined,
    ended: () => undefined,
    leaseMs: 2_000,
    ...parts,
  });
  t.after(async () => {
    await roots.stop();
    for (const one of lines) one.close();
  });
  return roots;
}

/** Those that take part in a test of taken roots. */
interface Taker {
  readonly client: pg.Client;
  readonly roots: HeldRoots;
  /** What happened to roots, such as "brought ada". */
  readonly seen: string[];
}

/** A process "two" that has not begun, in a database with the roots of ada and bob. */
async function makeTaker(
  t: TestContext,
  holder: string,
  {
    before = "",
    whileBrought,
  }: { before?: string; whileBrought?: (client: pg.Client, owners: readonly string[]) => Promise<void> } = {},
): Promise<Taker> {
  const database = await makeSharedDatabase(t, server);
  const client = await database.connect();
  await joinInstances(client, "one", "a:1");
  for (const owner of ["ada", "bob"]) await client.query("SELECT make_root($1, $1, $2, 5)", [owner, holder]);
  const seen: string[] = [];
  const see = (what: string, roots: readonly { readonly owner: string }[]): void => {
    for (const { owner } of roots) seen.push(`${what} ${owner}`);
  };
  const roots = makeRoots(t, {
    connect: () => connectShared(database.address),
    before,
    taking: async (taken) => {
      see("brought", taken);
      await whileBrought?.(
        client,
        taken.map(({ owner }) => owner),
      );
    },
    left: async (gone) => see("left", gone),
    changed: ({ gained, lost }) => {
      see("lost", lost);
      see("gained", gained);
    },
  });
  return { client, roots, seen };
}

/** Roots by owner, as a take-over tells of them. */
async function holdings(client: pg.Client): Promise<Record<string, { number: number; epoch: number }>> {
  const { rows } = await client.query(
    'SELECT owner, root_number AS "number", epoch FROM holding JOIN root ON number = root_number',
  );
  return Object.fromEntries(
    (rows as { owner: string; number: number; epoch: number }[]).map((row) => [row.owner, row]),
  );
}

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
  const gained: string[] = [];
  const roots = makeRoots(t, {
    connect,
    changed: (change) => gained.push(...change.gained.map(({ owner, epoch }) => `${owner} ${epoch}`)),
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
  const roots = makeRoots(t, { connect, instance: "one" });
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
  // The process that follows the holder of before goes on with the move.
  const whileBrought = async (client: pg.Client): Promise<void> => {
    await client.query("SELECT depart_root('move', 'c:3')");
  };
  const { client, roots, seen } = await makeTaker(t, "one", { before: "one", whileBrought });
  const { ada } = await holdings(client);
  await client.query("SELECT begin_departure('move', $1, 1)", [ada?.number]);
  await client.query("SELECT set_departure('move', 1, 'frozen')");
  await endInstance(client, "one");
  await roots.start();
  assert.deepEqual(seen, ["brought ada", "brought bob", "gained bob", "left ada"]);
  assert.equal(roots.of("ada"), undefined);
});

test("a root that has left already is not brought in, and keeps no other one from that", {
  skip,
  timeout: 60_000,
}, async (t) => {
  const { client, roots, seen } = await makeTaker(t, "two");
  await roots.start();
  const { ada, bob } = await holdings(client);
  assert.ok(ada !== undefined && bob !== undefined);
  await client.query("UPDATE holding SET instance = 'one', epoch = 2 WHERE root_number = $1", [ada.number]);
  await Promise.all([roots.adopt(ada), roots.adopt(bob)]);
  assert.deepEqual(seen, ["brought bob", "gained bob"]);
});

test("roots that come at the same time are brought in once", { skip, timeout: 60_000 }, async (t) => {
  const { client, roots, seen } = await makeTaker(t, "two");
  await roots.start();
  const { ada, bob } = await holdings(client);
  assert.ok(ada !== undefined && bob !== undefined);
  await Promise.all([roots.adopt(ada), roots.adopt(bob), roots.adopt(ada)]);
  assert.deepEqual(seen.toSorted(), ["brought ada", "brought bob", "gained ada", "gained bob"]);
});

test("of a root that comes back after another process had it nothing is known from before", {
  skip,
  timeout: 60_000,
}, async (t) => {
  const { client, roots, seen } = await makeTaker(t, "two");
  await roots.start();
  const { ada } = await holdings(client);
  assert.ok(ada !== undefined);
  await roots.adopt(ada);
  await client.query("UPDATE holding SET epoch = 3 WHERE root_number = $1", [ada.number]);
  await roots.adopt({ ...ada, epoch: 3 });
  const again = ["lost ada", "left ada", "brought ada", "gained ada"];
  assert.deepEqual(seen, ["brought ada", "gained ada", ...again]);
  assert.equal(roots.of("ada")?.epoch, 3);
});

test("a process that died without roots is ended, so that no change of an address waits for it", {
  skip,
  timeout: 60_000,
}, async (t) => {
  const { client, roots } = await makeTaker(t, "two");
  await joinInstances(client, "three", "c:3", 500);
  await roots.start();
  const ended = "SELECT 1 FROM instance WHERE id = 'three' AND is_ended";
  await until(async () => (await client.query(ended)).rows.length === 1, "the process to be ended");
  assert.equal(roots.of("ada"), undefined);
});

test("a change of an address that could not be taken in is taken in by the next try", {
  skip,
  timeout: 60_000,
}, async (t) => {
  let fails = false;
  const whileBrought = (): Promise<void> =>
    fails ? Promise.reject(new Error("no answer")) : Promise.resolve();
  const { client, roots, seen } = await makeTaker(t, "two", { whileBrought });
  await roots.start();
  const { ada, bob } = await holdings(client);
  assert.ok(ada !== undefined && bob !== undefined);
  await Promise.all([roots.adopt(ada), roots.adopt(bob)]);
  await client.query("UPDATE root SET owner = 'eve' WHERE owner = 'ada'");
  seen.length = 0;
  fails = true;
  await assert.rejects(roots.renamed(), /no answer/);
  assert.equal(roots.of("eve"), undefined);
  fails = false;
  await roots.renamed();
  assert.deepEqual(seen, ["brought eve", "brought eve", "lost ada", "gained eve"]);
  assert.equal(roots.of("ada"), undefined);
  assert.equal(roots.of("eve")?.number, ada.number);
});

test("roots of a process that ended are taken though those of many others cannot be", {
  skip,
  timeout: 60_000,
}, async (t) => {
  const database = await makeSharedDatabase(t, server);
  const client = await database.connect();
  const holders = new Map(Array.from({ length: 20 }, (_, number) => [`u${number}`, `dead 1 ${number}`]));
  holders.set("bob", "dead 2");
  for (const [owner, holder] of holders) {
    await joinInstances(client, holder, "a:1");
    await client.query("SELECT make_root($1, $1, $2, 5)", [owner, holder]);
  }
  let failing = true;
  const connect = async (): Promise<pg.Client> => {
    const made = await connectShared(database.address);
    const ask = made.query.bind(made) as (...words: unknown[]) => Promise<unknown>;
    const query = (...words: unknown[]): Promise<unknown> =>
      failing && JSON.stringify(words).includes("dead 1") && String(words[0]).includes("take_roots")
        ? Promise.reject(new Error("its last commit still has its locks"))
        : ask(...words);
    return Object.assign(made, { query });
  };
  const roots = makeRoots(t, { connect });
  await roots.start();
  for (const holder of holders.values()) await endInstance(client, holder);
  await until(() => roots.of("bob") !== undefined, "the root of the last process");
  assert.equal(roots.of("u0"), undefined);
  failing = false;
  for (const owner of holders.keys())
    await until(() => roots.of(owner) !== undefined, `the root of ${owner}`);
});

test("a root that cannot be brought in keeps no other one from being served, and is tried again", {
  skip,
  timeout: 60_000,
}, async (t) => {
  let failing = true;
  const whileBrought = async (_: pg.Client, owners: readonly string[]): Promise<void> => {
    if (failing && owners.includes("ada")) throw new Error("its rows do not come in time");
  };
  const { client, roots, seen } = await makeTaker(t, "one", { whileBrought });
  await roots.start();
  await endInstance(client, "one");
  await until(() => roots.of("bob") !== undefined, "the other root");
  assert.equal(roots.of("ada"), undefined);
  failing = false;
  await until(() => roots.of("ada") !== undefined, "the root itself");
  assert.deepEqual(
    seen.filter((what) => what.startsWith("gained")),
    ["gained bob", "gained ada"],
  );
});

test("nothing is taken while it is not certain that it may be", { skip, timeout: 60_000 }, async (t) => {
  const database = await makeSharedDatabase(t, server);
  const client = await database.connect();
  await joinInstances(client, "one", "a:1");
  await client.query("SELECT make_root('ada', 'ada', 'one', 5)");
  await endInstance(client, "one");
  let mayTake = false;
  const connect = (): Promise<pg.Client> => connectShared(database.address);
  const roots = makeRoots(t, { connect, mayTake: () => mayTake, leaseMs: 60_000 });
  await roots.start();
  const look = async (): Promise<number> => {
    roots.lookAround();
    // Comes behind the look.
    await roots.renamed();
    return roots.count;
  };
  assert.equal(await look(), 0);
  mayTake = true;
  assert.equal(await look(), 1);
});
