// Tests of the check of the trash: it finds planted differences, and its repairs lose nothing.
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type TestContext, test } from "node:test";
import { checkStorage } from "#storage/check/check-storage.ts";
import { DATABASE_FILE } from "#storage/metadata/schema.ts";
import { temporaryDirectory } from "#testing/temporary-folder.ts";
import {
  assertSound,
  BY_OWNER,
  chunkFiles,
  OWNER,
  openTestStorage,
  patterned,
  upload,
} from "./store.fixture.ts";

/** A directory with a formerly shared folder of 700,000 bytes in the trash, and a live one beside it. */
async function filled(context: TestContext): Promise<string> {
  const directory = temporaryDirectory(context);
  const storage = await openTestStorage(directory);
  const { directoryId } = await storage.createRoot({ owner: OWNER, rootId: "01ROOT" });
  await storage.createDirectory({ ...BY_OWNER, parentId: directoryId, name: "live" });
  const { inode } = await storage.createDirectory({ ...BY_OWNER, parentId: directoryId, name: "gone" });
  await upload(storage, { parentId: inode.id, name: "large", bytes: patterned(700_000) });
  const owner = { owner: OWNER, by: OWNER, accessVersion: undefined };
  await storage.shares.grant({ ...owner, inodeId: inode.id, username: "bob@example.com" });
  await storage.trash({ ...owner, inodeId: inode.id });
  await storage.close();
  assertSound(directory);
  return directory;
}

function change(directory: string, sql: string): void {
  const db = new DatabaseSync(join(directory, DATABASE_FILE), { enableForeignKeyConstraints: false });
  db.exec(sql);
  db.close();
}

const GONE = "(SELECT id FROM inode WHERE name = 'gone')";
const ROWS: Readonly<Record<string, { sql: string; text: RegExp; isLeftToPeople?: true; inTrash?: number }>> =
  {
    "a root's trash": {
      sql: "UPDATE root SET trash_bytes = 5",
      text: /says 5 bytes in the trash; it is 700000/,
    },
    "the counter of the trash": {
      sql: "UPDATE counter SET value = 5 WHERE name = 'trash_bytes'",
      text: /trash_bytes says 5; there are 700000/,
    },
    "an item's size": {
      sql: "UPDATE inode SET size = 1 WHERE name = 'gone'",
      text: /says 1 bytes.*its entries sum up to 700000/,
    },
    "an item that hangs in the tree": {
      sql: `UPDATE inode SET parent_id = (SELECT id FROM inode WHERE name = 'live') WHERE name = 'gone'`,
      text: /is in the tree as well/,
      inTrash: 0,
    },
    "a share in the trash": {
      sql: `INSERT INTO share_grant (inode_id, username, granted_by, granted_at_ms, owner, path)
      VALUES (${GONE}, 'eve@example.com', '${OWNER}', 0, '${OWNER}', '/gone');
      UPDATE inode SET flags = flags | 2 WHERE name = 'gone'; UPDATE root SET grant_count = 1`,
      text: /lies in the trash and is shared/,
    },
    "an item that nobody can find": {
      sql: "DELETE FROM trash_grant; DELETE FROM trash",
      text: /is detached, and nothing is going to remove it/,
      isLeftToPeople: true,
    },
    "an item in another's trash": {
      sql: "UPDATE trash SET root_number = 7; UPDATE trash_grant SET root_number = 7",
      text: /is in another user's trash/,
      isLeftToPeople: true,
    },
  };

for (const [what, { sql, text, isLeftToPeople, inTrash = 700_000 }] of Object.entries(ROWS)) {
  test(`${what} is found${isLeftToPeople ? " and told" : ", told and repaired"} (A-17)`, async (context) => {
    const directory = await filled(context);
    change(directory, sql);
    const found = checkStorage(directory, { repair: false, deep: true });
    assert.ok(
      found.differences.some((difference) => text.test(difference)),
      found.differences.join("\n"),
    );
    if (isLeftToPeople) return;
    checkStorage(directory, { repair: true, deep: false });
    // A second repair fixes the differences that the first one uncovers.
    checkStorage(directory, { repair: true, deep: false });
    assertSound(directory);
    const storage = await openTestStorage(directory);
    assert.equal(storage.root(OWNER)?.usage.trashBytes, inTrash);
    assert.equal(storage.facts().trashBytes, inTrash);
    await storage.close();
    assertSound(directory);
  });
}

test("what is damaged in the trash is named by the place that it came from, and a circle by each name once", async (context) => {
  const directory = await filled(context);
  for (const path of chunkFiles(directory)) rmSync(path);
  const { differences } = checkStorage(directory, { repair: false, deep: false });
  assert.match(
    differences.join("\n"),
    new RegExp(`^${OWNER}:/gone/large \\(in the trash\\): chunk \\w+ has no file$`, "u"),
  );
  change(directory, "UPDATE inode SET parent_id = id, size = 1 WHERE name = 'live'");
  const circle = checkStorage(directory, { repair: false, deep: false }).differences;
  assert.ok(circle.some((line) => line.startsWith(`${OWNER}:/live: says 1 bytes`)));
});
