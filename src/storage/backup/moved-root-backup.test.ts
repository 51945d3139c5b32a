// Tests of backups that were taken while a root moved: what a restored node has of it.
import assert from "node:assert/strict";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { systemRandom } from "#base/random.ts";
import {
  fillRoot,
  MOVE,
  NUMBER,
  portrait,
  pullAll,
  put,
  Side,
  switchOver,
} from "#storage/local/moved-root.fixture.ts";
import {
  assertSound,
  chunkFiles,
  OWNER,
  openTestStorage,
  patterned,
  query,
} from "#storage/local/store.fixture.ts";
import { temporaryDirectory } from "#testing/temporary-folder.ts";
import { until } from "#testing/until.ts";
import { createBackup } from "./backup-create.ts";
import { restoreBackup } from "./backup-restore.ts";

const MOVED = { moveId: MOVE, owner: OWNER };

/** The two sides after the first pulls. */
async function halfWay(context: TestContext): Promise<[Side, Side]> {
  const [from, to] = [await Side.open(context), await Side.open(context)];
  context.after(() => Promise.all([from.storage.close(), to.storage.close()]));
  await fillRoot(from.storage);
  await from.storage.moves.beginExport(MOVED);
  await to.storage.moves.beginImport({ ...MOVED, numbers: [NUMBER] });
  await pullAll(from, to);
  return [from, to];
}

/** Takes a backup of a side and restores it into another folder. */
async function restored(context: TestContext, { directory }: Side): Promise<string> {
  const top = temporaryDirectory(context);
  const [folder, target] = [join(top, "backups"), join(top, "data")];
  const flags = { keys: false, copies: false, full: false };
  const rest = { nowMs: () => 1_790_000_000_000, progress: () => undefined };
  await createBackup({ directory, folder, ...flags, ...rest });
  const clock = new ManualClock();
  await restoreBackup({
    folder,
    id: undefined,
    target,
    clock,
    random: systemRandom,
    progress: () => undefined,
  });
  return target;
}

for (const state of ["copying", "frozen"] as const) {
  test(`a root that was ${state} at its source is served after a restore, takes changes, and can move again`, async (context) => {
    const [from] = await halfWay(context);
    const before = await portrait(from.storage);
    if (state === "frozen") await from.storage.moves.freeze(MOVE);
    const target = await restored(context, from);
    const storage = await openTestStorage(target);
    assert.deepEqual(storage.moves.list(), []);
    assert.deepEqual(await portrait(storage), before);
    await put(storage, storage.root(OWNER)?.directoryId ?? 0, "after", patterned(9));
    await storage.moves.beginExport({ ...MOVED, moveId: "02MOVE" });
    await storage.moves.endExport("02MOVE");
    await storage.close();
    assert.deepEqual(query(target, "SELECT 1 FROM move_bucket"), []);
    assertSound(target);
  });
}

test("what had not arrived whole at its target is no longer that move's after a restore, and is removed without a trace", async (context) => {
  const [, to] = await halfWay(context);
  const target = await restored(context, to);
  const storage = await openTestStorage(target);
  const [local] = storage.moves.list();
  assert.deepEqual([local?.moveId, local?.state, local?.head], [`restored:${MOVE}`, "arriving", ""]);
  assert.deepEqual(storage.roots(), []);
  await storage.moves.endImport(local?.moveId ?? "");
  await until(() => query(target, "SELECT 1 FROM inode").length === 0 && chunkFiles(target).length === 0);
  await storage.close();
  assertSound(target);
});

test("a root that had departed stays so after a restore, with its files, and one that had arrived is served", async (context) => {
  const [from, to] = await halfWay(context);
  await switchOver(from, to);
  const before = await portrait(to.storage);
  const [source, target] = [await restored(context, from), await restored(context, to)];
  const left = await openTestStorage(source);
  assert.deepEqual(
    left.moves.list().map(({ moveId, state }) => [moveId, state]),
    [[MOVE, "departed"]],
  );
  assert.ok(chunkFiles(source).length > 0);
  const come = await openTestStorage(target);
  assert.deepEqual([come.moves.list(), await portrait(come)], [[], before]);
  await Promise.all([left.close(), come.close()]);
  assertSound(source);
  assertSound(target);
});
