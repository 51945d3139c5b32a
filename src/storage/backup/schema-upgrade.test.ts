// Tests that a data directory of every older schema is upgraded at its first start, in one step, without loss
// and that a backup of it restores to the present one.
import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type TestContext, test } from "node:test";
import { systemClock } from "#base/clock.ts";
import { systemRandom } from "#base/random.ts";
import {
  assertSound,
  BY_OWNER,
  inodeAt,
  OWNER,
  openTestStorage,
  patterned,
  readAll,
  refusal,
  upload,
} from "#storage/local/store.fixture.ts";
import { SCHEMA_VERSION } from "#storage/metadata/schema.ts";
import { STEPS_BACK } from "#storage/metadata/schema-back.ts";
import { temporaryDirectory } from "#testing/temporary-folder.ts";
import { lab, make } from "./backup.fixture.ts";
import { createBackup } from "./backup-create.ts";
import { sealOf, writeManifest } from "./backup-manifest.ts";
import { type RestoreReport, restoreBackup } from "./backup-restore.ts";

/** Turns each schema back into the version before, the newest first. */
const DOWNGRADES: readonly string[] = [
  ...STEPS_BACK.map(({ sql }) => sql),
  "ALTER TABLE trash_grant DROP COLUMN path",
  "DROP TABLE copying",
  "DROP TABLE upload",
  "DROP TABLE damaged_chunk; DROP INDEX inode_by_content; DROP INDEX damaged_inode",
  `DROP INDEX share_grant_by_user; DROP INDEX share_grant_by_path;
   ALTER TABLE share_grant DROP COLUMN owner; ALTER TABLE share_grant DROP COLUMN path`,
  "DROP TABLE trash_grant; DROP TABLE trash",
];

test("there is a way back from every schema, so that each is upgraded below", () => {
  assert.equal(DOWNGRADES.length, SCHEMA_VERSION - 1);
});

for (let version = 1; version < SCHEMA_VERSION; version++) {
  test(`a data directory of schema ${version} keeps its files and serves everything that came since`, async (context) => {
    const directory = temporaryDirectory(context);
    const before = await openTestStorage(directory);
    const { directoryId: parentId } = await before.createRoot({ owner: OWNER, rootId: "01ROOT" });
    await upload(before, { parentId, name: "large", bytes: patterned(200_000) });
    await before.createFile({ ...BY_OWNER, parentId, name: "small", data: patterned(100), mtimeMs: 5 });
    const { inode: outer } = await before.createDirectory({ ...BY_OWNER, parentId, name: "outer" });
    const nested = { ...BY_OWNER, parentId: outer.id };
    const { inode: inner } = await before.createDirectory({ ...nested, name: "inner" });
    await before.createDirectory({ ...nested, name: "empty" });
    await before.createFile({
      ...BY_OWNER,
      parentId: inner.id,
      name: "deep",
      data: patterned(9),
      mtimeMs: 0,
    });
    const { dataId } = before;
    await before.close();
    const db = new DatabaseSync(join(directory, "inodes.db"));
    for (const sql of DOWNGRADES.slice(0, SCHEMA_VERSION - version)) db.exec(sql);
    db.exec(`PRAGMA user_version = ${version}`);
    db.close();
    // Neither a check nor a backup upgrades: both may serve inspection only.
    assert.throws(() => assertSound(directory), refusal("STORAGE_FAILED"));
    const order = {
      keys: false,
      copies: false,
      full: false,
      nowMs: () => 0,
      progress: () => undefined,
    };
    const folder = join(temporaryDirectory(context), "backups");
    await assert.rejects(createBackup({ ...order, directory, folder }), refusal("BAD_ARGUMENT"));

    const storage = await openTestStorage(directory);
    assert.equal(storage.dataId, dataId);
    assert.ok((await readAll(storage, inodeAt(storage, "large").id)).equals(patterned(200_000)));
    assert.ok((await readAll(storage, inodeAt(storage, "small").id)).equals(patterned(100)));
    await storage.trash({ ...BY_OWNER, inodeId: inodeAt(storage, "small").id });
    const grant = { owner: OWNER, by: OWNER, accessVersion: undefined, username: "bob@example.com" };
    await storage.shares.grant({ ...grant, inodeId: inodeAt(storage, "large").id });
    assert.deepEqual(storage.shares.ofRoot(OWNER), [{ path: "/large", username: "bob@example.com" }]);
    await storage.shares.grant({ ...grant, inodeId: parentId });
    await storage.shares.revoke({ ...grant, inodeId: inodeAt(storage, "large").id });
    assert.deepEqual(storage.resolve(OWNER, ["large"]).shared, []);
    await storage.close();
    assertSound(directory);
  });
}

/** Restores a backup whose database the given statements have changed before its manifest was written. */
async function restoredAfter(context: TestContext, sql: string): Promise<RestoreReport & { target: string }> {
  const here = await lab(context);
  const { id, manifest } = await make(here);
  const path = join(here.folder, "backups", id, "inodes.db");
  const db = new DatabaseSync(path);
  db.exec(sql);
  db.close();
  const files = manifest.files.map((file) =>
    file.path === "inodes.db" ? { path: file.path, ...sealOf(path) } : file,
  );
  await writeManifest(join(here.folder, "backups", id), { ...manifest, files });
  const target = join(here.folder, "..", "restored");
  const deps = { clock: systemClock, random: systemRandom, progress: () => undefined };
  return { target, ...(await restoreBackup({ ...deps, folder: here.folder, id, target })) };
}

for (let version = 1; version < SCHEMA_VERSION; version++) {
  test(`a backup of schema ${version} restores to the present one, with its files and a new identity`, async (context) => {
    const steps = DOWNGRADES.slice(0, SCHEMA_VERSION - version).join(";");
    const { target, dataId, problems } = await restoredAfter(
      context,
      `${steps}; PRAGMA user_version = ${version}`,
    );
    assert.deepEqual(problems, []);
    assertSound(target);
    const storage = await openTestStorage(target);
    context.after(() => storage.close());
    assert.equal(storage.dataId, dataId);
    assert.ok((await readAll(storage, inodeAt(storage, "large").id)).equals(patterned(700_000)));
    assert.ok((await readAll(storage, inodeAt(storage, "small").id)).equals(patterned(1_000)));
  });
}

test("a restore that fails in the database tells why, not what its own end met", async (context) => {
  await assert.rejects(restoredAfter(context, "DROP TABLE root_move"), /no such table: root_move/);
});
