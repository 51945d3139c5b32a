// Tests of sums beyond 2^53: one root refuses what would pass it, the trashes of several together may (T17).
import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type TestContext, test } from "node:test";
import { FILE_MAX_BYTES } from "#base/limits.ts";
import { crcWithZeros } from "#storage/chunks/list-checksum.ts";
import { temporaryDirectory } from "#testing/temporary-folder.ts";
import { until } from "#testing/until.ts";
import { assertSound, openTestStorage, query, refusal } from "./store.fixture.ts";

const OWNERS = ["a@example.com", "b@example.com", "c@example.com"];
/** More than half of 2^53, and odd, so that sums that are rounded are wrong. */
const LARGE = 2 ** 52 + 1;

const by = (owner: string) => ({ owner, by: owner, accessVersion: undefined });

/** Roots whose files, of zeros alone, have together more bytes than a number can say exactly. */
async function largeRoots(context: TestContext): Promise<string> {
  const directory = temporaryDirectory(context);
  const storage = await openTestStorage(directory);
  for (const owner of OWNERS) {
    const { directoryId: parentId } = await storage.createRoot({ owner, rootId: `01${owner}` });
    const empty = { parentId, name: "f", data: new Uint8Array(0), mtimeMs: 0 };
    const { inode } = await storage.createFile({ ...by(owner), ...empty });
    await storage.setSize({ ...by(owner), fileId: inode.id, sizeBytes: FILE_MAX_BYTES, ifMatch: undefined });
  }
  await storage.close();
  const db = new DatabaseSync(join(directory, "inodes.db"));
  db.exec(`
    UPDATE inode SET size = ${LARGE};
    UPDATE inode SET crc32 = ${crcWithZeros(0, LARGE)} WHERE kind = 0;
    UPDATE root SET live_bytes = ${LARGE}`);
  db.close();
  assertSound(directory);
  return directory;
}

test("trashes that have more than 2^53 bytes together are counted to the byte, and a node starts with them (T17)", async (context) => {
  const directory = await largeRoots(context);
  const storage = await openTestStorage(directory);
  for (const owner of OWNERS) {
    const inodeId = storage.resolve(owner, ["f"]).chain.at(-1)?.id ?? 0;
    await storage.trash({ ...by(owner), inodeId });
  }
  await storage.close();
  assertSound(directory);
  const again = await openTestStorage(directory);
  again.startRecount({ rowsPerSecond: 2 ** 40, pauseMs: 3_600_000 });
  await until(() => again.recountState().lastEndedAtMs !== undefined);
  assert.equal(again.recountState().drift?.counters, 0);
  const [, owner = ""] = OWNERS;
  const { items } = again.listTrash(owner, { limit: 1, pageToken: "" });
  await again.purgeTrash({ owner, trashIds: items.map(({ id }) => id) });
  assert.equal(again.facts().trashBytes, 2 * LARGE);
  await again.close();
  assertSound(directory);
  const [row] = query(
    directory,
    "SELECT CAST(value AS TEXT) AS said FROM counter WHERE name = 'trash_bytes'",
  );
  assert.equal(row?.["said"], String(2n * BigInt(LARGE)));
});

test("one root refuses what would bring it to 2^53 bytes, its properties included (T17)", async (context) => {
  const directory = await largeRoots(context);
  const db = new DatabaseSync(join(directory, "inodes.db"));
  const most = Number.MAX_SAFE_INTEGER - 100;
  db.exec(`UPDATE inode SET size = ${most}; UPDATE root SET live_bytes = ${most}`);
  db.close();
  const storage = await openTestStorage(directory);
  const [owner = ""] = OWNERS;
  const { directoryId: parentId } = storage.root(owner) ?? { directoryId: 0 };
  const note = (bytes: number) =>
    storage.properties.change({
      ...by(owner),
      inodeId: parentId,
      edits: [{ kind: "set", namespace: "n", name: "n", xml: "x".repeat(bytes - 2) }],
    });
  const make = (bytes: number) =>
    storage.createFile({ ...by(owner), parentId, name: "g", data: new Uint8Array(bytes), mtimeMs: 0 });
  await assert.rejects(note(101), refusal("BAD_ARGUMENT"));
  await assert.rejects(make(101), refusal("BAD_ARGUMENT"));
  await note(60);
  await assert.rejects(make(41), refusal("BAD_ARGUMENT"));
  await make(40);
  assert.equal(storage.root(owner)?.usage.liveBytes, Number.MAX_SAFE_INTEGER);
  await storage.close();
});
