// MetaServers on one PostgreSQL: health and /ready follow it, and all know the same persons (D21).
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { ManualClock } from "#base/clock.ts";
import { silentLogger } from "#base/log.ts";
import { makeVerifiedIdentity } from "#base/verified-identity.ts";
import type { TokenVerifier } from "#security/identity/token-verifier.ts";
import { type PostgresServer, startPostgres, withoutPostgres } from "#testing/postgres-server.ts";
import { Health } from "#wire/framing/gen/grpc/health/v1/health_pb.ts";
import { Code } from "#wire/framing/status.ts";
import { createClient } from "#wire/grpc/client.ts";
import { MetaServer } from "#wire/proto/gen/grove/v1/meta_server_pb.ts";
import { nodeMessage, refused, startForTest } from "./meta-server.fixture.ts";
import { startStatusListener } from "./status-listener.ts";

const skip = withoutPostgres();
const LONG = { skip, timeout: 60_000 };
const ends: (() => Promise<void>)[] = [];
let database: PostgresServer;

before(async () => {
  if (skip === false) database = await startPostgres((end) => ends.push(end));
});
after(async () => {
  for (const end of ends) await end();
});

test(
  "while the database is away health and /ready say so and calls are UNAVAILABLE; both come back by themselves",
  LONG,
  async (t) => {
    const server = await startForTest(t, { store: database.url(await database.createDatabase()) });
    const client = server.connect();
    await client.registerFileServer(nodeMessage("a"));
    const listener = await startStatusListener(
      {
        directory: server.directory,
        certDaysLeft: () => null,
        authorityEndsWallMs: undefined,
        clock: new ManualClock(),
        log: silentLogger,
      },
      { host: "127.0.0.1", port: 0 },
    );
    t.after(() => listener.close());
    const health = createClient(Health, server.channel());
    const see = async (): Promise<string> => {
      const { status } = await health.check({ service: MetaServer.typeName });
      const whole = (await health.check({ service: "" })).status;
      const ready = await fetch(`http://127.0.0.1:${listener.address.port}/ready`);
      const metrics = await fetch(`http://127.0.0.1:${listener.address.port}/metrics`);
      const { store_available: isThere } = (await metrics.json()) as { store_available: boolean };
      return `${status} ${whole} ${ready.status} ${metrics.status} ${isThere}`;
    };
    const until = async (seen: string): Promise<void> => {
      while ((await see()) !== seen) await delay(50);
    };
    await until("1 1 200 200 true");
    await database.stop();
    // The process lives, only its service does not.
    await until("2 1 503 200 false");
    await refused(
      client.claimRoot({ fsId: "a", epoch: 1n, username: "u@x.yz" }),
      Code.UNAVAILABLE,
      "STORE_UNAVAILABLE",
    );
    await database.start();
    await until("1 1 200 200 true");
    await client.heartbeat({ fsId: "a", epoch: 1n, instanceId: "i-a" });
    // The reason may change while it is away: shutting down, refused, starting.
    const told = server.logged.map(({ event }) => event).filter((event) => event.startsWith("store_"));
    assert.deepEqual(
      told.filter((event, index) => event !== told[index - 1]),
      ["store_available", "store_unavailable", "store_available"],
    );
  },
);

test(
  "an address that comes with another person is refused by every MetaServer, for routes and for roots (D21)",
  LONG,
  async (t) => {
    const store = database.url(await database.createDatabase());
    // Signatures are another test's subject: here a token is the subject itself.
    const tokenVerifier: TokenVerifier = {
      known: () => undefined,
      verify: async (token) => ({
        identity: makeVerifiedIdentity({
          username: "u@example.com",
          issuer: "https://idp.example",
          subject: token,
        }),
        expiresAtWallMs: Date.now() + 60_000,
      }),
    };
    const servers = [
      await startForTest(t, { store, tokenVerifier }),
      await startForTest(t, { store, tokenVerifier }),
    ] as const;
    const [first, second] = servers.map((server) => server.connect()) as [
      ReturnType<(typeof servers)[0]["connect"]>,
      ReturnType<(typeof servers)[0]["connect"]>,
    ];
    await first.registerFileServer(nodeMessage("a"));
    const as = (subject: string) => ({ metadata: { authorization: `Bearer ${subject}` } });
    const own = await first.navigate({}, as("one"));
    assert.equal((await second.navigate({}, as("one"))).rootId, own.rootId);
    for (const call of [
      () => second.navigate({}, as("two")),
      () => first.navigate({}, as("two")),
      () => second.getRoots({}, as("two")),
      () =>
        second.claimRoot({
          fsId: "a",
          epoch: 1n,
          username: "u@example.com",
          issuer: "idp.example",
          subject: "two",
        }),
    ]) {
      await refused(call(), Code.UNAUTHENTICATED, "TOKEN_REJECTED");
    }
    assert.equal((await first.getRoots({}, as("one"))).roots.length, 1);
  },
);

test(
  "no page token that a user makes up reaches the database, which would look as if it were away",
  LONG,
  async (t) => {
    const server = await startForTest(t, { store: database.url(await database.createDatabase()) });
    const client = server.connect();
    await client.registerFileServer(nodeMessage("a"));
    let wasAway = false;
    t.after(
      server.directory.watch(({ available }) => {
        wasAway ||= !available;
      }),
    );
    const pageToken = Buffer.from(JSON.stringify(["u@example.com\0", "/"])).toString("base64url");
    await refused(
      client.getRoots({ pageToken }, { metadata: { authorization: "Bearer mock-jwt.u@example.com" } }),
      Code.INVALID_ARGUMENT,
      "BAD_ARGUMENT",
    );
    assert.equal(wasAway, false);
  },
);
