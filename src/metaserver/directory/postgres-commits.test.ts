// The store in PostgreSQL when a commit's answer is lost: no command is done twice, and none is told wrongly.
import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect as connectTo, createServer, type Socket } from "node:net";
import { beforeEach, type TestContext, test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { isGroveError } from "#base/errors.ts";
import { type PostgresServer, postgresOfFile } from "#testing/postgres-server.ts";
import { until } from "#testing/until.ts";
import type { AppPasswordRecord, DoorSessionRecord } from "./credential-store.ts";
import type { Directory } from "./directory.ts";
import { openDirectory } from "./open-directory.ts";
import { openPostgresDirectory } from "./postgres-directory.ts";
import { beat, registration } from "./store-under-test.fixture.ts";

let server: PostgresServer;
const skip = postgresOfFile((started) => {
  server = started;
});
const LONG = { skip, timeout: 120_000 };
const clock = new ManualClock();
const [OLD, NEW, BOB] = ["old@x.de", "new@x.de", "bob@x.de"];
const ISSUER = "idp.example.com";
const person = (subject: string): { issuer: string; subject: string } => ({ issuer: ISSUER, subject });

/**
 * What a cable does to the next commit: "after" loses its answer, "before" the commit itself; "far" too, while the
 * server goes on to wait for it.
 */
type Cut = "after" | "before" | "far";

/** A cable to the database that is cut on request. */
class Cable {
  port = 0;
  cut: Cut | undefined;
  cuts = 0;
  readonly #sockets = new Set<Socket>();

  async open(t: TestContext): Promise<this> {
    const listener = createServer((socket) => this.#join(socket));
    listener.listen(0, "127.0.0.1");
    await once(listener, "listening");
    t.after(() => {
      listener.close();
      for (const socket of this.#sockets) socket.destroy();
    });
    this.port = (listener.address() as AddressInfo).port;
    return this;
  }

  #join(near: Socket): void {
    const far = connectTo(server.port, "127.0.0.1");
    let losesAnswer = false;
    const end = (): void => {
      near.destroy();
      far.destroy();
    };
    for (const socket of [near, far]) {
      this.#sockets.add(socket);
      socket.on("error", end);
      socket.on("close", end);
    }
    near.on("data", (data) => {
      const { cut } = this;
      if (cut !== undefined && data.includes("COMMIT\0")) {
        this.cuts++;
        this.cut = undefined;
        if (cut === "before") return end();
        if (cut === "far") {
          near.off("close", end);
          return near.destroy();
        }
        losesAnswer = true;
      }
      far.write(data);
    });
    far.on("data", (data) => {
      if (!losesAnswer) near.write(data);
      // The server has committed: this is its answer.
      else if (data.includes("COMMIT\0")) end();
    });
  }
}

let database: string;
beforeEach(async () => {
  if (skip === false) database = await server.createDatabase();
});

async function start(t: TestContext): Promise<{ directory: Directory; cable: Cable }> {
  const cable = await new Cable().open(t);
  const url = `postgres://grove:${encodeURIComponent(server.password)}@127.0.0.1:${cable.port}/${database}`;
  const directory = await openDirectory(url, { clock });
  t.after(() => directory.close());
  return { directory, cable };
}

function password(id: string): AppPasswordRecord {
  const facts = { readOnly: false, folderId: "", folderPath: "", createdMs: 1, endsMs: 0, lastUsedMs: 0 };
  return {
    id,
    owner: BOB,
    ...person("2"),
    name: `name of ${id}`,
    hash: "ab".repeat(32),
    ...facts,
    doors: {},
  };
}

function session(id: string): DoorSessionRecord {
  const facts = { createdMs: 1, endsMs: 1_000, lastUsedMs: 1, doors: { d1: 1 } };
  return { id, owner: BOB, ...person("2"), hash: "cd".repeat(32), ...facts };
}

const GROUP = { name: "g", createdBy: BOB, createdMs: 1, members: [], claims: [] };

/** Commands that a second run would refuse or answer otherwise, in an order in which each finds what it needs. */
const COMMANDS: readonly (readonly [string, (directory: Directory) => Promise<unknown>, unknown])[] = [
  ["addAppPassword", (directory) => directory.addAppPassword(password("a")), undefined],
  ["revokeAppPassword", async (directory) => (await directory.revokeAppPassword(BOB, "a", 5))?.id, "a"],
  ["addDoorSession", (directory) => directory.addDoorSession(session("s")), undefined],
  [
    "endDoorSessions",
    async (directory) => (await directory.endDoorSessions(BOB, ["s"], 5)).map(({ id }) => id),
    ["s"],
  ],
  ["a group's making", (directory) => directory.changeGroups({ kind: "create", group: GROUP }), undefined],
  [
    "a group's end",
    async (directory) => (await directory.changeGroups({ kind: "delete", name: "g" }))?.name,
    "g",
  ],
  ["refuseAddress", (directory) => directory.refuseAddress(BOB, "other@x.de"), true],
  [
    "rebindSubjects",
    async (directory) => {
      const rebinding = { username: BOB, from: person("2"), to: person("3") };
      return typeof (await directory.rebindSubjects([rebinding]));
    },
    "bigint",
  ],
  ["changeAddress", async (directory) => (await directory.changeAddress(OLD, NEW)).version > 0n, true],
  ["removeSshNode", (directory) => directory.removeSshNode("n1"), true],
  ["removeNode", async (directory) => (await directory.removeNode("gone", 0)).outcome, "removed"],
];

async function prepare(directory: Directory): Promise<void> {
  await directory.admitSubject(OLD, person("1"));
  await directory.admitSubject(BOB, person("2"));
  await directory.admitSubject("other@x.de", person("2"));
  await directory.admitSubject(NEW, person("1"));
  await directory.register(registration("gone"));
  await server.sql(database, "UPDATE grove.nodes SET last_seen_ms = 0");
  await directory.putSshNode({
    id: "n1",
    host: "h",
    port: 22,
    user: "grove",
    hostKey: "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ5Sb3Zc7kfr7UyFh8Sh6wGkYvzjqGEWV6gR9cZJ3U5x",
    repository: "/opt/grove",
    services: {},
  });
}

for (const cut of ["after", "before"] as const) {
  test(
    `a commit that is cut off ${cut === "after" ? "from its answer" : "on its way"} is done once, and answered as it was`,
    LONG,
    async (t) => {
      const { directory, cable } = await start(t);
      await prepare(directory);
      let cuts = 0;
      for (const [name, run, wanted] of COMMANDS) {
        cable.cut = cut;
        assert.deepEqual(await run(directory), wanted, name);
        assert.equal(cable.cuts, ++cuts, name);
      }
      assert.deepEqual(await directory.appPasswordsOf(BOB), []);
      assert.deepEqual((await directory.groupBook()).groups, []);
      assert.deepEqual(await directory.nodes(), []);
    },
  );
}

test(
  "a change whose commit the server goes on to wait for is made once that has given it up",
  LONG,
  async (t) => {
    const { directory, cable } = await start(t);
    cable.cut = "far";
    assert.equal((await directory.register(registration("a"))).epoch, 1);
    assert.equal(cable.cuts, 1);
  },
);

test(
  "a change whose answers are all lost is told as one of which nothing is known, and was made once",
  LONG,
  async (t) => {
    const { directory, cable } = await start(t);
    const mark = await directory.groupsMark();
    cable.cut = "after";
    const refused = assert.rejects(
      directory.changeGroups({ kind: "create", group: GROUP }),
      (error) =>
        isGroveError(error, "STORE_UNAVAILABLE") && /whether that was made is not known/.test(error.message),
    );
    await until(() => cable.cuts > 0);
    await server.stop("immediate");
    t.after(() => server.start());
    await refused;
    await server.start();
    const again = await openPostgresDirectory({ url: server.url(database) });
    t.after(() => again.close());
    const groups = (await again.groupBook()).groups.map(({ name }) => name);
    assert.deepEqual(groups, (await again.groupsMark()) === mark ? [] : ["g"]);
  },
);

test(
  "heartbeats go on while control calls wait for a lock, which is no sign that the database is away",
  LONG,
  async (t) => {
    const { directory } = await start(t);
    await directory.register(registration("a"));
    const states: boolean[] = [];
    t.after(directory.watch(({ available }) => states.push(available)));
    const holder = await connectForLock(t);
    const stuck = Array.from({ length: 8 }, (_, at) => directory.register(registration(`n${at}`)));
    const outcomes = Promise.allSettled(stuck);
    const users = assert.rejects(
      directory.locateRoot("u@x.de"),
      /another process holds a lock|too much to do/,
    );
    for (let at = 0; at < 5; at++) {
      assert.equal((await directory.heartbeat(beat("a", 1))).known, true);
    }
    await users;
    await holder.release();
    for (const { status, ...rest } of await outcomes) {
      assert.ok(
        status === "fulfilled" ||
          isGroveError((rest as { reason: unknown }).reason, "STORE_UNAVAILABLE", "OVERLOADED"),
      );
    }
    assert.deepEqual(states, [true]);
  },
);

/** Another program that keeps the lock of all decisions. */
async function connectForLock(t: TestContext): Promise<{ release: () => Promise<void> }> {
  const { default: pg } = await import("pg");
  const client = new pg.Client({ host: server.socketFolder, port: server.port, user: "grove", database });
  await client.connect();
  t.after(() => client.end());
  await client.query("BEGIN; SELECT value FROM grove.settings WHERE key = 'mutex' FOR UPDATE");
  return {
    release: async () => {
      await client.query("COMMIT");
    },
  };
}
