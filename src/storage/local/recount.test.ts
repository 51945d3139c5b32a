// Tests that the recount finds every counter planted wrong, reports no right one, and resumes after a stop
// (D16, A-17).
import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { type Logger, silentLogger } from "#base/log.ts";
import { checkStorage } from "#storage/check/check-storage.ts";
import type { Drift, RecountSettings } from "#storage/contract/recount-types.ts";
import type { Storage } from "#storage/contract/storage.ts";
import { openReader } from "#storage/metadata/schema.ts";
import { PASS_DUE_CHECK_MS } from "#storage/scrub/background-pass.ts";
import { newRecountPass, RECOUNT_FOUND_LOGGED, readRecountRecord } from "#storage/scrub/recount.ts";
import { RecountReader } from "#storage/scrub/recount-reader.ts";
import { temporaryDirectory } from "#testing/temporary-folder.ts";
import { until } from "#testing/until.ts";
import { fillForRecount, NONE, PLANTED } from "./planted-drift.fixture.ts";
import { BY_OWNER, copiesOf, inodeAt, OWNER, openTestStorage } from "./store.fixture.ts";

const FAST: RecountSettings = { rowsPerSecond: 2 ** 40, pauseMs: 3_600_000 };
/** Counts everything once, on a store opened for it. */
async function recounted(directory: string, logger: Logger = silentLogger): Promise<Drift | undefined> {
  const storage = await openTestStorage(directory, { logger });
  try {
    await counted(storage);
    return storage.recountState().drift;
  } finally {
    await storage.close();
  }
}

async function counted(storage: Storage): Promise<void> {
  const before = storage.recountState().lastEndedAtMs;
  storage.startRecount(FAST);
  await until(() => storage.recountState().lastEndedAtMs !== before && !storage.recountState().isRunning);
}

const filled = copiesOf(fillForRecount);
const named = (name: string): string => `WHERE name = '${name}'`;

function change(directory: string, sql: string): void {
  // The recount that has just ended may still be writing its state.
  const db = new DatabaseSync(join(directory, "inodes.db"), {
    enableForeignKeyConstraints: false,
    timeout: 60_000,
  });
  db.exec(sql);
  db.close();
}

/** Counters that the engine on local disks alone has. */
const OF_THE_FOLDER: typeof PLANTED = {
  "the counter of the trash": [
    "UPDATE counter SET value = value + 7 WHERE name = 'trash_bytes'",
    { bytes: 7, counters: 1, trashBytes: 7 },
  ],
  "the counter of inodes": ["UPDATE counter SET value = value + 7 WHERE name = 'inodes'", { counters: 1 }],
  "the counter of chunks": ["UPDATE counter SET value = value + 7 WHERE name = 'chunks'", { counters: 1 }],
};

for (const [what, [sql, drift]] of Object.entries({ ...PLANTED, ...OF_THE_FOLDER })) {
  test(`a difference in ${what} is found while the node serves, and gone after a repair (D16, A-17)`, async (context) => {
    const directory = await filled(context);
    assert.deepEqual(await recounted(directory), NONE);
    change(directory, `${sql}; DELETE FROM meta WHERE key = 'recount'`);
    const told: string[] = [];
    const logger = { ...silentLogger, error: (event: string) => told.push(event) };
    assert.deepEqual(await recounted(directory, logger), { ...NONE, ...drift });
    assert.ok(told.includes("quota_drift"), told.join());
    checkStorage(directory, { repair: true, deep: false });
    const storage = await openTestStorage(directory);
    context.after(() => storage.close());
    assert.equal(
      storage.recountState().drift,
      undefined,
      "what was found before a repair is not said after it",
    );
    await counted(storage);
    assert.deepEqual(storage.recountState().drift, NONE);
  });
}

test("nothing is said to agree before it was counted; what is found counts at once, and until a later pass has ended", async (context) => {
  const directory = await filled(context);
  change(directory, "UPDATE root SET live_bytes = live_bytes + 7 WHERE number = 1");
  const clock = new ManualClock();
  const storage = await openTestStorage(directory, { clock });
  context.after(() => storage.close());
  assert.equal(storage.recountState().drift, undefined);
  await counted(storage);
  assert.equal(storage.recountState().drift?.bytes, 7);
  const ended = storage.recountState().lastEndedAtMs ?? 0;
  change(directory, "UPDATE root SET live_bytes = live_bytes - 7 WHERE number = 1");
  clock.advance(FAST.pauseMs - PASS_DUE_CHECK_MS);
  assert.equal(storage.recountState().isRunning, false);
  assert.equal(storage.recountState().drift?.bytes, 7);
  clock.advance(2 * PASS_DUE_CHECK_MS);
  await until(() => storage.recountState().lastEndedAtMs !== ended);
  assert.deepEqual(storage.recountState().drift, NONE);
  assert.equal(storage.recountState().lastRoots, 2);
});

test("a pass that is cut off by a restart goes on where it was, and what it has counted it does not count again", async (context) => {
  const directory = await filled(context);
  change(directory, "UPDATE root SET live_bytes = live_bytes + 7 WHERE number = 1");
  const storage = await openTestStorage(directory);
  // The first root is counted at once; its cost then delays the rest for hours.
  storage.startRecount({ ...FAST, rowsPerSecond: 0.001 });
  await until(
    () => storage.recountState().pass?.roots === 1 || (storage.recountState().pass?.position ?? 0) > 0,
  );
  await storage.close();
  const again = await openTestStorage(directory);
  context.after(() => again.close());
  const { pass, isRunning, lastEndedAtMs } = again.recountState();
  assert.deepEqual([isRunning, lastEndedAtMs, pass?.root], [false, undefined, 1]);
  // All directories of the first root have been counted: later differences in them belong to the next pass.
  change(directory, `UPDATE inode SET child_count = 9 ${named("b")}`);
  await counted(again);
  const { drift, lastRoots } = again.recountState();
  assert.deepEqual([drift, lastRoots], [{ ...NONE, bytes: 7, counters: 1, liveBytes: 7 }, 2]);
});

test("what was kept of a pass and cannot be understood is forgotten, and all is counted from the start", async (context) => {
  const directory = await filled(context);
  await recounted(directory);
  const db = new DatabaseSync(join(directory, "inodes.db"), { readOnly: true });
  const { value } = db.prepare("SELECT value FROM meta WHERE key = 'recount'").get() as { value: string };
  db.close();
  const record = readRecountRecord(value);
  assert.equal(record.lastRoots, 2);
  const never = readRecountRecord(undefined);
  assert.equal(never.lastEndedAtMs, undefined);
  const bad = ["", "{", "null", '{"pass":{}}', '{"pass":{"root":1}}', '{"lastDrift":{"bytes":"7"}}'];
  for (const text of bad) assert.deepEqual(readRecountRecord(text), never, text);
});

test("of very many wrong counters so many are logged as the limit says, and all are counted", async (context) => {
  const directory = temporaryDirectory(context);
  const storage = await openTestStorage(directory);
  const { directoryId: parentId } = await storage.createRoot({ owner: OWNER, rootId: "01ROOT" });
  const made = Array.from({ length: RECOUNT_FOUND_LOGGED + 1 }, (_, index) =>
    storage.createDirectory({ ...BY_OWNER, parentId, name: `d${index}` }),
  );
  await Promise.all(made);
  await storage.close();
  change(directory, "UPDATE inode SET child_count = 1 WHERE name LIKE 'd%'");
  let told = 0;
  const logger = { ...silentLogger, error: (event: string) => (told += event === "quota_drift" ? 1 : 0) };
  assert.equal((await recounted(directory, logger))?.counters, RECOUNT_FOUND_LOGGED + 1);
  assert.equal(told, RECOUNT_FOUND_LOGGED);
});

test("trees on their way in or out are no drift, for the recount and for the check (A-11)", async (context) => {
  const directory = await filled(context);
  const storage = await openTestStorage(directory);
  const { id } = inodeAt(storage, "a", "b");
  await storage.createDirectory({ ...BY_OWNER, parentId: id, name: "c" });
  await storage.close();
  // The state that half a purge or copy leaves.
  change(
    directory,
    `UPDATE inode SET parent_id = NULL ${named("b")}; INSERT INTO copying (inode_id) VALUES (${id});
     UPDATE inode SET size = 9, tree_inodes = 1, height = 3 ${named("b")};
     UPDATE inode SET child_count = 2, height = 2 ${named("c")};
     UPDATE inode SET size = 0, child_count = 0, tree_inodes = 0, tree_files = 0, height = 0 ${named("a")};
     UPDATE inode SET size = 0, tree_inodes = 1, tree_files = 0, height = 1 WHERE id = (SELECT directory_id FROM root LIMIT 1);
     UPDATE root SET live_bytes = 0, file_count = 0, live_inodes = (number = 1); UPDATE counter SET value = 3 WHERE name = 'inodes'`,
  );
  const report = checkStorage(directory, { repair: false, deep: false });
  assert.deepEqual(report.differences, []);
  // A start would remove them.
  const db = openReader(join(directory, "inodes.db"));
  let pass = newRecountPass(0);
  for (const step of new RecountReader(db, pass).steps()) ({ pass } = step);
  db.close();
  assert.deepEqual([pass.drift, pass.roots], [NONE, 2]);
});
