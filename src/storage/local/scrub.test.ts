// Tests of the scrub: finds, marks of all files with a chunk, resumption after a restart, and the next pass
//
import assert from "node:assert/strict";
import { copyFileSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type TestContext, test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import type { ScrubSettings } from "#storage/contract/scrub-types.ts";
import type { Storage } from "#storage/contract/storage.ts";
import { PASS_DUE_CHECK_MS } from "#storage/scrub/background-pass.ts";
import { readScrubRecord } from "#storage/scrub/scrub.ts";
import { temporaryDirectory } from "#testing/temporary-folder.ts";
import { until } from "#testing/until.ts";
import {
  BY_OWNER,
  chunkFiles,
  freshStorage,
  inodeAt,
  OWNER,
  openTestStorage,
  patterned,
  readAll,
  refusal,
  upload,
} from "./store.fixture.ts";

const FAST: ScrubSettings = { bytesPerSecond: 2 ** 40, pauseMs: 86_400_000 };
/** Slow enough never to end a chunk. */
const SLOW: ScrubSettings = { ...FAST, bytesPerSecond: 1_000 };

async function pass(storage: Storage): Promise<void> {
  const before = storage.scrubState().lastEndedAtMs;
  storage.startScrub(FAST);
  await until(() => storage.scrubState().lastEndedAtMs !== before && !storage.scrubState().isRunning);
}

const DAMAGES: Readonly<Record<string, (path: string, other: string) => void>> = {
  "a flipped bit": (path) => {
    const bytes = readFileSync(path);
    bytes[299_999] = (bytes[299_999] ?? 0) ^ 1;
    writeFileSync(path, bytes);
  },
  "a cut end": (path) => truncateSync(path, 299_999),
  "bytes too many": (path) => truncateSync(path, 300_001),
  "no bytes": (path) => truncateSync(path, 0),
  "no file": (path) => rmSync(path),
  "another chunk's bytes": (path, other) => copyFileSync(other, path),
};

for (const [what, damage] of Object.entries(DAMAGES)) {
  test(`${what} in a chunk that nobody reads is found by the scrub, in the trash too`, async (context) => {
    const { storage, directory, parentId } = await opened(context);
    for (const name of ["bad", "binned", "good"]) {
      const before = new Set(chunkFiles(directory));
      const { inode } = await upload(storage, { parentId, name, bytes: patterned(300_000, name.length) });
      if (name === "good") continue;
      if (name === "binned") await storage.trash({ ...BY_OWNER, inodeId: inode.id });
      const [other = ""] = before;
      damage(
        chunkFiles(directory).find((path) => !before.has(path)) ?? "",
        other === "" ? "/etc/hostname" : other,
      );
    }
    const told: number[] = [];
    storage.onDamage(({ files }) => told.push(files));
    await pass(storage);
    await until(() => told.length === 2);
    const { count, listed } = storage.damagedFiles();
    assert.equal(count, 2);
    assert.deepEqual(
      listed.map(({ owner, path, isTrashed, sizeBytes }) => [owner, path, isTrashed, sizeBytes]),
      [
        [OWNER, "/bad", false, 300_000],
        [OWNER, "/binned", true, 300_000],
      ],
    );
    assert.equal(storage.damageFoundTotal, 2);
    const { lastFound, lastReadBytes } = storage.scrubState();
    assert.equal(lastFound, 2);
    assert.ok(lastReadBytes >= 300_000);
    await assert.rejects(readAll(storage, inodeAt(storage, "bad").id), refusal("CORRUPT"));
    assert.ok((await readAll(storage, inodeAt(storage, "good").id)).equals(patterned(300_000, 4)));
  });
}

async function opened(
  context: TestContext,
): Promise<{ storage: Storage; directory: string; parentId: number }> {
  const { storage, directory, rootDirectoryId } = await freshStorage(context, { isCheckedAfterwards: false });
  return { storage, directory, parentId: rootDirectoryId };
}

test("changed, short and missing bytes of small files are found by the scrub", async (context) => {
  const directory = temporaryDirectory(context);
  const first = await openTestStorage(directory);
  const { directoryId: parentId } = await first.createRoot({ owner: OWNER, rootId: "01ROOT" });
  for (const name of ["flipped", "short", "gone", "good", "empty"]) {
    const data = name === "empty" ? Buffer.alloc(0) : patterned(1_000);
    await first.createFile({ ...BY_OWNER, parentId, name, data, mtimeMs: 0 });
  }
  await first.close();
  const db = new DatabaseSync(join(directory, "inodes.db"));
  const where = (name: string): string => `WHERE inode_id = (SELECT id FROM inode WHERE name = '${name}')`;
  db.exec(`UPDATE inline_content SET data = zeroblob(1000) ${where("flipped")};
    UPDATE inline_content SET data = substr(data, 1, 999) ${where("short")};
    DELETE FROM inline_content ${where("gone")}`);
  db.close();
  const storage = await openTestStorage(directory);
  context.after(() => storage.close());
  await pass(storage);
  await until(() => storage.damagedFiles().count === 3);
  assert.deepEqual(
    storage.damagedFiles().listed.map(({ path }) => path),
    ["/flipped", "/short", "/gone"],
  );
  assert.equal(inodeAt(storage, "good").damaged, false);
});

test("a damaged page of the database is found by the scrub, and ends all changes until somebody looks (A-13)", async (context) => {
  const directory = temporaryDirectory(context);
  const first = await openTestStorage(directory);
  const { directoryId: parentId } = await first.createRoot({ owner: OWNER, rootId: "01ROOT" });
  for (let index = 0; index < 300; index++) {
    await first.createDirectory({ ...BY_OWNER, parentId, name: `folder-${index}` });
  }
  await first.close();
  const path = join(directory, "inodes.db");
  const bytes = readFileSync(path);
  const at = bytes.lastIndexOf("folder-150");
  bytes[at] = 0x46;
  writeFileSync(path, bytes);
  const storage = await openTestStorage(directory);
  context.after(() => storage.close());
  storage.startScrub(FAST);
  await until(() => storage.failure !== undefined);
  assert.match(storage.failure ?? "", /the database is damaged .*restore a backup/);
  assert.ok(storage.root(OWNER));
});

test("what was kept of a pass and cannot be understood is forgotten, and all is read from the start", () => {
  const pass = { startedAtMs: 1, part: "files", position: 7, lastChunk: 3, readBytes: 9, found: 0 };
  const record = { pass, lastEndedAtMs: 5, lastReadBytes: 4, lastFound: 1 };
  assert.deepEqual(readScrubRecord(JSON.stringify(record)), record);
  const never = { pass: undefined, lastEndedAtMs: undefined, lastReadBytes: 0, lastFound: 0 };
  for (const text of [undefined, "", "{", "null", JSON.stringify({ pass: { ...pass, position: "7" } })])
    assert.deepEqual(readScrubRecord(text), never, String(text));
});

test("a pass that is cut off by a restart goes on where it was, and what it has read it does not read again", async (context) => {
  const { storage, directory, parentId } = await opened(context);
  for (let index = 0; index < 3; index++) {
    await upload(storage, { parentId, name: `f${index}`, bytes: patterned(300_000, index) });
  }
  storage.startScrub({ ...FAST, bytesPerSecond: 600_000 });
  await until(() => (storage.scrubState().pass?.position ?? 0) >= 1);
  await storage.close();
  const again = await openTestStorage(directory);
  context.after(() => again.close());
  const { pass: kept, isRunning } = again.scrubState();
  assert.equal(isRunning, false);
  assert.ok(kept !== undefined && kept.position >= 1 && kept.lastChunk === 3);
  // The first chunk was read in the earlier part of the pass.
  const [first = ""] = chunkFilesInOrder(directory);
  truncateSync(first, 0);
  await pass(again);
  assert.equal(again.damagedFiles().count, 0);
  assert.equal(again.scrubState().pass, undefined);
  assert.ok(again.scrubState().lastReadBytes >= 900_000);
});

function chunkFilesInOrder(directory: string): string[] {
  const db = new DatabaseSync(join(directory, "inodes.db"), { readOnly: true });
  const names = db.prepare("SELECT name FROM chunk ORDER BY id").all() as { name: string }[];
  db.close();
  return names.map(({ name }) => join(directory, "chunks", name.slice(0, 2), name));
}

test("after a pass comes the pause, also over a restart, and then the next pass; a clock that went back does not stop it", async (context) => {
  const clock = new ManualClock();
  const directory = temporaryDirectory(context);
  const storage = await openTestStorage(directory, { clock });
  await pass(storage);
  const firstEnd = storage.scrubState().lastEndedAtMs ?? 0;
  clock.advance(FAST.pauseMs - PASS_DUE_CHECK_MS);
  assert.equal(storage.scrubState().isRunning, false);
  await storage.close();
  const again = await openTestStorage(directory, { clock });
  context.after(() => again.close());
  again.startScrub(FAST);
  assert.equal(again.scrubState().isRunning, false);
  assert.equal(again.scrubState().lastEndedAtMs, firstEnd);
  clock.advance(2 * PASS_DUE_CHECK_MS);
  assert.equal(again.scrubState().isRunning, true);
  await until(() => !again.scrubState().isRunning && again.scrubState().pass === undefined);
  clock.jumpWall(-10 * FAST.pauseMs);
  clock.advance(PASS_DUE_CHECK_MS);
  assert.equal(again.scrubState().isRunning, true);
  await until(() => !again.scrubState().isRunning);
});

test("files that are removed while the scrub runs are not taken for damaged, and nothing new makes a pass endless", async (context) => {
  const { storage, parentId } = await opened(context);
  for (let index = 0; index < 40; index++) {
    await upload(storage, { parentId, name: `f${index}`, bytes: patterned(100_000, index) });
  }
  storage.startScrub({ ...FAST, bytesPerSecond: 20_000_000 });
  for (let index = 0; index < 40; index++) {
    await storage.remove({ ...BY_OWNER, inodeId: inodeAt(storage, `f${index}`).id, recursive: false });
    await upload(storage, { parentId, name: `g${index}`, bytes: patterned(100_000, index) });
  }
  await until(() => storage.scrubState().pass === undefined && !storage.scrubState().isRunning);
  assert.equal(storage.damagedFiles().count, 0);
  assert.equal(storage.scrubState().lastFound, 0);
  assert.ok(storage.scrubState().lastReadBytes < 60 * 100_000);
});

test("a scrub in the middle of a chunk lets the store close", async (context) => {
  const { storage, parentId } = await opened(context);
  await upload(storage, { parentId, name: "f", bytes: patterned(3_000_000) });
  storage.startScrub(SLOW);
  await until(() => (storage.scrubState().pass?.readBytes ?? 0) > 0);
  await storage.close();
});
