// Tests of the check of names: it finds those that no path can hold, and its repairs lose nothing.
import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { checkStorage } from "#storage/check/check-storage.ts";
import { DATABASE_FILE } from "#storage/metadata/schema.ts";
import { assertSound, copiesOf, OWNER, patterned, upload } from "./store.fixture.ts";

const filled = copiesOf(async (storage) => {
  const { directoryId: parentId } = await storage.createRoot({ owner: OWNER, rootId: "01ROOT" });
  await upload(storage, { parentId, name: "small", bytes: patterned(1_000) });
});

function change(directory: string, sql: string): void {
  const db = new DatabaseSync(join(directory, DATABASE_FILE));
  db.exec(sql);
  db.close();
}

test("names that no path can hold are told, and changed by a repair; what they name stays (A-17)", async (context) => {
  const names = [
    "..",
    ".",
    "",
    "x/y",
    "x\u0001",
    "x\u001f",
    "x\u007f",
    "x\u009f",
    "x\ufffd",
    "\u00e4".repeat(128),
  ];
  const directory = await filled(context);
  for (const name of names) {
    change(
      directory,
      `UPDATE inode SET name = CAST(x'${Buffer.from(name).toString("hex")}' AS TEXT) WHERE name = 'small'`,
    );
    assert.match(
      checkStorage(directory, { repair: false, deep: false }).differences.join("\n"),
      /:\/.* \(inode \d+\) has a name that no path can hold/s,
      JSON.stringify(name),
    );
    assert.equal(checkStorage(directory, { repair: true, deep: false }).repairedCount, 1);
    assertSound(directory);
    change(directory, "UPDATE inode SET name = 'small' WHERE name GLOB 'name-[0-9]*'");
  }
  for (const name of ["\u00a0", "...", "-", "[", "]", "^", "~", " ", "\u00e4".repeat(127)]) {
    change(
      directory,
      `UPDATE inode SET name = '${name}' WHERE id = (SELECT id FROM inode WHERE size = 1000)`,
    );
    assertSound(directory);
  }
});
