// Tests that a serving node reports every planted wrong counter: metrics, alert, doctor (D16, A-17).
import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type TestContext, test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { textOf } from "#console/alerts/alert-texts.ts";
import { nodeConditions } from "#console/alerts/node-rules.ts";
import { ListedUsersLimit } from "#console/cluster/listed-users-limit.ts";
import { NodeDocument } from "#console/cluster/node-document.ts";
import { driftFinding } from "#doctor/host-checks.ts";
import { startTestNode, type TestNode } from "#fileserver/process/node.fixture.ts";
import { PASS_START_DELAY_MS } from "#fileserver/process/store-watch.ts";
import { PASS_DUE_CHECK_MS } from "#storage/scrub/background-pass.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { until } from "#testing/until.ts";

const PAUSE_MS = 3_600_000;
const QUIET = { errors: 0, ops: 0, failingRun: 0, isFull: true };

/** The view of the console's pages, its alerts and the doctor on a node's current metrics. */
async function look(node: TestNode): Promise<{
  readonly body: Readonly<Record<string, unknown>>;
  readonly alert: string;
  readonly doctor: string;
}> {
  const answer = await fetch(`http://127.0.0.1:${node.node.metricsPort}/metrics`);
  const text = await answer.text();
  const reading = new NodeDocument("n1", new ListedUsersLimit()).read({
    body: Buffer.from(text),
    etag: undefined,
  });
  const conditions = nodeConditions({ id: "n1", name: "n1" }, reading, {
    window: QUIET,
    fullInDays: undefined,
  });
  const drift = conditions.find(({ type }) => type === "quota_drift") ?? assert.fail();
  const { title } = textOf(
    "quota_drift",
    { node: "n1", value: drift.value } as Parameters<typeof textOf>[1],
    false,
  );
  const body = JSON.parse(text) as Record<string, unknown>;
  const { state, what } = driftFinding("n1", body, (body["recount_last_pass_unix"] as number) * 1_000);
  return { body, alert: drift.level === "warning" ? title : drift.level, doctor: `${state} ${what}` };
}

/** Nodes by their folders: a folder is removed when its node has ended. */
const running = new Map<string, TestNode>();

/** A folder with live files, a folder in the trash, and nothing else. */
async function filled(context: TestContext): Promise<string> {
  const dataFolder = scratchFolder("grove-drift-");
  context.after(async () => {
    await running.get(dataFolder)?.stop();
  });
  const node = await startTestNode({ dataFolder });
  const user = await node.signIn("ada@example.com");
  for (const path of ["/a", "/a/b", "/old"]) await user.call.createDirectory({ path });
  for (const path of ["/a/f", "/a/b/g", "/old/h"])
    await user.call.createFile({ path, data: Buffer.alloc(1_000) });
  await user.call.trashFile({ path: "/old" });
  await node.stop();
  return dataFolder;
}

function plant(dataFolder: string, sql: string): void {
  const db = new DatabaseSync(join(dataFolder, "inodes.db"), { timeout: 5_000 });
  db.exec(sql);
  db.close();
}

/** Starts a node with recounts, and waits for the first. */
async function counting(dataFolder: string): Promise<{ node: TestNode; clock: ManualClock }> {
  const clock = new ManualClock();
  const recount = { rowsPerSecond: 2 ** 40, pauseMs: PAUSE_MS };
  const node = await startTestNode({ dataFolder, clock, options: { recount } });
  running.set(dataFolder, node);
  assert.deepEqual(
    [(await look(node)).body["quota_drift_bytes"], (await look(node)).alert, (await look(node)).doctor],
    [null, "unknown", "ok not counted yet"],
  );
  clock.advance(PASS_START_DELAY_MS);
  await until(() => {
    const { lastEndedAtMs, isRunning } = node.node.storage.recountState();
    return lastEndedAtMs !== undefined && !isRunning;
  });
  return { node, clock };
}

const PLANTED: Readonly<Record<string, readonly [sql: string, bytes: number]>> = {
  "a file": ["UPDATE inode SET size = size + 7 WHERE name = 'g'", 7],
  "a directory": ["UPDATE inode SET size = size + 7 WHERE name = 'b'", 7],
  "the trash": ["UPDATE root SET trash_bytes = trash_bytes + 7", 7],
  "live bytes": ["UPDATE root SET live_bytes = live_bytes + 7", 7],
  "staged bytes": ["UPDATE root SET staging_bytes = staging_bytes + 7", 7],
  "what is in the trash": ["UPDATE inode SET size = size + 7 WHERE name = 'h'", 7],
  inodes: ["UPDATE counter SET value = value + 1 WHERE name = 'inodes'", 0],
  files: ["UPDATE root SET file_count = file_count + 1", 0],
};

for (const [what, [sql, bytes]] of Object.entries(PLANTED)) {
  test(`a wrong count of ${what} shows in the metrics, the alert and the doctor of a node that serves`, async (context) => {
    const dataFolder = await filled(context);
    plant(dataFolder, sql);
    const { node } = await counting(dataFolder);
    const { body, alert, doctor } = await look(node);
    assert.equal(body["quota_drift_bytes"], bytes);
    assert.ok(Number(body["drifted_counters"]) >= 1);
    assert.equal(alert, `Counters of n1 are off by ${bytes} B`);
    assert.match(doctor, /^failed counted just now: \d of its counters are off/);
  });
}

test("a node whose counters are right says when that was counted; what goes wrong while it serves shows after the next count", async (context) => {
  const dataFolder = await filled(context);
  const { node, clock } = await counting(dataFolder);
  const first = await look(node);
  assert.deepEqual(
    [first.body["quota_drift_bytes"], first.body["drifted_counters"], first.body["recount_last_pass_roots"]],
    [0, 0, 1],
  );
  assert.equal(first.body["recount_last_pass_unix"], Math.floor(clock.wallMs() / 1_000));
  assert.deepEqual(
    [first.alert, first.doctor],
    ["clear", "ok counted just now: its counters agree with what it stores"],
  );
  plant(dataFolder, PLANTED["a directory"]?.[0] ?? "");
  clock.advance(PAUSE_MS + PASS_DUE_CHECK_MS);
  await until(() => (node.node.storage.recountState().drift?.counters ?? 0) > 0);
  assert.match((await look(node)).doctor, /^failed/);
});
