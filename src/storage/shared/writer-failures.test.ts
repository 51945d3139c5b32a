// Tests of a shared engine's writer whose cache of rows fails: a full disk, or one that breaks after a commit.
import assert from "node:assert/strict";
import { test } from "node:test";
import type pg from "pg";
import { type PostgresServer, postgresOfFile } from "#testing/postgres-server.ts";
import { CHANGE, makeDirectory, makeRoot, openWriter, refusal } from "./both-engines.fixture.ts";
import { OWNER } from "./random-commands.fixture.ts";
import type { RowCache } from "./row-cache.ts";
import { makeSharedDatabase } from "./shared-database.fixture.ts";
import type { SharedWriter } from "./shared-writer.ts";

let server: PostgresServer;
const skip = postgresOfFile((started) => {
  server = started;
});
const LONG = { skip, timeout: 60_000 };

const makeFile = (writer: SharedWriter, parentId: number, name: string) =>
  writer.submit(OWNER, {
    op: "createFile",
    ...CHANGE,
    parentId,
    name,
    data: Buffer.alloc(60_000, 7),
    mtimeMs: 0,
  });

/** What PostgreSQL has of a directory: names, and what the root's counters say. */
async function stored(client: pg.Client): Promise<{ names: string[]; live: number }> {
  const { rows } = await client.query("SELECT name FROM inode WHERE parent_id IS NOT NULL ORDER BY name");
  const root = await client.query("SELECT live_inodes AS live FROM root");
  return {
    names: (rows as { name: string }[]).map(({ name }) => name),
    live: (root.rows[0] as { live: number }).live,
  };
}

/** Gives the cache's database no more room, or as much as it wants. */
function limit(cache: RowCache, isFull: boolean): void {
  const { count } = cache.preparePlain("SELECT page_count AS count FROM pragma_page_count").get() as {
    count: number;
  };
  cache.preparePlain(`PRAGMA max_page_count = ${isFull ? count + 4 : 4_294_967_294}`).get();
}

for (const [what, breaks] of [
  ["the local disk is full", undefined],
  ["the local disk breaks", "an error that ends the transaction"],
] as const) {
  test(
    `when ${what} in the middle of a group, none of its changes is made or answered as made`,
    LONG,
    async (t) => {
      const database = await makeSharedDatabase(t, server);
      const { writer, cache, client } = await openWriter(t, database);
      const top = (await makeRoot(client)) * 2 ** 32 + 1;
      await makeDirectory(writer, top, "before");
      const attempt = cache.attempt.bind(cache);
      let commands = 0;
      if (breaks === undefined) limit(cache, true);
      else
        cache.attempt = (run) =>
          attempt(() => {
            if (++commands !== 2) return run();
            cache.end("ROLLBACK");
            throw new Error(breaks);
          });
      const outcomes = await Promise.allSettled([
        makeDirectory(writer, top, "a"),
        makeFile(writer, top, "large"),
        makeDirectory(writer, top, "b"),
      ]);
      const code = breaks === undefined ? "DISK_RESERVE" : "INTERNAL";
      for (const outcome of outcomes)
        assert.ok(outcome.status === "rejected" && refusal(code)(outcome.reason), JSON.stringify(outcome));
      assert.deepEqual(await stored(client), { names: ["before"], live: 1 });
      cache.attempt = attempt;
      limit(cache, false);
      await makeDirectory(writer, top, "a");
      await assert.rejects(makeDirectory(writer, top, "before"), refusal("PATH_EXISTS"));
      assert.deepEqual(await stored(client), { names: ["a", "before"], live: 2 });
    },
  );
}

for (const [what, name] of [
  ["its commit in the cache", "end"],
  ["what hears of it", "changed"],
  ["what hears of its grants", "sharesChanged"],
] as const) {
  test(`a change that PostgreSQL has is answered as made, though ${what} fails`, LONG, async (t) => {
    const database = await makeSharedDatabase(t, server);
    let isBroken = false;
    const told: string[] = [];
    const fail = (): void => {
      if (!isBroken) return;
      isBroken = false;
      throw new Error("no space left");
    };
    const { writer, cache, client } = await openWriter(t, database, "one", {
      changed: () => name === "changed" && fail(),
      sharesChanged: (owners) => {
        if (name === "sharesChanged") fail();
        told.push(...owners);
      },
      cacheFailed: (error) => told.push(String(error)),
    });
    const top = (await makeRoot(client)) * 2 ** 32 + 1;
    const { inode } = await makeDirectory(writer, top, "before");
    const end = cache.end.bind(cache);
    cache.end = (how) => {
      if (name === "end" && how === "COMMIT") fail();
      end(how);
    };
    isBroken = true;
    const share = { op: "share", ...CHANGE, inodeId: inode.id, username: "bob@example.com" } as const;
    const answers = await Promise.all([
      writer.submit(OWNER, share),
      makeDirectory(writer, top, "a"),
      assert.rejects(makeDirectory(writer, top, "before"), refusal("PATH_EXISTS")),
    ]);
    assert.equal(isBroken, false);
    assert.equal(answers[1].inode.name, "a");
    assert.ok(told.includes("Error: no space left"), told.join());
    if (name !== "sharesChanged") assert.ok(told.includes(OWNER), "nobody heard of the grants");
    // Nothing that the cache has not taken is missed afterwards.
    await assert.rejects(makeDirectory(writer, top, "a"), refusal("PATH_EXISTS"));
    await makeDirectory(writer, top, "b");
    assert.deepEqual(await stored(client), { names: ["a", "b", "before"], live: 3 });
  });
}

test(
  "a database without room refuses a whole group in words, and takes changes once it has some",
  LONG,
  async (t) => {
    const database = await makeSharedDatabase(t, server);
    const { writer, client } = await openWriter(t, database);
    const top = (await makeRoot(client)) * 2 ** 32 + 1;
    await makeDirectory(writer, top, "before");
    await client.query(`
    CREATE FUNCTION is_full() RETURNS TRIGGER LANGUAGE plpgsql AS $body$ BEGIN
      RAISE EXCEPTION 'could not extend file "base/1/2"' USING ERRCODE = 'disk_full';
    END $body$;
    CREATE TRIGGER is_full BEFORE INSERT ON inode EXECUTE FUNCTION is_full()`);
    const outcomes = await Promise.allSettled(["a", "b"].map((name) => makeDirectory(writer, top, name)));
    for (const outcome of outcomes) {
      assert.ok(outcome.status === "rejected" && refusal("STORE_UNAVAILABLE")(outcome.reason));
      assert.match(String(outcome.reason), /the shared database has no space left on its disk/);
    }
    await client.query("DROP TRIGGER is_full ON inode");
    await makeDirectory(writer, top, "a");
    assert.deepEqual(await stored(client), { names: ["a", "before"], live: 2 });
  },
);

test("how a move stands is not taken as kept when the cache cannot keep it", LONG, async (t) => {
  const database = await makeSharedDatabase(t, server);
  const { writer, cache, client } = await openWriter(t, database);
  const number = await makeRoot(client);
  await makeDirectory(writer, number * 2 ** 32 + 1, "before");
  const end = cache.end.bind(cache);
  cache.end = (how) => {
    if (how === "COMMIT") throw new Error("no space left");
    end(how);
  };
  const made = makeDirectory(writer, number * 2 ** 32 + 1, "a");
  await assert.rejects(writer.setMove(number, "frozen"), refusal("INTERNAL"));
  await made;
  cache.end = end;
  await writer.setMove(number, "frozen");
  await assert.rejects(makeDirectory(writer, number * 2 ** 32 + 1, "b"), refusal("NODE_DRAINING"));
});

test("a change whose rows find no room here is not made after it was refused", LONG, async (t) => {
  const database = await makeSharedDatabase(t, server);
  const { writer, cache, client } = await openWriter(t, database);
  const top = (await makeRoot(client)) * 2 ** 32 + 1;
  const accept = cache.accept.bind(cache);
  cache.accept = () => {
    throw new Error("no space left");
  };
  await assert.rejects(makeDirectory(writer, top, "a"), refusal("INTERNAL"));
  cache.accept = accept;
  await makeDirectory(writer, top, "b");
  assert.deepEqual(await stored(client), { names: ["b"], live: 1 });
});

test("rows that a full disk does not let go are forgotten before anything else is done", LONG, async (t) => {
  const database = await makeSharedDatabase(t, server);
  const { writer, cache, client } = await openWriter(t, database);
  const top = (await makeRoot(client)) * 2 ** 32 + 1;
  await makeDirectory(writer, top, "before");
  const [forget, end] = [cache.forget.bind(cache), cache.end.bind(cache)];
  cache.forget = () => {
    throw new Error("no space left");
  };
  cache.end = (how) => {
    if (how === "COMMIT") throw new Error("no space left");
    end(how);
  };
  await makeDirectory(writer, top, "a");
  cache.end = end;
  await assert.rejects(makeDirectory(writer, top, "b"), refusal("INTERNAL"));
  cache.forget = forget;
  await assert.rejects(makeDirectory(writer, top, "a"), refusal("PATH_EXISTS"));
  await makeDirectory(writer, top, "b");
  assert.deepEqual(await stored(client), { names: ["a", "b", "before"], live: 3 });
});
