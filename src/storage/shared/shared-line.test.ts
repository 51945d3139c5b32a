// Tests of a connection that is made when it is needed: none outlives its line.
import assert from "node:assert/strict";
import { test } from "node:test";
import type pg from "pg";
import { systemClock } from "#base/clock.ts";
import { type PostgresServer, postgresOfFile } from "#testing/postgres-server.ts";
import { until } from "#testing/until.ts";
import { connectShared } from "./shared-connection.ts";
import { makeSharedDatabase, type SharedDatabase } from "./shared-database.fixture.ts";
import { SharedLine } from "./shared-line.ts";

let server: PostgresServer;
const skip = postgresOfFile((started) => {
  server = started;
});
const LONG = { skip, timeout: 120_000 };

async function connectionsTo({ name }: SharedDatabase): Promise<number> {
  const of = `application_name = 'grove fileserver' AND datname = '${name}'`;
  return Number(await server.sql("postgres", `SELECT count(*) FROM pg_stat_activity WHERE ${of}`));
}

test("a connection that comes after its line was closed is ended, and asked nothing", LONG, async (t) => {
  const database = await makeSharedDatabase(t, server);
  await until(async () => (await connectionsTo(database)) === 0);
  const isOpen = Promise.withResolvers<void>();
  const mayGoOn = Promise.withResolvers<void>();
  const connect = async (): Promise<pg.Client> => {
    const client = await connectShared(database.address);
    isOpen.resolve();
    await mayGoOn.promise;
    return client;
  };
  const line = new SharedLine({ connect, clock: systemClock, answerMs: 5_000 });
  let isAsked = false;
  const asking = line.run((client) => {
    isAsked = true;
    return client.query("SELECT 1");
  });
  await isOpen.promise;
  assert.equal(await connectionsTo(database), 1);
  line.close();
  mayGoOn.resolve();
  await assert.rejects(asking, { code: "STORE_UNAVAILABLE" });
  assert.equal(isAsked, false);
  await until(async () => (await connectionsTo(database)) === 0, "the end of the connection");
});

test("after an error a line asks over a new connection", LONG, async (t) => {
  const database = await makeSharedDatabase(t, server);
  const connect = (): Promise<pg.Client> => connectShared(database.address);
  const line = new SharedLine({ connect, clock: systemClock, answerMs: 5_000 });
  t.after(() => line.close());
  const pid = (): Promise<number> =>
    line.run(
      async (client) =>
        ((await client.query("SELECT pg_backend_pid() AS pid")).rows[0] as { pid: number }).pid,
    );
  const first = await pid();
  assert.equal(await pid(), first);
  await assert.rejects(line.run((client) => client.query("SELECT 1 / 0")));
  assert.notEqual(await pid(), first);
});
