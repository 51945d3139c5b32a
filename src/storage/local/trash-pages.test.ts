// Tests of the pages of a root's trash: their order, what they select, and how large they are.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Inode } from "#storage/contract/inode.ts";
import type { Storage } from "#storage/contract/storage.ts";
import type { TrashPage } from "#storage/contract/trash.ts";
import { BY_OWNER, freshStorage, OWNER, refusal } from "./store.fixture.ts";

const NOW = { ...BY_OWNER, accessVersion: undefined };

async function touch(storage: Storage, parentId: number, name: string): Promise<Inode> {
  return (await storage.createFile({ ...NOW, parentId, name, data: Buffer.from("hello"), mtimeMs: 1_000 }))
    .inode;
}

const trash = (storage: Storage, inodeId: number) => storage.trash({ ...NOW, inodeId });
const list = (storage: Storage, limit = 1_000, pageToken = ""): TrashPage =>
  storage.listTrash(OWNER, { limit, pageToken });

test("pages of the trash, newest first, list each item once while others come and go (D14)", async (t) => {
  const { storage, rootDirectoryId } = await freshStorage(t);
  const ids: string[] = [];
  for (let at = 0; at < 25; at++) {
    const file = await touch(storage, rootDirectoryId, `f${at}`);
    ids.push((await trash(storage, file.id)).item.id);
  }
  const seen: string[] = [];
  let pageToken = "";
  do {
    const page = list(storage, 10, pageToken);
    seen.push(...page.items.map(({ id }) => id));
    pageToken = page.nextPageToken ?? "";
    await trash(storage, (await touch(storage, rootDirectoryId, `late${seen.length}`)).id);
    await storage.purgeTrash({ owner: OWNER, trashIds: seen.slice(-1) });
  } while (pageToken !== "");
  assert.deepEqual(seen, ids.toReversed());
  const one = storage.listTrash(OWNER, { limit: 9, pageToken: "", id: ids[3] ?? "" });
  assert.deepEqual(
    one.items.map(({ originalPath }) => originalPath),
    ["/f3"],
  );
  const there = storage.listTrash(OWNER, { limit: 9, pageToken: "", originalPath: "/f4" });
  assert.deepEqual(
    there.items.map(({ id }) => id),
    [ids[4]],
  );
  const both = { limit: 9, pageToken: "", id: ids[3] ?? "" };
  assert.deepEqual(storage.listTrash(OWNER, { ...both, originalPath: "/f4" }).items, []);
  assert.equal(storage.listTrash(OWNER, { ...both, originalPath: "/f3" }).items.length, 1);
  for (const bad of ["x", Buffer.from('[77,"a"]').toString("base64url")]) {
    assert.throws(() => list(storage, 5, bad), refusal("BAD_ARGUMENT"));
  }
});

test("a page of the trash counts the whole path of every former share, so that stock clients take it", async (t) => {
  const { storage, rootDirectoryId } = await freshStorage(t);
  let parentId = rootDirectoryId;
  for (let level = 0; level < 15; level++)
    parentId = (await storage.createDirectory({ ...NOW, parentId, name: "n".repeat(255) })).inode.id;
  for (const name of ["a", "b", "c", "d"]) {
    const { id: inodeId } = await touch(storage, parentId, name);
    const users = Array.from({ length: 100 }, (_, at) => `u${at}@example.com`);
    await Promise.all(users.map((username) => storage.shares.grant({ ...NOW, inodeId, username })));
    await trash(storage, inodeId);
  }
  const { items, nextPageToken } = list(storage);
  assert.equal(items.length, 3);
  assert.equal(list(storage, 1_000, nextPageToken).items.length, 1);
});
