// Tests the output files of actions: compression, reads of compressed files, and the budget (D7, D8).
import assert from "node:assert/strict";
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { ACTION_RECORDS_WITH_OUTPUT, OutputStore } from "./output-store.ts";

const idOf = (at: number): string => `01JD00000000000000000${String(at).padStart(5, "0")}`;

async function storeOf(): Promise<{ store: OutputStore; folder: string }> {
  const data = scratchFolder("outputs-");
  return { store: await OutputStore.open(data), folder: join(data, "action_output") };
}

async function write(store: OutputStore, at: number, entries: number): Promise<void> {
  await using file = await store.create(idOf(at));
  const line = (number: number): string =>
    `${JSON.stringify({ ts: number, node_id: "n1", stream: "stdout", data: `line ${number} ä\n`.repeat(40) })}\n`;
  await file.appendFile(Array.from({ length: entries }, (_, number) => line(number)).join(""));
}

/** Two more than the newest, which stay uncompressed. */
const COUNT = ACTION_RECORDS_WITH_OUTPUT + 2;
const ALL = Array.from({ length: COUNT }, (_, at) => idOf(COUNT - at));
const known =
  (unfinished: readonly string[] = [], isIncomplete = false) =>
  () => ({
    isIncomplete,
    endedNewestFirst: ALL.filter((id) => !unfinished.includes(id)),
    unfinished,
  });

test("output that is old is compressed, and every page of it reads as before, from any place", async () => {
  const { store, folder } = await storeOf();
  for (let at = 1; at <= COUNT; at++) await write(store, at, at === 1 ? 2_500 : 1);
  const pages = async (): Promise<unknown[]> => {
    const read: unknown[] = [];
    for (let seq = 0, isEnd = false; !isEnd; ) {
      const page = await store.read(idOf(1), seq);
      read.push(page);
      ({ nextSeq: seq, isEnd } = page);
    }
    read.push(await store.read(idOf(1), 777), await store.read(idOf(1), 500_000, { limit: 2 }));
    return read;
  };
  const before = await pages();
  await store.prune(known());
  const names = readdirSync(folder);
  assert.ok(names.includes(`${idOf(1)}.ndjson.gz`) && names.includes(`${idOf(2)}.ndjson.gz`));
  assert.equal(names.filter((name) => name.endsWith(".ndjson")).length, ACTION_RECORDS_WITH_OUTPUT);
  assert.deepEqual(await pages(), before);
  await store.prune(known());
  assert.deepEqual(await pages(), before);
});

test("what still runs is left alone, what a machine's stop left and what nobody knows is removed", async () => {
  const { store, folder } = await storeOf();
  for (let at = 1; at <= COUNT; at++) await write(store, at, 1);
  await write(store, COUNT + 1, 1);
  writeFileSync(join(folder, `.${idOf(2)}.ndjson.gz.0123456789abcdef.tmp`), "half");
  await Promise.all([store.prune(known([idOf(1)])), store.prune(known([idOf(1)]))]);
  const names = readdirSync(folder);
  assert.deepEqual(
    [`${idOf(1)}.ndjson`, `${idOf(2)}.ndjson.gz`, `${idOf(COUNT + 1)}.ndjson`].map((name) =>
      names.includes(name),
    ),
    [true, true, false],
  );
  assert.equal(
    names.some((name) => name.endsWith(".tmp")),
    false,
  );
});

test("output of actions that a damaged history may have had stays, as that of the oldest", async () => {
  const { store, folder } = await storeOf();
  for (let at = 1; at <= COUNT; at++) await write(store, at, 1);
  const none = { endedNewestFirst: [idOf(COUNT)], unfinished: [], isIncomplete: true };
  await store.prune(() => none);
  const names = readdirSync(folder);
  assert.equal(names.length, COUNT);
  assert.deepEqual(
    names.filter((name) => name.endsWith(".gz")),
    [1, 2].map((at) => `${idOf(at)}.ndjson.gz`),
  );
  await store.prune(() => ({ ...none, isIncomplete: false }));
  assert.deepEqual(readdirSync(folder), [`${idOf(COUNT)}.ndjson`]);
});
