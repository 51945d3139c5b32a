// Tests on a disk without one free byte: starts, removals, and the trash (A-07, D14).
import assert from "node:assert/strict";
import { appendFileSync, rmSync, statfsSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { GroveError } from "#base/errors.ts";
import { CHUNK_BYTES } from "#base/limits.ts";
import { checkStorage } from "#storage/check/check-storage.ts";
import type { Storage } from "#storage/contract/storage.ts";
import { BOB, BY } from "./shares.fixture.ts";
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

test("on a full disk links and locks end, properties go and files are cut, as what frees space does (A-07, D14)", async (context) => {
  await onSmallDisk(context, { mebibytes: 64 }, freeOnFullDisk);
});

async function freeOnFullDisk(directory: string): Promise<void> {
  const storage = await openTestStorage(directory, { ballastBytes: 2_097_152 });
  const { directoryId: parentId } = await storage.createRoot({ owner: OWNER, rootId: "01ROOT" });
  const bytes = patterned(CHUNK_BYTES + 1_000);
  for (const name of ["a", "b", "c", "d"]) await upload(storage, { parentId, name, bytes });
  const at = (name: string): { readonly inodeId: number } => ({ inodeId: inodeAt(storage, name).id });
  const property = { namespace: "urn:x", name: "note", xml: "<note/>" };
  const edit = (kind: "remove" | "set"): Promise<unknown> =>
    storage.properties.change({ ...BY, ...at("a"), edits: [{ kind, ...property }] });
  await edit("set");
  const lock = { isExclusive: true, isDeep: false, note: "", credential: "" };
  const expiresAtMs = Date.now() + 60_000;
  await storage.locks.take({ ...BY, ...at("a"), ...lock, token: "urn:uuid:1", expiresAtMs });
  const limits = { endsMs: 0, maxDownloads: 0, maxBytes: 0, maxFiles: 0 };
  const secrets = { tokenHash: "ab", password: "", passKey: "cd" };
  await storage.links.create({ ...BY, ...at("a"), id: "l1", kind: "read", ...limits, ...secrets });
  const cut = (name: string, sizeBytes: number): Promise<unknown> =>
    storage.setSize({ ...BY, fileId: at(name).inodeId, sizeBytes, ifMatch: undefined });
  try {
    fill(directory);
    await useUpLog(storage, parentId);
    const filesBefore = inodeAt(storage).sizeBytes;
    await storage.links.revoke(OWNER, "l1");
    await storage.locks.end(OWNER, "urn:uuid:1");
    // What adds something is refused: a property, a hole, and a cut whose former content is kept for the owner.
    await assert.rejects(edit("set"), refusal("DISK_RESERVE"));
    await assert.rejects(cut("d", 2 * CHUNK_BYTES), refusal("DISK_RESERVE"));
    const byBob = { ...BY, by: BOB, fileId: at("d").inodeId, sizeBytes: 0, ifMatch: undefined };
    await assert.rejects(storage.setSize(byBob), refusal("DISK_RESERVE"));
    await edit("remove");
    assert.deepEqual(storage.properties.of(at("a").inodeId), []);
    await cut("a", 0);
    await cut("b", 500);
    await cut("c", CHUNK_BYTES);
    assert.equal(inodeAt(storage).sizeBytes, filesBefore - 2 * bytes.length + 500 - 1_000);
  } finally {
    rmSync(join(directory, "filler"));
    await storage.close();
  }
  assertSound(directory);
}

/** Makes files until one is refused: the log's room is used up then, and the ballast is given up. */
async function useUpLog(storage: Storage, parentId: number): Promise<void> {
  for (let at = 0; ; at++) {
    const file = { parentId, name: `more${at}`, data: patterned(60_000), mtimeMs: 0 };
    const made = await storage.createFile({ ...BY, ...file }).catch((error: unknown) => error);
    if (!(made instanceof GroveError)) continue;
    assert.ok(refusal("DISK_RESERVE")(made));
    return;
  }
}

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
    await useUpLog(storage, parentId);
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
