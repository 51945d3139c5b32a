// Tests of the history: an hour of rows, gaps, kills, bytes written in a day (spec 2.10, 8, T18, D24, W-15).
import assert from "node:assert/strict";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { HISTORY_SNAPSHOTS_PER_NODE, POLL_INTERVAL_MS, SNAPSHOT_SAVE_INTERVAL_MS } from "#base/limits.ts";
import { silentLogger } from "#base/log.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { HISTORY_COLUMNS } from "#wire/webapi/performance.ts";
import { CLUSTER, History, TRENDS_FILE } from "./history.ts";
import type { NodeSample } from "./node-sample.ts";
import { nodeSample } from "./sample.fixture.ts";
import { SNAPSHOT_FILE } from "./snapshot-file.ts";

const JOURNAL = SNAPSHOT_FILE.replace(".json", ".journal");
const SAVES_PER_DAY = 1_440;
const POLLS_PER_SAVE = SNAPSHOT_SAVE_INTERVAL_MS / POLL_INTERVAL_MS;

let folder: string;
let clock: ManualClock;
let opened: History[];

beforeEach(() => {
  folder = scratchFolder("grove-history-");
  clock = new ManualClock();
  opened = [];
});

afterEach(async () => {
  await Promise.all(opened.map((history) => history.close()));
});

async function open(): Promise<History> {
  const history = await History.open({ folder, clock, log: silentLogger });
  opened.push(history);
  return history;
}

/** One poll of a node now. */
function poll(history: History, nodeId: string, overrides: Partial<NodeSample> = {}): void {
  history.record(nodeSample({ nodeId, wallMs: clock.wallMs(), steadyMs: clock.steadyMs(), ...overrides }));
}

/** Polls nodes for a while, with counters that grow at random. */
function pollAll(history: History, nodeIds: readonly string[], polls: number, start = 0): void {
  for (let index = start; index < start + polls; index++) {
    clock.advance(POLL_INTERVAL_MS);
    for (const nodeId of nodeIds) poll(history, nodeId, busy(index));
  }
}

/** Values with as many digits as a busy node's. */
function busy(index: number): Partial<NodeSample> {
  const noise = (): number => 90 + Math.random() * 9;
  return {
    bytesWritten: index * 433e6 + Math.floor(Math.random() * 99e6),
    bytesRead: index * 433e6 + Math.floor(Math.random() * 99e6),
    writeOps: index * 4_321 + Math.floor(Math.random() * 999),
    readOps: index * 4_321 + Math.floor(Math.random() * 999),
    errors: index * 87,
    diskUsedBytes: 5e12 + index * 1e9,
    diskFreeBytes: 4e12,
    diskUsagePercent: noise(),
    cpuTempCelsius: noise(),
    cpuUsagePercent: noise(),
    memUsagePercent: noise(),
    activeConnections: 128,
    writeMsP50: noise(),
    writeMsP95: noise(),
    writeMsP99: noise(),
    readMsP50: noise(),
    readMsP95: noise(),
    readMsP99: noise(),
  };
}

const ids = (count: number): string[] => Array.from({ length: count }, (_, index) => `node-${index}`);
const timesOf = async (history: History, nodeId: string): Promise<number[]> =>
  (await history.reply(nodeId, {})).points.map(([ts]) => ts ?? 0);
const gapsOf = async (history: History, nodeId: string): Promise<boolean[]> =>
  (await history.reply(nodeId, {})).points.map((point) => point.slice(1).every((cell) => cell === null));

describe("the last hour", () => {
  it("is 720 rows, the oldest dropped first, evenly 5 s apart", async () => {
    const history = await open();
    pollAll(history, ["a"], HISTORY_SNAPSHOTS_PER_NODE + 30);
    const times = await timesOf(history, "a");
    assert.equal(times.length, 720);
    times.forEach((ts, index) => assert.equal(ts, (times[0] ?? 0) + index * 5));
    assert.equal(times.at(-1), Math.floor(clock.wallMs() / 5_000) * 5);
  });

  it("a poll without an answer is a row of nulls, at the end too", async () => {
    const history = await open();
    pollAll(history, ["a"], 3);
    for (let missed = 0; missed < 2; missed++) {
      clock.advance(POLL_INTERVAL_MS);
      history.recordGap("a", clock.wallMs());
    }
    assert.deepEqual(await gapsOf(history, "a"), [false, false, false, true, true]);
    pollAll(history, ["a"], 1);
    assert.deepEqual(await gapsOf(history, "a"), [false, false, false, true, true, false]);
  });

  it("a node that never answered has no rows, and none after an hour of silence", async () => {
    const history = await open();
    history.recordGap("never", clock.wallMs());
    assert.deepEqual((await history.reply("never", {})).points, []);
    assert.equal(history.has("never"), false);
    pollAll(history, ["a"], 2);
    clock.advance(3_700_000);
    await history.save();
    assert.equal(history.has("a"), false);
    assert.equal(history.rates("a"), undefined);
  });

  it("of the cluster ends where all nodes have been polled, and sums what there is", async () => {
    const history = await open();
    pollAll(history, ["a", "b"], 3);
    clock.advance(POLL_INTERVAL_MS);
    poll(history, "a", { activeConnections: 10 });
    const connections = HISTORY_COLUMNS.indexOf("active_connections");
    const before = (await history.reply(CLUSTER, {})).points.map((point) => point[connections]);
    assert.deepEqual(before, [256, 256, 256]);
    history.recordGap("b", clock.wallMs());
    const after = (await history.reply(CLUSTER, {})).points.map((point) => point[connections]);
    assert.deepEqual(after, [256, 256, 256, 10]);
  });

  it("a clock that was never set gives rates and no history", async () => {
    const history = await open();
    poll(history, "a", { wallMs: 1_000 });
    clock.advance(5_000);
    poll(history, "a", { wallMs: 6_000, bytesWritten: 5e6 });
    assert.equal(history.rates("a")?.writeMbps, 1);
    assert.equal(history.has("a"), false);
  });
});

describe("what is on disk", () => {
  it("is written every 60 s by itself, and read back with the gap of the pause", async () => {
    const history = await open();
    pollAll(history, ["a", "b"], 24);
    await history.save();
    const before = await timesOf(history, "a");
    clock.advance(20_000);
    const again = await open();
    pollAll(again, ["a"], 1);
    const times = await timesOf(again, "a");
    assert.deepEqual(times.slice(0, 24), before);
    assert.deepEqual(await gapsOf(again, "a"), [...before.map(() => false), true, true, true, true, false]);
  });

  it("killed at any moment at most 60 s of it are lost, by whole files and by the journal", async () => {
    for (const nodes of [2, 12]) {
      const history = await open();
      const names = ids(nodes);
      pollAll(history, names, 40);
      const killedAtMs = clock.wallMs();
      // Without close, only the files remain. The save that came due has ended when the next one has.
      while (readNewestTs() < Math.floor(killedAtMs / 1_000) - 60)
        await new Promise((done) => setTimeout(done, 20));
      const after = await open();
      for (const name of names) {
        const newest = (await timesOf(after, name)).filter((ts) => ts > 0).at(-1) ?? 0;
        assert.ok(newest >= killedAtMs / 1_000 - 65, `${name} ${newest}`);
      }
      assert.equal(after.wasReset, false);
      rmSync(folder, { recursive: true });
      mkdirSync(folder);
    }
  });

  it("up to 10 nodes is one file each time; beyond, a journal beside it, and one file again after a clean stop (T18)", async () => {
    for (const [nodes, hasJournal] of [
      [10, false],
      [11, true],
    ] as const) {
      const history = await open();
      for (let saves = 0; saves < 3; saves++) {
        pollAll(history, ids(nodes), 2, saves * 2);
        await history.save();
      }
      assert.equal(readdirSync(folder).includes(JOURNAL), hasJournal);
      const before = await history.reply("node-3", {});
      await history.close();
      assert.equal(readdirSync(folder).includes(JOURNAL), false);
      const again = await open();
      assert.deepEqual((await again.reply("node-3", {})).points, before.points);
      rmSync(folder, { recursive: true });
      mkdirSync(folder);
    }
  });

  it("the journal becomes a whole file every hour", async () => {
    const history = await open();
    let journals = 0;
    for (let minutes = 0; minutes < 61; minutes++) {
      pollAll(history, ids(11), 1, minutes);
      clock.advance(55_000);
      await history.save();
      if (readdirSync(folder).includes(JOURNAL)) journals++;
    }
    assert.equal(journals, 59, "all but the first save and that of an hour later");
  });

  it("is not written again while nothing has changed", async () => {
    const history = await open();
    pollAll(history, ["a"], 3);
    await history.save();
    const written = history.writtenBytes;
    clock.advance(600_000);
    history.recordGap("a", clock.wallMs());
    await history.save();
    assert.equal(history.writtenBytes, written);
  });

  it("is at most 1 GB in a day, at 10 busy nodes and at 50 (T18)", async (t) => {
    for (const nodes of [10, 50]) {
      const history = await open();
      const names = ids(nodes);
      pollAll(history, names, HISTORY_SNAPSHOTS_PER_NODE);
      await history.save();
      const wholeBytes = history.writtenBytes;
      // The bytes of one minute, and the whole file of each hour, as often as they come in a day.
      pollAll(history, names, POLLS_PER_SAVE, HISTORY_SNAPSHOTS_PER_NODE);
      await history.save();
      const minuteBytes = history.writtenBytes - wholeBytes;
      const bytesPerDay = minuteBytes * SAVES_PER_DAY + wholeBytes * 24;
      t.diagnostic(`${nodes} nodes: ${Math.round(bytesPerDay / 1e6)} MB a day`);
      assert.ok(bytesPerDay < 1e9, `${nodes} nodes: ${Math.round(bytesPerDay / 1e6)} MB`);
      assert.ok(minuteBytes > nodes * POLLS_PER_SAVE * 50, "rows were written");
      await history.close();
      rmSync(folder, { recursive: true });
      mkdirSync(folder);
    }
  });

  it("damaged is set aside, told, and the start is empty; never fatal (D24)", async () => {
    const history = await open();
    pollAll(history, ["a"], 3);
    await history.close();
    writeFileSync(join(folder, SNAPSHOT_FILE), "{ damaged");
    const again = await open();
    assert.equal(again.wasReset, true);
    assert.match(again.damaged[0] ?? "", /^admin_metrics_snapshot\.json: /);
    assert.equal(again.has("a"), false);
    assert.ok(readdirSync(folder).some((name) => /^admin_metrics_snapshot\.json\.corrupt-\d+$/.test(name)));
    pollAll(again, ["a"], 1);
    await again.close();
    assert.equal((await open()).wasReset, false);
  });

  it("of a newer version refuses the start and stays as it is (D18)", async () => {
    for (const file of [SNAPSHOT_FILE, TRENDS_FILE]) {
      writeFileSync(join(folder, file), '{"schema":2}\n');
      await assert.rejects(open(), /written by a newer Grove/);
      assert.equal(readFileSync(join(folder, file), "utf8"), '{"schema":2}\n');
      rmSync(join(folder, file));
    }
  });

  it("what cannot be written is told, and written once it can be", async () => {
    const history = await open();
    pollAll(history, ["a"], 3);
    mkdirSync(join(folder, SNAPSHOT_FILE));
    await history.save();
    assert.notEqual(history.saveFailure, undefined);
    rmSync(join(folder, SNAPSHOT_FILE), { recursive: true });
    pollAll(history, ["a"], 1);
    await history.save();
    assert.equal(history.saveFailure, undefined);
    assert.equal((await timesOf(await open(), "a")).length, 4);
  });
});

describe("forecasts", () => {
  const HOUR_MS = 3_600_000;

  it("of a disk count down to its reserve, and go on over a restart", async () => {
    let history = await open();
    for (let hour = 0; hour <= 8; hour++) {
      poll(history, "a", {
        diskUsedBytes: 500e9 + hour * 1e9,
        diskFreeBytes: 500e9 - hour * 1e9,
        reserveBytes: 20e9,
      });
      assert.equal(history.forecastDiskFullDays("a") === undefined, hour < 6);
      assert.equal(history.isDiskForecastKnown("a"), hour >= 6);
      if (hour === 4) {
        await history.save();
        history = await open();
      }
      clock.advance(HOUR_MS);
    }
    clock.advance(-HOUR_MS);
    assert.equal(history.forecastDiskFullDays("a"), 19.7);
    assert.equal(history.forecastDiskFullDays("b"), undefined);
    assert.equal(history.isDiskForecastKnown("b"), false);
    clock.advance(HOUR_MS + 1);
    assert.equal(history.isDiskForecastKnown("a"), false, "what was heard an hour ago is no basis");
  });

  it("of a disk that does not fill is known after six hours, and there is none", async () => {
    const history = await open();
    for (let hour = 0; hour <= 7; hour++) {
      poll(history, "a", { diskUsedBytes: 500e9, diskFreeBytes: 500e9, reserveBytes: 20e9 });
      assert.equal(history.forecastDiskFullDays("a"), undefined);
      assert.equal(history.isDiskForecastKnown("a"), hour >= 6);
      clock.advance(HOUR_MS);
    }
  });

  it("of a user count down to the quota, and go on over a restart", async () => {
    let history = await open();
    for (let hour = 0; hour <= 8; hour++) {
      history.recordUsers("a", clock.wallMs(), [
        ["rising@example.org", BigInt(hour) * 10n ** 9n, 16n * 10n ** 9n],
        ["flat@example.org", 5n, 10n],
        ["above all bounds".repeat(30), 5n, 10n],
      ]);
      assert.equal(history.forecastUserFullDays("rising@example.org") === undefined, hour < 6);
      if (hour === 4) {
        await history.save();
        history = await open();
      }
      clock.advance(HOUR_MS);
    }
    clock.advance(-HOUR_MS);
    assert.equal(history.forecastUserFullDays("rising@example.org"), 0.33);
    assert.equal(history.forecastUserFullDays("flat@example.org"), undefined);
    assert.equal(history.forecastUserFullDays("nobody"), undefined);
  });
});

/** The newest moment in the files, in unix seconds. */
function readNewestTs(): number {
  try {
    const snapshot = JSON.parse(readFileSync(join(folder, SNAPSHOT_FILE), "utf8")) as Saved;
    const lines = readdirSync(folder).includes(JOURNAL)
      ? readFileSync(join(folder, JOURNAL), "utf8").split("\n").slice(1, -1)
      : [];
    const all = [...snapshot.nodes, ...lines.map((line) => JSON.parse(line) as Saved["nodes"][number])];
    return Math.max(
      ...all.map(({ first_slot: first, values }) => (first + (values[0]?.length ?? 0) - 1) * 5),
    );
  } catch {
    return 0;
  }
}

interface Saved {
  readonly nodes: readonly {
    readonly first_slot: number;
    readonly values: readonly (readonly unknown[])[];
  }[];
}
