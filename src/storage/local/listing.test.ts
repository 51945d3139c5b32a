// Tests of listings: order, pages, tokens, and changes between two pages.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ListSort, Storage } from "#storage/contract/storage.ts";
import { pageToken } from "#storage/metadata/page-token.ts";
import { BY_OWNER, freshStorage, refusal } from "./store.fixture.ts";

async function fill(storage: Storage, parentId: number, names: readonly string[]): Promise<void> {
  await Promise.all(
    names.map((name, index) =>
      storage.createFile({
        ...BY_OWNER,
        parentId,
        name,
        data: Buffer.alloc(index % 7),
        mtimeMs: 1 + (index % 5),
      }),
    ),
  );
}

function listAll(storage: Storage, directoryId: number, sort: ListSort, limit: number): string[] {
  const names: string[] = [];
  for (let token: string | undefined = ""; token !== undefined; ) {
    const page = storage.list(directoryId, { limit, pageToken: token, sort });
    assert.ok(page.entries.length <= limit);
    names.push(...page.entries.map(({ name }) => name));
    token = page.nextPageToken;
  }
  return names;
}

const NAMES = Array.from({ length: 50 }, (_, index) => `${"ÄäzZ9"[index % 5]}-${(index * 7) % 50}`);

test("each order lists every entry once, ties by name, whatever the page size (D13)", async (context) => {
  const { storage, rootDirectoryId } = await freshStorage(context);
  await fill(storage, rootDirectoryId, NAMES);
  const entries = storage.list(rootDirectoryId, { limit: 1_000, pageToken: "", sort: "name" }).entries;
  const byBytes = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b));
  const orders: Record<ListSort, (a: (typeof entries)[0], b: (typeof entries)[0]) => number> = {
    name: (a, b) => byBytes(a.name, b.name),
    "name-desc": (a, b) => byBytes(b.name, a.name),
    size: (a, b) => a.sizeBytes - b.sizeBytes || byBytes(a.name, b.name),
    "size-desc": (a, b) => b.sizeBytes - a.sizeBytes || byBytes(a.name, b.name),
    mtime: (a, b) => a.mtimeMs - b.mtimeMs || byBytes(a.name, b.name),
    "mtime-desc": (a, b) => b.mtimeMs - a.mtimeMs || byBytes(a.name, b.name),
  };
  for (const [sort, compare] of Object.entries(orders) as [ListSort, (typeof orders)["name"]][]) {
    const expected = entries.toSorted(compare).map(({ name }) => name);
    for (const limit of [1, 7, 50, 51]) {
      assert.deepEqual(listAll(storage, rootDirectoryId, sort, limit), expected, `${sort} by ${limit}`);
    }
  }
});

test("entries that stay are listed exactly once while others come and go (D13)", async (context) => {
  const { storage, rootDirectoryId: parentId } = await freshStorage(context);
  await fill(storage, parentId, NAMES);
  const first = storage.list(parentId, { limit: 20, pageToken: "", sort: "name" });
  const seen = first.entries.map(({ name }) => name);
  const gone = first.entries.slice(0, 5);
  for (const { id } of gone) await storage.remove({ ...BY_OWNER, inodeId: id, recursive: false });
  await fill(storage, parentId, ["9-new", "zzz-new"]);
  for (let token = first.nextPageToken; token !== undefined; ) {
    const page = storage.list(parentId, { limit: 20, pageToken: token, sort: "name" });
    seen.push(...page.entries.map(({ name }) => name));
    token = page.nextPageToken;
  }
  assert.equal(new Set(seen).size, seen.length);
  for (const name of NAMES) assert.ok(seen.includes(name), name);
  assert.ok(seen.includes("zzz-new"));
});

test("a page token of another directory, another order or another making is refused (D13)", async (context) => {
  const { storage, rootDirectoryId: parentId } = await freshStorage(context);
  await fill(storage, parentId, NAMES);
  const { inode: other } = await storage.createDirectory({ ...BY_OWNER, parentId, name: "other" });
  const token = storage.list(parentId, { limit: 1, pageToken: "", sort: "name" }).nextPageToken ?? "";
  const list = (directoryId: number, sort: ListSort, text: string) => () =>
    storage.list(directoryId, { limit: 1, pageToken: text, sort });
  assert.throws(list(other.id, "name", token), refusal("BAD_ARGUMENT"));
  assert.throws(list(parentId, "size", token), refusal("BAD_ARGUMENT"));
  const forged = [
    "x",
    "é",
    "bnVsbA",
    "x".repeat(5_000),
    pageToken(parentId, "name", { name: "a", value: 0.5 }),
  ];
  for (const text of forged) assert.throws(list(parentId, "name", text), refusal("BAD_ARGUMENT"), text);
});
