// Compares the shared engine's rows with the local engine's: the same commands, answers and tables, row for
// row.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import type pg from "pg";
import { GroveError } from "#base/errors.ts";
import { StaleAccessError } from "#storage/contract/inode.ts";
import { PurgeCursor } from "#storage/writer/purge-cursor.ts";
import { packRefusal } from "#storage/writer/write-commands.ts";
import { type PostgresServer, postgresOfFile } from "#testing/postgres-server.ts";
import { until } from "#testing/until.ts";
import {
  CHANGE,
  directory,
  LocalRows,
  makeRoot,
  NOW_MS,
  openWriter,
  type Row,
  refusal,
} from "./both-engines.fixture.ts";
import { OWNER, RandomCommands, type Step } from "./random-commands.fixture.ts";
import { fetchRows } from "./row-fetch.ts";
import { makeSharedDatabase } from "./shared-database.fixture.ts";
import { SHARED_TABLES, type SharedTable } from "./shared-tables.ts";
import type { SharedWriter } from "./shared-writer.ts";

let server: PostgresServer;
const skip = postgresOfFile((started) => {
  server = started;
});
const LONG = { skip, timeout: 120_000 };

/** The answer of the shared engine in the form of the local writer's. */
async function sharedReply(writer: SharedWriter, step: Step): Promise<unknown> {
  try {
    return await (step === "purge"
      ? writer.purgeSlice(OWNER, new PurgeCursor())
      : writer.submit(OWNER, step.command));
  } catch (error) {
    assert.ok(error instanceof GroveError || error instanceof StaleAccessError, String(error));
    return packRefusal(error);
  }
}

/** Rows in an order of their own. A chunk stands by its name: a command that runs again uses up numbers. */
function comparable(
  table: string,
  rows: readonly Row[],
  chunkNames: ReadonlyMap<unknown, unknown>,
): string[] {
  const plain = (row: Row): Row => ({
    ...row,
    ...(table === "chunk" || table === "purging" ? { id: 0 } : {}),
    ...("sequence" in row ? { sequence: 0 } : {}),
    ...("chunk_id" in row ? { chunk_id: chunkNames.get(row["chunk_id"]) } : {}),
  });
  return rows
    .map((row) =>
      JSON.stringify(plain(row), (_, value: unknown) => (ArrayBuffer.isView(value) ? hex(value) : value)),
    )
    .toSorted();
}

function hex(bytes: ArrayBufferView): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("hex");
}

async function sharedRows(client: pg.Client, { name, columns }: SharedTable): Promise<Row[]> {
  // As text, since a Buffer says in JSON what it is before it can be asked.
  const shown = columns.map(({ name: column, type }) =>
    type === "BYTEA" ? `encode(${column}, 'hex') AS ${column}` : column,
  );
  return (await client.query(`SELECT ${shown.join(", ")} FROM ${name}`)).rows as Row[];
}

async function compareTables(client: pg.Client, local: LocalRows): Promise<void> {
  const names = (rows: readonly Row[]): Map<unknown, unknown> =>
    new Map(rows.map((row) => [row["id"], row["name"]]));
  const chunk = SHARED_TABLES.find(({ name }) => name === "chunk") as SharedTable;
  const [sharedNames, localNames] = [names(await sharedRows(client, chunk)), names(local.rows(chunk))];
  for (const table of SHARED_TABLES) {
    const shared = comparable(table.name, await sharedRows(client, table), sharedNames);
    assert.deepEqual(shared, comparable(table.name, local.rows(table), localNames), table.name);
  }
}

/** The step with the number that the chunk of the local engine's number has in the shared one. */
async function translated(step: Step, client: pg.Client, local: LocalRows): Promise<Step> {
  if (step === "purge" || step.command.op !== "markDamaged" || !("chunkId" in step.command.target))
    return step;
  const { chunkId } = step.command.target;
  const { rows } = await client.query("SELECT id FROM chunk WHERE name = $1", [local.chunkName(chunkId)]);
  const id = (rows[0] as { id: number } | undefined)?.id ?? 2 ** 50;
  return { command: { ...step.command, target: { chunkId: id } } };
}

for (const [how, forgetEvery, parts] of [
  ["with all rows at hand", Number.POSITIVE_INFINITY],
  ["when few rows are kept", Number.POSITIVE_INFINITY, { rowsMax: 40 }],
  ["when rows are forgotten now and then", 7],
  ["when rows are forgotten before every command", 1],
] as readonly (readonly [string, number, { rowsMax: number }?])[]) {
  test(`random commands make the same answers and rows as locally, ${how}`, LONG, async (t) => {
    const kinds = new Map<string, number>();
    for (let seed = 1; seed <= 2; seed++) {
      const database = await makeSharedDatabase(t, server);
      const { writer, client } = await openWriter(t, database, "one", parts);
      await makeRoot(client);
      const local = new LocalRows(t);
      const random = new RandomCommands(seed * 7 + (forgetEvery === 7 ? 2 : 0), 2 ** 32 + 1);
      for (let step = 0; step < 250; step++) {
        const next = random.next();
        const own = await translated(next, client, local);
        const expected = local.run(next);
        const actual = await sharedReply(writer, own);
        const what = `seed ${seed}, step ${step}: ${next === "purge" ? next : JSON.stringify(next.command)}`;
        assert.deepEqual(actual, expected, what);
        const isRefused = typeof expected === "object" && expected !== null && "refused" in expected;
        const op = next === "purge" ? next : next.command.op;
        if (!isRefused) kinds.set(op, (kinds.get(op) ?? 0) + 1);
        if (next !== "purge") random.learn(expected);
        if (step % forgetEvery === forgetEvery - 1) writer.forget();
      }
      await compareTables(client, local);
    }
    for (const op of ALL_KINDS) assert.ok((kinds.get(op) ?? 0) > 0, `no ${op} was done`);
  });
}

/** Gives a root to another process, as a take-over does. */
async function takeOver(client: pg.Client, instance: string): Promise<void> {
  await client.query(
    "UPDATE holding SET instance = $1, epoch = epoch + 1, prior_epoch = epoch, prior_group = last_group",
    [instance],
  );
}

test(
  "a process that lost a root commits nothing more, and the next holder goes on from its rows",
  LONG,
  async (t) => {
    const database = await makeSharedDatabase(t, server);
    const [one, two] = [await openWriter(t, database, "one"), await openWriter(t, database, "two")];
    const top = (await makeRoot(one.client)) * 2 ** 32 + 1;
    await one.writer.submit(OWNER, directory(OWNER, top, "first"));
    await assert.rejects(two.writer.submit(OWNER, directory(OWNER, top, "no")), refusal("WRONG_NODE"));
    await takeOver(two.client, "two");
    // Its rows say that all is well, and the commit that it is not.
    await assert.rejects(one.writer.submit(OWNER, directory(OWNER, top, "late")), refusal("WRONG_NODE"));
    await assert.rejects(one.writer.submit(OWNER, directory(OWNER, top, "later")), refusal("WRONG_NODE"));
    await assert.rejects(two.writer.submit(OWNER, directory(OWNER, top, "first")), refusal("PATH_EXISTS"));
    const { inode } = await two.writer.submit(OWNER, directory(OWNER, top, "second"));
    assert.equal(inode.id, top + 2);
    // The first process again: nothing of its old time counts.
    await takeOver(one.client, "one");
    await assert.rejects(one.writer.submit(OWNER, directory(OWNER, top, "second")), refusal("PATH_EXISTS"));
    assert.equal((await one.writer.submit(OWNER, directory(OWNER, top, "third"))).usage.liveInodes, 3);
    await assert.rejects(two.writer.submit(OWNER, directory(OWNER, top, "no")), refusal("WRONG_NODE"));
  },
);

test("a root is not there before it is made, and is once it has been made", LONG, async (t) => {
  const { writer, client } = await openWriter(t, await makeSharedDatabase(t, server));
  const missing = writer.submit(OWNER, directory(OWNER, 2 ** 32 + 1, "a"));
  await assert.rejects(missing, refusal("NO_SUCH_PATH"));
  const number = await makeRoot(client);
  assert.equal(await makeRoot(client), number);
  const { inode } = await writer.submit(OWNER, directory(OWNER, number * 2 ** 32 + 1, "a"));
  assert.equal(inode.parentId, number * 2 ** 32 + 1);
  const again = { op: "createRoot", owner: OWNER, rootId: `ROOT ${OWNER}`, nowMs: NOW_MS } as const;
  assert.equal((await writer.submit(OWNER, again)).usage.liveInodes, 1);
});

test(
  "while connections are cut, each of many users' changes is made once, and every count is exact",
  LONG,
  async (t) => {
    const database = await makeSharedDatabase(t, server);
    const { writer, client, fetches } = await openWriter(t, database);
    const owners = ["ada@example.com", "bob@example.com", "eve@example.com"];
    const tops = new Map<string, number>();
    for (const owner of owners) tops.set(owner, (await makeRoot(client, owner)) * 2 ** 32 + 1);
    const over = new AbortController();
    const cutter = await database.connect();
    let cut = 0;
    const cuts = (async () => {
      while (!over.signal.aborted) {
        const { rows } = await cutter.query(
          `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
           WHERE query LIKE 'SELECT commit_rows%' AND state = 'active' AND datname = current_database()`,
        );
        cut += rows.length;
        await delay(2);
      }
    })();
    let made = 0;
    let wave = 0;
    const isEnough = (): boolean => cut >= 5 && wave >= 10;
    for (; !isEnough(); wave++) {
      // Every name comes twice.
      const names = Array.from({ length: 20 }, (_, at) => `n${wave} ${Math.floor(at / 2)}`);
      const answers = owners.flatMap((owner) =>
        names.map((name) =>
          writer.submit(owner, directory(owner, tops.get(owner) ?? 0, name)).then(
            () => {
              made++;
            },
            (error: unknown) => assert.ok(refusal("PATH_EXISTS")(error), String(error)),
          ),
        ),
      );
      await Promise.all(answers);
    }
    over.abort();
    await cuts;
    assert.equal(made, wave * 30);
    const { rows } = await client.query(
      `SELECT owner, live_inodes AS live, (SELECT child_count FROM inode WHERE id = directory_id) AS entries,
       (SELECT count(*) FROM inode WHERE parent_id = directory_id) AS there FROM root ORDER BY owner`,
    );
    assert.deepEqual(
      rows,
      owners.map((owner) => ({ owner, live: wave * 10, entries: wave * 10, there: wave * 10 })),
    );
    assert.ok(fetches() > 0);
  },
);

test("a command of one root that would change another one is not committed", LONG, async (t) => {
  const database = await makeSharedDatabase(t, server);
  const { writer, client } = await openWriter(t, database);
  await makeRoot(client);
  const other = (await makeRoot(client, "bob@example.com")) * 2 ** 32 + 1;
  await writer.submit("bob@example.com", directory("bob@example.com", other, "a"));
  // Its number is the other root's, whose epoch would not be asked for.
  const stage = { op: "stageChunks", owner: OWNER, contentId: other + 9, chunks: [CHUNK] } as const;
  await assert.rejects(writer.submit(OWNER, stage), refusal("INTERNAL"));
  const { rows } = await client.query("SELECT 1 FROM chunk");
  assert.equal(rows.length, 0);
});

test("a writer that is closed refuses what waits, and ends the group under way first", LONG, async (t) => {
  const database = await makeSharedDatabase(t, server);
  const { writer, client } = await openWriter(t, database);
  const top = (await makeRoot(client)) * 2 ** 32 + 1;
  await writer.submit(OWNER, directory(OWNER, top, "a"));
  const other = await database.connect();
  await other.query("BEGIN");
  await other.query("SELECT 1 FROM holding FOR UPDATE");
  const underWay = writer.submit(OWNER, directory(OWNER, top, "b"));
  const isWaiting =
    "SELECT count(*) AS count FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%commit_rows%'";
  await until(async () => (await client.query(isWaiting)).rows[0]?.count === 1, "the commit waits");
  const refused = assert.rejects(
    writer.submit(OWNER, directory(OWNER, top, "c")),
    refusal("STORE_UNAVAILABLE"),
  );
  const order: string[] = [];
  const made = underWay.then(() => order.push("made"));
  const closing = writer.close().then(() => order.push("closed"));
  await other.query("ROLLBACK");
  await made;
  await refused;
  await closing;
  assert.deepEqual(order, ["made", "closed"]);
  await assert.rejects(writer.submit(OWNER, directory(OWNER, top, "d")), refusal("STORE_UNAVAILABLE"));
  const { rows } = await client.query("SELECT name FROM inode WHERE parent_id = $1 ORDER BY name", [top]);
  assert.deepEqual(rows, [{ name: "a" }, { name: "b" }]);
});

const CHUNK = { position: 0, name: "a chunk", length: 1, crc32: 0, blockCrcs: new Uint8Array(4) };

/** The commands that must have been done, not only refused. */
const ALL_KINDS: readonly string[] =
  `createDirectory createFile commitUpload writeInline writeChunks truncate rename
  remove trash restore purgeTrash share unshare stageChunks dropStaged createUpload stageUpload dropUpload beginCopy
  markDamaged createLink countDownload claimDrop purge`.split(/\s+/);

test(
  "bytes of small files count as rows do, so that a cache of large ones is forgotten in time",
  LONG,
  async (t) => {
    const database = await makeSharedDatabase(t, server);
    const before = await openWriter(t, database);
    const parentId = (await makeRoot(before.client)) * 2 ** 32 + 1;
    const file = { name: "large", data: Buffer.alloc(60_000), mtimeMs: 0 };
    const { inode } = await before.writer.submit(OWNER, { op: "createFile", ...CHANGE, parentId, ...file });
    assert.ok(before.writer.cachedRows >= 2 + 29, "what is made here counts as well");
    const { writer, fetches } = await openWriter(t, database, "one", { rowsMax: 30 });
    const know = (kind: "inline" | "inode"): Promise<number> =>
      writer.know(OWNER, { kind, id: inode.id }).then(() => writer.cachedRows);
    const rows = await know("inode");
    assert.ok(rows < 10, `${rows} rows`);
    assert.equal(await know("inline"), rows + 1 + 29);
    const fetched = fetches();
    assert.ok((await know("inode")) < 10);
    assert.ok(fetches() > fetched);
  },
);

test(
  "rows are forgotten when that was asked for, though commands wait for rows all the time",
  LONG,
  async (t) => {
    const database = await makeSharedDatabase(t, server);
    const client = await database.connect();
    const parentId = (await makeRoot(client)) * 2 ** 32 + 1;
    let forgets = 0;
    const forgotten: Promise<number>[] = [];
    const ask = (how: () => Promise<void>): void => {
      const before = forgets;
      forgotten.push(how().then(() => forgets - before));
    };
    const { writer } = await openWriter(t, database, "one", {
      fetch: (facts) => {
        if (forgotten.length === 0) ask(() => writer.forgetSoon());
        else if (forgotten.length === 1) ask(() => writer.renamed());
        else if (forgotten.length === 2) ask(() => writer.release(77));
        return fetchRows(client, facts);
      },
      forgot: () => {
        forgets++;
      },
    });
    const { inode } = await writer.submit(OWNER, directory(OWNER, parentId, "a"));
    assert.equal(inode.name, "a");
    assert.deepEqual(await Promise.all(forgotten), [1, 1, 1]);
  },
);

test(
  "a cache is bounded though some command waits for rows all the time, and none waits for ever",
  LONG,
  async (t) => {
    const database = await makeSharedDatabase(t, server);
    const before = await openWriter(t, database);
    const parentId = (await makeRoot(before.client)) * 2 ** 32 + 1;
    const ids: number[] = [];
    for (let at = 0; at < 20; at++) {
      const file = { name: `f${at}`, data: Buffer.alloc(60_000), mtimeMs: 0 };
      const { inode } = await before.writer.submit(OWNER, { op: "createFile", ...CHANGE, parentId, ...file });
      ids.push(inode.id);
    }
    const known: Promise<void>[] = [];
    let most = 0;
    const next = (writer: SharedWriter): void => {
      const id = ids[known.length];
      if (id !== undefined) known.push(writer.know(OWNER, { kind: "inline", id }));
    };
    const { writer } = await openWriter(t, database, "one", {
      rowsMax: 60,
      fetch: (facts) => {
        most = Math.max(most, writer.cachedRows);
        next(writer);
        return fetchRows(before.client, facts);
      },
    });
    next(writer);
    await until(() => known.length === ids.length);
    await Promise.all(known);
    assert.ok(most <= 2 * 60 + 40, `${most} rows`);
  },
);
