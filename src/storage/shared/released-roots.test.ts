// Tests of a root that a process has released: nothing that was known of it is used once it comes back.
import assert from "node:assert/strict";
import { test } from "node:test";
import type pg from "pg";
import { type PostgresServer, postgresOfFile } from "#testing/postgres-server.ts";
import { makeDirectory, makeRoot, openWriter, refusal } from "./both-engines.fixture.ts";
import { OWNER } from "./random-commands.fixture.ts";
import { makeSharedDatabase } from "./shared-database.fixture.ts";

let server: PostgresServer;
const skip = postgresOfFile((started) => {
  server = started;
});
const LONG = { skip, timeout: 60_000 };

/** Gives the root to another process, as a take-over does. */
async function takeOver(client: pg.Client, instance: string): Promise<void> {
  await client.query("UPDATE holding SET instance = $1, epoch = epoch + 1, prior_epoch = epoch", [instance]);
}

test(
  "a released root that comes back is as the database has it, whatever was asked for before its release",
  LONG,
  async (t) => {
    const database = await makeSharedDatabase(t, server);
    const [one, two] = [await openWriter(t, database, "one"), await openWriter(t, database, "two")];
    const number = await makeRoot(one.client);
    const top = number * 2 ** 32 + 1;
    await makeDirectory(one.writer, top, "first");
    // More than one group takes: what the first one has fetched is there when the root is released.
    const asked = Array.from({ length: 1_024 }, () => one.writer.know(OWNER));
    await Promise.all([...asked, one.writer.release(number)]);
    await takeOver(two.client, "two");
    await makeDirectory(two.writer, top, "second");
    await takeOver(one.client, "one");
    await one.writer.know(OWNER);
    await assert.rejects(makeDirectory(one.writer, top, "second"), refusal("PATH_EXISTS"));
    assert.equal((await makeDirectory(one.writer, top, "third")).usage.liveInodes, 3);
  },
);
