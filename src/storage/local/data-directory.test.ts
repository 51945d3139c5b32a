// Tests of data directories: made, locked, recognised, refused.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { isOldSqlite } from "#storage/metadata/schema.ts";
import { temporaryDirectory } from "#testing/temporary-folder.ts";
import {
  assertSound,
  BY_OWNER,
  OWNER,
  openTestStorage,
  patterned,
  refusal,
  upload,
} from "./store.fixture.ts";

async function filled(directory: string): Promise<void> {
  const storage = await openTestStorage(directory);
  const { directoryId: parentId } = await storage.createRoot({ owner: OWNER, rootId: "01ROOT" });
  await upload(storage, { parentId, name: "f", bytes: patterned(100_000) });
  await storage.close();
}

/** Asserts a refusal whose text gives advice. */
function refusedBecause(
  text: RegExp,
  code: "STORAGE_FAILED" | "BAD_ARGUMENT" = "STORAGE_FAILED",
): (error: unknown) => boolean {
  return (error) => refusal(code)(error) && text.test(String(error));
}

test("a data directory is its owner's alone, and keeps its identity", async (context) => {
  const directory = join(temporaryDirectory(context), "deep", "data");
  const first = await openTestStorage(directory);
  const { dataId } = first;
  assert.match(dataId, /^[0-9A-Z]{26}$/);
  assert.equal(statSync(directory).mode & 0o777, 0o700);
  for (const file of ["inodes.db", "inodes.db-wal", "identity.json", "grove.lock"]) {
    assert.equal(statSync(join(directory, file)).mode & 0o777, 0o600, file);
  }
  await first.close();
  chmodSync(directory, 0o755);
  const second = await openTestStorage(directory);
  assert.equal(second.dataId, dataId);
  assert.equal(statSync(directory).mode & 0o777, 0o700);
  await second.close();
});

test("a second process on the directory is refused while the first lives, whatever ends it (A-19)", async (context) => {
  const directory = temporaryDirectory(context);
  await filled(directory);
  const holder = fileURLToPath(new URL("./lock-holder.fixture.ts", import.meta.url));
  const child = spawn(process.execPath, [holder, directory], { stdio: ["ignore", "pipe", "inherit"] });
  await new Promise((resolve) => child.stdout.once("data", resolve));
  await assert.rejects(openTestStorage(directory), refusal("DATA_IN_USE"));
  assert.throws(() => assertSound(directory), refusal("DATA_IN_USE"));
  const exited = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGKILL");
  await exited;
  const storage = await openTestStorage(directory);
  await assert.rejects(openTestStorage(directory), refusal("DATA_IN_USE"));
  await storage.createDirectory({ ...BY_OWNER, parentId: storage.root(OWNER)?.directoryId ?? 0, name: "a" });
  await storage.close();
  assertSound(directory);
});

test("files without their identity or database are refused, never taken for an empty directory (A-20)", async (context) => {
  const directory = temporaryDirectory(context);
  await filled(directory);
  const path = (name: string): string => join(directory, name);
  renameSync(path("identity.json"), path("away"));
  await assert.rejects(openTestStorage(directory), refusedBecause(/identity\.json is missing/));
  renameSync(path("inodes.db"), path("away.db"));
  await assert.rejects(openTestStorage(directory), refusedBecause(/identity\.json is missing/));
  renameSync(path("away"), path("identity.json"));
  await assert.rejects(openTestStorage(directory), refusedBecause(/inodes\.db is missing/));
  assert.equal(existsSync(path("inodes.db")), false);
  writeFileSync(path("inodes.db"), "");
  await assert.rejects(openTestStorage(directory), refusedBecause(/inodes\.db is empty.*from a backup/));
  writeFileSync(path("inodes.db"), "no database".repeat(1_000));
  await assert.rejects(openTestStorage(directory), refusedBecause(/damaged: restore the newest backup/));
  renameSync(path("away.db"), path("inodes.db"));
  renameSync(path("chunks"), path("away"));
  await assert.rejects(openTestStorage(directory), refusedBecause(/chunks is missing.*mount its disk/));
  renameSync(path("away"), path("chunks"));
  writeFileSync(path("identity.json"), '{"schema":1');
  await assert.rejects(openTestStorage(directory), refusedBecause(/damaged/));
  for (const strange of [
    "null",
    '{"schema":0,"data_id":"01ARZ3NDEKTSV4RRFFQ69G5FAV"}',
    '{"schema":1.5,"data_id":"01ARZ3NDEKTSV4RRFFQ69G5FAV"}',
    '{"schema":"1","data_id":"01ARZ3NDEKTSV4RRFFQ69G5FAV"}',
    '{"schema":1}',
    '{"schema":1,"data_id":"../elsewhere"}',
  ]) {
    writeFileSync(path("identity.json"), strange);
    await assert.rejects(openTestStorage(directory), refusedBecause(/damaged/), strange);
  }
  writeFileSync(path("identity.json"), '{"schema":1,"data_id":"01ARZ3NDEKTSV4RRFFQ69G5FAV"}');
  await assert.rejects(openTestStorage(directory), refusedBecause(/different data directories/));
  writeFileSync(path("identity.json"), '{"schema":2,"data_id":"01ARZ3NDEKTSV4RRFFQ69G5FAV"}');
  await assert.rejects(openTestStorage(directory), refusedBecause(/newer Grove/, "BAD_ARGUMENT"));
});

test("a database that says of no data that it is theirs is refused beside an identity (A-20)", async (context) => {
  const directory = temporaryDirectory(context);
  await filled(directory);
  const db = new DatabaseSync(join(directory, "inodes.db"));
  db.exec("DELETE FROM meta WHERE key = 'data_id'");
  db.close();
  await assert.rejects(openTestStorage(directory), refusedBecause(/\(none\)/));
});

test("a first start that was cut off at any step is begun again", async (context) => {
  const whole = temporaryDirectory(context);
  await filled(whole);
  const empty = temporaryDirectory(context);
  mkdirSync(join(empty, "chunks", "00"), { recursive: true });
  await (await openTestStorage(empty)).close();
  rmSync(join(empty, "identity.json"));
  const withDatabase = await openTestStorage(empty);
  await withDatabase.close();
  const identity = JSON.parse(readFileSync(join(empty, "identity.json"), "utf8")) as { data_id: string };
  assert.equal(identity.data_id, withDatabase.dataId);
  rmSync(join(empty, "identity.json"));
  writeFileSync(join(empty, "inodes.db"), "");
  rmSync(join(empty, "inodes.db-wal"), { force: true });
  await (await openTestStorage(empty)).close();
});

test("a database of a newer schema or of another program is refused (A-20)", async (context) => {
  const directory = temporaryDirectory(context);
  await filled(directory);
  const change = (sql: string): void => {
    const db = new DatabaseSync(join(directory, "inodes.db"));
    db.exec(sql);
    db.close();
  };
  change("PRAGMA user_version = 99");
  await assert.rejects(
    openTestStorage(directory),
    refusedBecause(/schema 99 .* newer Grove/, "BAD_ARGUMENT"),
  );
  change("PRAGMA user_version = 1; PRAGMA application_id = 7");
  await assert.rejects(openTestStorage(directory), refusedBecause(/not one of Grove's/));
});

test("SQLite before 3.51.3 is not trusted (A-13)", () => {
  for (const version of ["3.51.2", "3.40.1", "2.99.99", "3.51"])
    assert.equal(isOldSqlite(version), true, version);
  for (const version of ["3.51.3", "3.52.0", "4.0.0", "3.53.4"])
    assert.equal(isOldSqlite(version), false, version);
});

test("the space that Grove 0.1.0 kept as `slack` is kept as `ballast`, and not twice", async (context) => {
  const directory = temporaryDirectory(context);
  const [ballast, slack] = [join(directory, "ballast"), join(directory, "slack")];
  const ballastBytes = 65_536;
  const first = await openTestStorage(directory, { ballastBytes });
  await first.close();
  renameSync(ballast, slack);
  const { ino } = statSync(slack);
  const second = await openTestStorage(directory, { ballastBytes });
  assert.equal(existsSync(slack), false);
  assert.deepEqual([statSync(ballast).ino, statSync(ballast).size], [ino, ballastBytes]);
  await second.close();
  // Where both are there, as after a run of a Grove that knew nothing of the older name.
  writeFileSync(slack, Buffer.alloc(ballastBytes));
  const third = await openTestStorage(directory, { ballastBytes });
  assert.deepEqual([existsSync(slack), statSync(ballast).size], [false, ballastBytes]);
  await third.close();
  assertSound(directory);
});
