// Tests of the way back of a data directory's schema: what it keeps, loses, and refuses to lose.
import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import {
  assertSound,
  OWNER,
  openTestStorage,
  patterned,
  refusal,
  upload,
} from "#storage/local/store.fixture.ts";
import { SCHEMA_VERSION } from "#storage/metadata/schema.ts";
import { OLDEST_WAY_BACK } from "#storage/metadata/schema-back.ts";
import { temporaryDirectory } from "#testing/temporary-folder.ts";
import { downgradeData, schemaOfRelease } from "./downgrade.ts";

async function filled(directory: string): Promise<void> {
  const storage = await openTestStorage(directory);
  const { directoryId: parentId } = await storage.createRoot({ owner: OWNER, rootId: "01ROOT" });
  await upload(storage, { parentId, name: "f", bytes: patterned(200_000) });
  await storage.close();
}

function changed(directory: string, sql: string): void {
  const db = new DatabaseSync(join(directory, "inodes.db"));
  db.exec(sql);
  db.close();
}

function schemaOf(directory: string): unknown {
  const db = new DatabaseSync(join(directory, "inodes.db"), { readOnly: true });
  const version = db.prepare("PRAGMA user_version").get()?.["user_version"];
  db.close();
  return version;
}

test("data goes back to every schema since the first release, and forth again, with a copy each time", async (context) => {
  for (let schema = OLDEST_WAY_BACK; schema < SCHEMA_VERSION; schema++) {
    const directory = temporaryDirectory(context);
    await filled(directory);
    assert.deepEqual(downgradeData(directory, schema), []);
    assert.equal(schemaOf(directory), schema);
    // A run that was cut behind this step is gone on with.
    assert.deepEqual(downgradeData(directory, schema), []);
    await (await openTestStorage(directory)).close();
    assert.equal(schemaOf(directory), SCHEMA_VERSION);
    const copy = new DatabaseSync(join(directory, `inodes.db.schema-${schema}`), { readOnly: true });
    assert.equal(copy.prepare("PRAGMA user_version").get()?.["user_version"], schema);
    assert.equal(copy.prepare("SELECT count(*) AS n FROM root").get()?.["n"], 1);
    copy.close();
    assertSound(directory);
  }
});

test("what the older Grove cannot keep is named, and what it would open or serve twice is refused unchanged", async (context) => {
  const directory = temporaryDirectory(context);
  await filled(directory);
  const { db, inode } = { db: directory, inode: "(SELECT max(id) FROM inode)" };
  changed(db, `INSERT INTO property VALUES (${inode}, 'DAV:', 'colour', '<a/>')`);
  changed(
    db,
    `INSERT INTO link VALUES ('k', 1, ${inode}, 'h', 'read', '', '', 0, 0, 0, 0, 0, 0, 0, 0, '[]')`,
  );
  changed(db, "INSERT INTO root_place VALUES ('R', 'o', 'm', 0, 'n2', 'a'), ('S', 'o', 'm', 1, '', '')");
  assert.deepEqual(downgradeData(directory, SCHEMA_VERSION - 3), [
    "1 notes of roots that have moved away",
    "1 links for people without an account",
    "1 properties of WebDAV programs",
  ]);
  await (await openTestStorage(directory)).close();
  changed(
    db,
    `INSERT INTO share_grant (inode_id, username, granted_by, granted_at_ms, excluded) VALUES (${inode}, 'b', 'a', 0, 1)`,
  );
  assert.throws(() => downgradeData(directory, OLDEST_WAY_BACK), refusal("NOT_EMPTY"));
  changed(
    db,
    "DELETE FROM share_grant; INSERT INTO root_move VALUES ('m', 1, 'o', 'departed', 'a', '', 1, 1)",
  );
  assert.throws(() => downgradeData(directory, OLDEST_WAY_BACK), refusal("NOT_EMPTY"));
  assert.equal(schemaOf(directory), SCHEMA_VERSION);
});

test("a folder in use, one without data, and a schema without a way back are refused", async (context) => {
  const directory = temporaryDirectory(context);
  const storage = await openTestStorage(directory);
  assert.throws(() => downgradeData(directory, OLDEST_WAY_BACK), refusal("DATA_IN_USE"));
  await storage.close();
  for (const schema of [0, OLDEST_WAY_BACK - 1, SCHEMA_VERSION + 1]) {
    assert.throws(() => downgradeData(directory, schema), refusal("BAD_ARGUMENT"));
  }
  assert.throws(() => downgradeData(temporaryDirectory(context), 7), refusal("NO_SUCH_PATH"));
  assert.equal(schemaOfRelease("0.1.0"), 7);
  assert.throws(() => schemaOfRelease("9.9.9"), refusal("BAD_ARGUMENT"));
});
