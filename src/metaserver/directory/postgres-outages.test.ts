// The store in PostgreSQL under every kind of failure of its database (M-09).
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, type TestContext, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { inspect } from "node:util";
import pg from "pg";
import { ManualClock } from "#base/clock.ts";
import { type ErrorCode, isGroveError } from "#base/errors.ts";
import { type PostgresServer, postgresOfFile } from "#testing/postgres-server.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import type { Directory, StoreState } from "./directory.ts";
import { openDirectory } from "./open-directory.ts";
import { beat, refused, registration } from "./store-under-test.fixture.ts";

let server: PostgresServer;
const skip = postgresOfFile(
  (started) => {
    server = started;
  },
  { maxConnections: 25 },
);
const LONG = { skip, timeout: 90_000 };
const clock = new ManualClock();
let database: string;

beforeEach(async () => {
  if (skip !== false) return;
  await server.start();
  database = await server.createDatabase();
});

async function open(t: TestContext, url = server.url(database), clusterId?: string): Promise<Directory> {
  const directory = await openDirectory(url, { clock, clusterId });
  t.after(() => directory.close());
  return directory;
}

/** Over TCP, where the password counts. */
const tcpUrl = (password: string): string =>
  `postgres://grove:${encodeURIComponent(password)}@127.0.0.1:${server.port}/${database}`;

/** Repeats a call until it is answered, as clients do; anything but UNAVAILABLE fails the test. */
async function eventually<T>(call: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      assert.ok(isGroveError(error, "STORE_UNAVAILABLE", "OVERLOADED"), inspect(error));
      await delay(50);
    }
  }
}

/** A connection of another program. */
async function connect(t: TestContext): Promise<pg.Client> {
  const client = new pg.Client({ host: server.socketFolder, port: server.port, user: "grove", database });
  client.on("error", () => undefined);
  await client.connect();
  t.after(() => client.end());
  return client;
}

function statesOf(t: TestContext, directory: Directory): StoreState[] {
  const states: StoreState[] = [];
  t.after(directory.watch((state) => states.push(state)));
  return states;
}

test(
  "after ten restarts and crashes of the database under load every answer is right, and it goes on by itself",
  LONG,
  async (t) => {
    const directory = await open(t);
    const { clusterId } = await directory.register(registration("a"));
    const places = new Map<string, string>();
    const over = new AbortController();
    let answers = 0;
    const load = Promise.all(
      Array.from({ length: 8 }, async (_, lane) => {
        for (let round = 0; !over.signal.aborted; round++) {
          const owner = `u${lane}-${round % 40}@example.com`;
          const { rootId } = await eventually(() => directory.locateRoot(owner));
          // What was answered once stays so: nothing acknowledged is lost with the server.
          assert.equal(places.get(owner) ?? rootId, rootId, owner);
          places.set(owner, rootId);
          answers++;
          await eventually(() => directory.heartbeat(beat("a", 1)));
        }
      }),
    );
    for (let cycle = 0; cycle < 10; cycle++) {
      await delay(150);
      await server.stop(cycle % 2 === 0 ? "immediate" : "fast");
      await server.start();
    }
    over.abort();
    await load;
    assert.equal(await eventually(() => directory.clusterId()), clusterId);
  },
);

test(
  "a database that is gone is UNAVAILABLE with a reason, its state is told, and its return is noticed unasked",
  LONG,
  async (t) => {
    const directory = await open(t, tcpUrl(server.password));
    const states = statesOf(t, directory);
    await server.stop();
    await assert.rejects(eventuallyRefused(directory), (error) => {
      assert.ok(isGroveError(error, "STORE_UNAVAILABLE"));
      assert.match(
        error.message,
        /127\.0\.0\.1:\d+ cannot be reached: ECONNREFUSED|is shutting down|broke the connection/,
      );
      return true;
    });
    await server.start();
    // Without a call; it checks by itself.
    while (states.at(-1)?.available !== true) await delay(50);
    assert.ok(states.some(({ available }) => !available));
    assert.equal(await directory.clusterId(), undefined);
  },
);

async function eventuallyRefused(directory: Directory): Promise<never> {
  for (;;) await directory.clusterId();
}

test("a MetaServer that starts before its database waits for it", LONG, async (t) => {
  await server.stop();
  const directory = await open(t);
  await refused("STORE_UNAVAILABLE", directory.clusterId());
  await server.start();
  assert.equal((await eventually(() => directory.register(registration("a")))).epoch, 1);
});

test(
  "a database that has fallen asleep keeps calls no longer than their time, and nothing wrong comes of it",
  LONG,
  async (t) => {
    const directory = await open(t);
    await directory.register(registration("a"));
    await Promise.all(Array.from({ length: 20 }, (_, n) => directory.locateRoot(`u${n}@example.com`)));
    server.signal("SIGSTOP");
    t.after(() => server.signal("SIGCONT"));
    const outcomes = await Promise.allSettled(
      Array.from({ length: 40 }, (_, n) => directory.locateRoot(`u${n}@example.com`)),
    );
    for (const outcome of outcomes) {
      assert.equal(outcome.status, "rejected");
      assert.ok(isGroveError(outcome.reason, "STORE_UNAVAILABLE", "OVERLOADED"), String(outcome.reason));
    }
    server.signal("SIGCONT");
    const roots = await Promise.all(
      Array.from({ length: 40 }, (_, n) => eventually(() => directory.locateRoot(`u${n}@example.com`))),
    );
    assert.equal(new Set(roots.map(({ rootId }) => rootId)).size, 40);
    assert.equal((await directory.nodes())[0]?.rootCount, 40);
  },
);

test(
  "a lock that somebody keeps is UNAVAILABLE for what needs it, while everything else is answered",
  LONG,
  async (t) => {
    const directory = await open(t);
    await directory.register(registration("a"));
    const root = await directory.locateRoot("u@example.com");
    const holder = await connect(t);
    await holder.query("BEGIN; SELECT value FROM grove.settings WHERE key = 'mutex' FOR UPDATE");
    await assert.rejects(directory.locateRoot("new@example.com"), /did not answer in time/);
    assert.deepEqual(await directory.locateRoot("u@example.com"), root);
    await directory.heartbeat(beat("a", 1));
    await holder.query("COMMIT");
    assert.ok((await eventually(() => directory.locateRoot("new@example.com"))).rootId);
  },
);

test("a store whose tables somebody keeps locked is not told as one that answers", LONG, async (t) => {
  await open(t);
  const holder = await connect(t);
  await holder.query("BEGIN; LOCK TABLE grove.schema_version IN ACCESS EXCLUSIVE MODE");
  const later = await openDirectory(server.url(database), { clock });
  t.after(() => later.close());
  const states = statesOf(t, later);
  await assert.rejects(later.nodes(), /another process holds a lock/);
  assert.equal(states.at(-1)?.available, false);
  await holder.query("COMMIT");
  assert.deepEqual(await eventually(() => later.nodes()), []);
});

test(
  "a MetaServer that is cut off in the middle of a transaction keeps the others waiting a few seconds at most",
  LONG,
  async (t) => {
    const directory = await open(t);
    await directory.register(registration("a"));
    // Another process with the settings of a MetaServer, which holds the lock and falls silent.
    const gone = await connect(t);
    await gone.query("SET idle_in_transaction_session_timeout TO 3000");
    await gone.query("BEGIN; SELECT value FROM grove.settings WHERE key = 'mutex' FOR UPDATE");
    assert.ok((await eventually(() => directory.locateRoot("u@example.com"))).rootId);
  },
);

test(
  "more connections than the server takes: UNAVAILABLE with that reason, and better when there is room",
  LONG,
  async (t) => {
    const crowd: pg.Client[] = [];
    const isFull = async (): Promise<boolean> =>
      connect(t).then(
        (client) => crowd.push(client) < 0,
        () => true,
      );
    while (!(await isFull()));
    const directory = await open(t);
    await assert.rejects(directory.clusterId(), (error) => {
      assert.ok(isGroveError(error, "STORE_UNAVAILABLE"), inspect(error));
      assert.match(error.message, /takes no more connections/);
      return true;
    });
    await Promise.all(crowd.slice(0, 3).map((client) => client.end()));
    assert.equal((await eventually(() => directory.register(registration("a")))).epoch, 1);
  },
);

test(
  "a wrong password, a database or user that is not there end the start with a sentence that holds no secret",
  LONG,
  async () => {
    const at = `127.0.0.1:${server.port}`;
    for (const [url, sentence] of [
      [tcpUrl("wrong s3cret"), /refused the password/],
      [`postgres://nobody:s3cret@${at}/${database}`, /refused the password/],
      [`postgres://grove:${encodeURIComponent(server.password)}@${at}/none`, /does not have that database/],
      [`postgres://grove@${at}/${database}`, /asks for a password, and none was given/],
    ] as const) {
      await assert.rejects(openDirectory(url, { clock }), (error) => {
        assert.ok(isGroveError(error, "STORE_UNAVAILABLE", "BAD_ARGUMENT"), inspect(error));
        assert.match(error.message, sentence);
        const all = inspect(error, { depth: 20, showHidden: true });
        assert.ok(!all.includes("s3cret") && !all.includes(server.password), all);
        return true;
      });
    }
  },
);

test("a password that changes while it runs is refused until PGPASSFILE has the new one", LONG, async (t) => {
  const path = join(server.socketFolder, "pgpass");
  const write = (password: string): Promise<void> =>
    writeFile(path, `*:*:*:grove_changing:${password}\n`, { mode: 0o600 });
  await server.sql(database, "CREATE ROLE grove_changing LOGIN SUPERUSER PASSWORD 'one'");
  await write("one");
  process.env["PGPASSFILE"] = path;
  t.after(() => {
    delete process.env["PGPASSFILE"];
  });
  const directory = await open(t, `postgres://grove_changing@127.0.0.1:${server.port}/${database}`);
  await directory.register(registration("a"));
  await server.sql(database, "ALTER ROLE grove_changing PASSWORD 'two'");
  await server.stop();
  await server.start();
  await assert.rejects(eventuallyRefused(directory), (error) => isGroveError(error, "STORE_UNAVAILABLE"));
  await write("two");
  assert.equal((await eventually(() => directory.nodes())).length, 1);
});

test("a standby is passed over, and a server that stops taking changes is left", LONG, async (t) => {
  const standby = await server.createDatabase();
  await server.sql("postgres", `ALTER DATABASE ${standby} SET default_transaction_read_only TO on`);
  await refusedAs(openDirectory(server.url(standby), { clock }), /it is a standby/, t);
  // The first address leads nowhere.
  const hosts = `127.0.0.1:1,127.0.0.1:${server.port}`;
  const url = `postgres://grove:${encodeURIComponent(server.password)}@${hosts}/${database}`;
  const directory = await open(t, url);
  await directory.register(registration("a"));
  await server.sql("postgres", `ALTER DATABASE ${database} SET default_transaction_read_only TO on`);
  await server.stop();
  await server.start();
  await assert.rejects(eventuallyRefused(directory), (error) => isGroveError(error, "STORE_UNAVAILABLE"));
  await server.sql("postgres", `ALTER DATABASE ${database} RESET default_transaction_read_only`);
  assert.equal((await eventually(() => directory.nodes())).length, 1);
});

async function refusedAs(opening: Promise<Directory>, sentence: RegExp, t: TestContext): Promise<void> {
  const directory = await opening;
  t.after(() => directory.close());
  await assert.rejects(directory.clusterId(), sentence);
}

test(
  "an empty database in place of the old one becomes the same cluster again, and places nothing before its nodes came (D19)",
  LONG,
  async (t) => {
    const directory = await open(t);
    const roots = [{ owner: "u@example.com", rootId: "R1", version: 1n, grants: [] }];
    const { clusterId } = await directory.register(registration("a", { roots }));
    await server.sql(database, "DROP SCHEMA grove CASCADE");
    assert.deepEqual(await eventually(() => directory.heartbeat(beat("a", 1))), {
      known: false,
      sendFull: false,
    });
    assert.equal(await directory.clusterId(), clusterId);
    await refused("STARTING", directory.locateRoot("u@example.com"));
    await directory.register(registration("a", { clusterId, roots }));
    assert.equal((await directory.locateRoot("u@example.com")).rootId, "R1");
    await refused("STARTING", directory.locateRoot("v@example.com"));
  },
);

test(
  "another cluster's store in place of the old one is not believed and not changed, until ours is back (D19)",
  LONG,
  async (t) => {
    const directory = await open(t);
    const { clusterId } = await directory.register(registration("a"));
    await directory.locateRoot("u@example.com");
    const sql = (value: string): Promise<string> =>
      server.sql(database, `UPDATE grove.settings SET value = '${value}' WHERE key = 'cluster_id'`);
    await sql("FOREIGN");
    for (const call of [
      () => directory.locateRoot("u@example.com"),
      () => directory.locateRoot("new@example.com"),
      () => directory.heartbeat(beat("a", 1)),
      () => directory.register(registration("a", { clusterId })),
      () => directory.register(registration("b")),
    ]) {
      await assert.rejects(call(), (error) => {
        assert.ok(isGroveError(error, "STORE_UNAVAILABLE"), inspect(error));
        assert.match(error.message, /belongs to another cluster/);
        return true;
      });
    }
    const facts =
      "SELECT (SELECT count(*) FROM grove.nodes), (SELECT max(epoch) FROM grove.nodes), (SELECT count(*) FROM grove.roots)";
    assert.equal((await server.sql(database, facts)).trim(), "1|1|1");
    await rejectsWith("CLUSTER_MISMATCH", openDirectory(server.url(database), { clock, clusterId }));
    await sql(clusterId);
    assert.equal((await eventually(() => directory.locateRoot("u@example.com"))).fsId, "a");
  },
);

const rejectsWith = (code: ErrorCode, promise: Promise<unknown>): Promise<void> => refused(code, promise);

test(
  "tables of a newer Grove are refused at the start, and end a MetaServer that meets them later (D18)",
  LONG,
  async (t) => {
    const directory = await open(t);
    await server.sql(database, "INSERT INTO grove.schema_version (version) VALUES (99)");
    await assert.rejects(openDirectory(server.url(database), { clock }), /schema 99/);
    await server.stop();
    await server.start();
    await assert.rejects(eventuallyRefused(directory), (error) => isGroveError(error, "STORE_UNAVAILABLE"));
    assert.ok(isGroveError(await directory.failed, "BAD_ARGUMENT"));
  },
);

test("a user who may only use the schema gets along, one who may not make it is told", LONG, async (t) => {
  await server.sql(
    database,
    "CREATE ROLE grove_poor LOGIN; CREATE ROLE grove_owner LOGIN; CREATE SCHEMA grove AUTHORIZATION grove_owner",
  );
  const as = (user: string): string => server.url(database).replace("grove@", `${user}@`);
  await assert.rejects(openDirectory(as("grove_poor"), { clock }), /does not let that user/);
  const directory = await open(t, as("grove_owner"));
  assert.equal((await directory.register(registration("a"))).epoch, 1);
});

test("a connection takes the password that the file of the URL has by then", LONG, async (t) => {
  const urlFile = join(scratchFolder("store-url-"), "store");
  const urlWith = (password: string): string =>
    `postgres://grove_renewed:${password}@127.0.0.1:${server.port}/${database}`;
  const role =
    "CREATE ROLE grove_renewed LOGIN PASSWORD 'first'; CREATE SCHEMA grove AUTHORIZATION grove_renewed";
  await server.sql(database, role);
  await writeFile(urlFile, `${urlWith("first")}\n`, { mode: 0o600 });
  const directory = await openDirectory(urlWith("first"), { clock, urlFile });
  t.after(() => directory.close());
  await directory.register(registration("a"));
  await server.sql(database, "ALTER ROLE grove_renewed PASSWORD 'second'");
  await writeFile(urlFile, `${urlWith("second")}\n`);
  await server.stop();
  await server.start();
  assert.equal((await eventually(() => directory.nodes())).length, 1);
});
