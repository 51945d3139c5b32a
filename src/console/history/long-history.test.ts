// Tests of the long history: minutes, quarters of an hour, times without rows, bounded files.
import assert from "node:assert/strict";
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, it } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { QUARTER_ROWS_KEPT } from "#base/limits.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { RING_COLUMNS } from "./columns.ts";
import { LONG_HISTORY_FOLDER, LongHistory, MINUTE_ROWS_KEPT } from "./long-history.ts";
import { LONG_HISTORY_NODES_MAX, LongHistoryFiles, ROWS_PER_TURN } from "./long-history-files.ts";
import type { RowRange } from "./recent-hour.ts";

const START_MS = 1_790_000_100_000;
const WRITE = 0;
const P99_WRITE: number = RING_COLUMNS.findIndex(({ name }) => name === "p99_write_ms");

let folder: string;
let clock: ManualClock;
let poll: (slot: number) => number | undefined;

beforeEach(() => {
  folder = scratchFolder("grove-long-history-");
  clock = new ManualClock(START_MS);
  poll = (slot) => slot % 12;
});

/** The last hour of "a", in which every column has the value of its poll. */
function hourOf(id: string): Promise<RowRange | undefined> {
  if (id !== "a") return Promise.resolve(undefined);
  const lastSlot = Math.floor(clock.wallMs() / 5_000);
  const firstSlot = Math.max(lastSlot - 719, START_MS / 5_000);
  return Promise.resolve({ firstSlot, lastSlot, at: (_column, slot) => poll(slot) ?? Number.NaN });
}

const open = (): Promise<LongHistory> => LongHistory.open(folder, { clock, hourOf });
const now = (): number => Math.floor(clock.wallMs() / 1_000);

/** Lets time pass with a save every five minutes, as in the console. */
async function goOn(history: LongHistory, hours: number): Promise<void> {
  for (let past = 0; past < hours * 12; past++) {
    clock.advance(300_000);
    await history.save(["a"]);
  }
}

describe("what is kept beyond the last hour", () => {
  it("answers for yesterday by minutes: means, the worst percentile, and gaps where nobody answered", async () => {
    const history = await open();
    const silentFrom = START_MS / 5_000 + 720;
    poll = (slot) => (slot >= silentFrom && slot < silentFrom + 24 ? undefined : slot % 12);
    await goOn(history, 26);
    assert.equal(history.isBeyondHour({ from: now() - 86_400 }), true);
    assert.equal(history.isBeyondHour({ from: now() - 3_000 }), false);
    assert.equal(history.isBeyondHour({}), false);
    const again = await open();
    const from = START_MS / 1_000 + 3_540;
    const reply = await again.reply("a", { from, to: from + 300 });
    assert.equal(reply.interval_seconds, 60);
    assert.equal(reply.kept_from, START_MS / 1_000);
    assert.deepEqual(
      reply.points.map((point) => [point[0], point[1 + WRITE], point[1 + P99_WRITE]]),
      [
        [from, 5.5, 11],
        [from + 60, null, null],
        [from + 120, null, null],
        [from + 180, 5.5, 11],
        [from + 240, 5.5, 11],
        [from + 300, 5.5, 11],
      ],
    );
  });

  it("has the minutes that are not written yet, and writes none twice", async () => {
    const history = await open();
    await goOn(history, 2);
    clock.advance(185_000);
    const reply = await history.reply("a", { from: now() - 7_200 });
    assert.equal(reply.points.at(-1)?.[0], Math.floor((now() + 5) / 60) * 60 - 60);
    const before = await history.range("a", now() - 7_200, now());
    poll = () => 99;
    await history.save(["a"]);
    const after = await (await open()).range("a", now() - 7_200, now());
    const first = before.firstSlot;
    assert.equal(after.at(WRITE, first), before.at(WRITE, first));
  });

  it("says where nothing is kept: of an unknown node, of a time before, and by quarters of an hour after a week", async () => {
    const history = await open();
    const unknown = await history.reply("b", { from: now() - 86_400 });
    assert.deepEqual([unknown.points, unknown.kept_from], [[], null]);
    await goOn(history, 3);
    const before = await history.reply("a", {
      from: START_MS / 1_000 - 86_400,
      to: START_MS / 1_000 - 43_200,
    });
    assert.deepEqual([before.points, before.kept_from], [[], START_MS / 1_000]);
    const first = await history.reply("a", { to: 100 });
    assert.deepEqual([first.from, first.to, first.points], [0, 100, []]);
    clock.advance(8 * 86_400_000);
    const old = await (await open()).reply("a", { from: START_MS / 1_000, to: START_MS / 1_000 + 10_800 });
    assert.equal(old.interval_seconds, 900);
    assert.ok(old.points.length >= 11 && old.points.length <= 13, `${old.points.length} points`);
    assert.equal(old.points[1]?.[1 + P99_WRITE], 11);
  });

  it("gives 3,000 points at most, each with a multiple of its rows", async () => {
    const history = await open();
    const week = await history.reply("a", { from: now() - 6 * 86_400 });
    assert.equal(week.interval_seconds, 180);
    const year = await history.reply("a", { from: now() - 399 * 86_400 });
    assert.equal(year.interval_seconds % 900, 0);
    assert.ok((399 * 86_400) / year.interval_seconds <= 3_000);
  });

  it("all of the time is answered in slices, one answer after another, with other work in between", async () => {
    const history = await open();
    await goOn(history, 2);
    let turns = 0;
    let isOver = false;
    const count = (): void => {
      turns++;
      if (!isOver) setImmediate(count);
    };
    setImmediate(count);
    const [first, ...others] = await Promise.all([0, 0, 0].map((from) => history.reply("a", { from })));
    isOver = true;
    assert.deepEqual(others, [first, first]);
    assert.ok(first?.points.some((point) => point[1 + P99_WRITE] === 11));
    assert.ok(turns >= 3 * (QUARTER_ROWS_KEPT / ROWS_PER_TURN - 1), `${turns} turns`);
  });

  it("a clock that goes back has its rows written anew", async () => {
    const history = await open();
    await goOn(history, 2);
    clock.jumpWall(-3_600_000);
    poll = () => 7;
    await history.save(["a"]);
    clock.advance(300_000);
    await history.save(["a"]);
    const range = await history.range("a", START_MS / 1_000 + 3_600, now());
    assert.equal(range.at(WRITE, Math.floor((START_MS / 1_000 + 3_660) / 60)), 7);
  });
});

describe("files of kept rows", () => {
  const form = { seconds: 60, slots: 10 };
  const row = (figure: number): Float32Array => new Float32Array(RING_COLUMNS.length).fill(figure);
  const path = (): string => join(folder, "a.60s");

  it("never grow beyond their slots; what the newest overwrote is gone, also after a restart", async () => {
    const rows = await LongHistoryFiles.open(folder, form, 1_000);
    for (let slot = 100; slot < 137; slot++) await rows.write("a", new Map([[slot, row(slot)]]));
    const size = statSync(path()).size;
    assert.equal(size, 10 * (8 + 4 * RING_COLUMNS.length));
    for (const kept of [rows, await LongHistoryFiles.open(folder, form, 136)]) {
      const range = await kept.read("a", 100, 136);
      assert.deepEqual([range.oldest, range.newest], [127, 136]);
      assert.ok(Number.isNaN(range.at(WRITE, 126)));
      assert.deepEqual([range.at(WRITE, 127), range.at(WRITE, 136)], [127, 136]);
    }
    assert.equal(MINUTE_ROWS_KEPT * 60, 7 * 86_400);
    assert.equal(QUARTER_ROWS_KEPT * 900, 400 * 86_400);
  });

  it("a torn or changed row is a gap, and so is what lies in a time to come", async () => {
    const rows = await LongHistoryFiles.open(folder, form, 1_000);
    await rows.write("a", new Map([101, 102, 103].map((slot) => [slot, row(slot)])));
    const bytes = readFileSync(path());
    const length = 8 + 4 * RING_COLUMNS.length;
    bytes[2 * length + 9] = (bytes[2 * length + 9] ?? 0) ^ 1;
    writeFileSync(path(), bytes.subarray(0, 4 * length - 3));
    const range = await (await LongHistoryFiles.open(folder, form, 105)).read("a", 100, 104);
    assert.deepEqual([range.oldest, range.newest, range.at(WRITE, 101)], [101, 101, 101]);
    assert.ok(Number.isNaN(range.at(WRITE, 102)) && Number.isNaN(range.at(WRITE, 103)));
    const early = await LongHistoryFiles.open(folder, form, 101);
    await early.write("a", new Map([[104, row(104)]]));
    assert.equal((await LongHistoryFiles.open(folder, form, 101)).newest("a"), 101);
  });

  it("a start with a clock that is behind removes nothing, and an old file goes", async () => {
    const rows = await LongHistoryFiles.open(folder, form, 1_000);
    await rows.write("a", new Map([101, 102].map((slot) => [slot, row(slot)])));
    const behind = await LongHistoryFiles.open(folder, form, 0);
    await behind.write("a", new Map([[105, row(105)]]));
    const range = await behind.read("a", 100, 105);
    assert.deepEqual([range.oldest, range.newest, range.at(WRITE, 102)], [101, 105, 102]);
    assert.equal((await LongHistoryFiles.open(folder, form, 115)).has("a"), false);
    assert.deepEqual(readdirSync(folder), []);
  });

  it("of more nodes than there is room for, the longest silent gives way; no id leads out of the folder", async () => {
    const rows = await LongHistoryFiles.open(join(folder, LONG_HISTORY_FOLDER), form, 1_000);
    for (let node = 0; node <= LONG_HISTORY_NODES_MAX; node++) {
      await rows.write(`n${node}`, new Map([[100 + node, row(1)]]));
    }
    assert.equal(rows.has("n0"), false);
    assert.equal(rows.has("n1"), true);
    assert.equal(readdirSync(join(folder, LONG_HISTORY_FOLDER)).length, LONG_HISTORY_NODES_MAX);
    await rows.write("../n", new Map([[100, row(1)]]));
    assert.deepEqual(readdirSync(folder), [LONG_HISTORY_FOLDER]);
  });
});
