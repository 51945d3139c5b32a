// Tests on a disk without one free byte: starts, removals, and the trash (A-07, D14).
import assert from "node:assert/strict";
import { appendFileSync, rmSync, statfsSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { GroveError } from "#base/errors.ts";
import { checkStorage } from "#storage/check/check-storage.ts";
import { onSmallDisk } from "./small-disk.fixture.ts";
import {
  assertSound,
  BY_OWNER,
  inodeAt,
  OWNER,
  openTestStorage,
  patterned,
  refusal,
  upload,
} from "./store.fixture.ts";

test("an item comes out of the trash on a full disk, however often it goes to and fro; only one that needs a folder is refused (A-07, D14)", async (context) => {
  await onSmallDisk(context, { mebibytes: 64 }, restoreOnFullDisk);
});

test("a node starts on a disk without one free byte, and removals make room there (A-07)", async (context) => {
  await onSmallDisk(context, { mebibytes: 32 }, startOnFullDisk);
});

async function startOnFullDisk(directory: string): Promise<void> {
  const ballastBytes = 4_194_304;
  const first = await openTestStorage(directory, { ballastBytes });
  const { directoryId: parentId } = await first.createRoot({ owner: OWNER, rootId: "01ROOT" });
  const bytes = patterned(300_000);
  await upload(first, { parentId, name: "f", bytes });
  await first.close();
  fill(directory);
  const why = /the disk of .* is full: free 1 MiB there/;
  assert.throws(() => checkStorage(directory, { repair: false, deep: false }), why);
  const storage = await openTestStorage(directory, { ballastBytes });
  try {
    const more = { ...BY_OWNER, parentId, name: "more", data: patterned(10), mtimeMs: 0 };
    await assert.rejects(storage.createFile(more), refusal("DISK_RESERVE"));
    await storage.remove({ ...BY_OWNER, inodeId: inodeAt(storage, "f").id, recursive: false });
  } finally {
    rmSync(join(directory, "filler"));
    await storage.close();
  }
  assertSound(directory);
}

/** Fills a disk to the last byte, except for the ballast. */
function fill(directory: string): void {
  for (let size = 1_048_576; size >= 4_096; size /= 2) {
    const { bavail, bsize } = statfsSync(directory);
    appendFileSync(join(directory, "filler"), Buffer.alloc(Math.floor((bavail * bsize) / size) * size));
  }
}

async function restoreOnFullDisk(directory: string): Promise<void> {
  const ballastBytes = 2_097_152;
  const storage = await openTestStorage(directory, { ballastBytes });
  const { directoryId: parentId } = await storage.createRoot({ owner: OWNER, rootId: "01ROOT" });
  const { inode } = await storage.createDirectory({ ...BY_OWNER, parentId, name: "d" });
  for (let at = 0; at < 20; at++) {
    await upload(storage, { parentId: inode.id, name: `f${at}`, bytes: patterned(70_000) });
  }
  const put = async (): Promise<string> =>
    (await storage.trash({ ...BY_OWNER, inodeId: inodeAt(storage, "d").id })).item.id;
  const restore = (trashId: string, maxInodes: number, names?: string[]): Promise<unknown> =>
    storage.restore({ ...BY_OWNER, maxInodes, trashId, names, onConflict: "fail" });
  let trashId = await put();
  try {
    fill(directory);
    // Each file has a size of its own: the log's room is used up, and the ballast is given up.
    for (let at = 0; ; at++) {
      const file = { ...BY_OWNER, parentId, name: `more${at}`, data: patterned(60_000), mtimeMs: 0 };
      const made = await storage.createFile(file).catch((error: unknown) => error);
      if (!(made instanceof GroveError)) continue;
      assert.ok(refusal("DISK_RESERVE")(made));
      break;
    }
    await assert.rejects(restore(trashId, 1, ["new", "d"]), refusal("DISK_RESERVE"));
    for (let times = 0; times < 500; times++) {
      await restore(trashId, 0);
      assert.equal(inodeAt(storage, "d").childCount, 20);
      trashId = await put();
    }
    await restore(trashId, 0);
    await storage.remove({ ...BY_OWNER, inodeId: inodeAt(storage, "d").id, recursive: true });
  } finally {
    rmSync(join(directory, "filler"), { force: true });
    await storage.close();
  }
  assertSound(directory);
}
