// Tests of backups and checks of data on a disk that has turned read-only.
import assert from "node:assert/strict";
import { cpSync, rmSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { systemClock } from "#base/clock.ts";
import { systemRandom } from "#base/random.ts";
import { checkStorage } from "#storage/check/check-storage.ts";
import { whileReadOnly } from "#storage/local/small-disk.fixture.ts";
import { assertSound, inodeAt, openTestStorage, readAll, refusal } from "#storage/local/store.fixture.ts";
import { temporaryDirectory } from "#testing/temporary-folder.ts";
import { type Lab, lab, make } from "./backup.fixture.ts";
import { restoreBackup } from "./backup-restore.ts";
import { listBackups, verifyBackups } from "./backup-verify.ts";

const progress = (): void => undefined;

async function assertRestores({ folder }: Pick<Lab, "folder">, target: string): Promise<void> {
  await restoreBackup({ folder, id: undefined, target, clock: systemClock, random: systemRandom, progress });
  assertSound(target);
  const storage = await openTestStorage(target);
  assert.equal((await readAll(storage, inodeAt(storage, "large").id)).length, 700_000);
  await storage.close();
}

test("data on a disk that has turned read-only is checked and backed up, whether its node was ended or still serves it (A-09)", async (context) => {
  const here = await lab(context);
  const target = temporaryDirectory(context);
  await whileReadOnly(context, here.directory, async () => {
    assert.deepEqual((await make(here)).problems, []);
  });
  await here.storage.close();
  await whileReadOnly(context, here.directory, async () => {
    const { id, problems } = await make(here);
    assert.deepEqual(problems, []);
    assert.match(id, /^000002-/);
    assert.deepEqual(checkStorage(here.directory, { repair: false, deep: true }).differences, []);
    assert.throws(
      () => checkStorage(here.directory, { repair: true, deep: false }),
      (error) =>
        refusal("STORAGE_FAILED")(error) && /read-only, where nothing can be repaired/.test(String(error)),
    );
  });
  await assertRestores(here, join(target, "data"));
});

test("a read-only disk with backups is listed, verified and restored from (A-09)", async (context) => {
  const here = await lab(context);
  const target = temporaryDirectory(context);
  await make(here);
  await whileReadOnly(context, here.folder, async () => {
    assert.deepEqual(
      listBackups(here.folder).map(({ problem }) => problem),
      [undefined],
    );
    assert.equal(verifyBackups(here.folder, { id: undefined, progress }).problemCount, 0);
    await assertRestores(here, join(target, "data"));
  });
});

test("changes in a log that nobody can read on such a disk are told, and not left out of a backup (A-09)", async (context) => {
  const here = await lab(context);
  // As after a power cut, without the index of the log that SQLite then makes anew.
  const directory = join(temporaryDirectory(context), "cut");
  cpSync(here.directory, directory, { recursive: true });
  rmSync(join(directory, "inodes.db-shm"));
  await whileReadOnly(context, directory, async () => {
    const told = (error: unknown): boolean =>
      refusal("STORAGE_FAILED")(error) && /copy the folder to another disk/.test(String(error));
    await assert.rejects(make({ ...here, directory }), told);
    assert.throws(() => checkStorage(directory, { repair: false, deep: false }), told);
  });
});
