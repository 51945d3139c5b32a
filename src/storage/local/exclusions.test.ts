// Tests of exclusions in storage: the end of a share below another, its removal and moves (spec 4.5).
import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { GRANTS_PER_INODE } from "#base/limits.ts";
import { checkStorage } from "#storage/check/check-storage.ts";
import type { ListSort, Storage } from "#storage/contract/storage.ts";
import { DATABASE_FILE } from "#storage/metadata/schema.ts";
import { COPY_SLICE_ROWS } from "#storage/writer/copy-commands.ts";
import { temporaryDirectory } from "#testing/temporary-folder.ts";
import { BOB, BY, CAROL, directory, file, share, sharedAt, unshare, version } from "./shares.fixture.ts";
import { assertSound, freshStorage, inodeAt, OWNER, openTestStorage, refusal } from "./store.fixture.ts";

/** /a is shared with bob and carol; /a/b excludes bob. */
async function withExclusion(storage: Storage): Promise<{ a: number; b: number }> {
  const a = await directory(storage, "a");
  const b = await directory(storage, "a", "b");
  await file(storage, "a", "b", "c");
  await file(storage, "a", "d");
  await Promise.all([share(storage, a), share(storage, a, CAROL)]);
  assert.equal((await unshare(storage, b)).affectedInodes, 2);
  return { a, b };
}

/** Upper bounds of a copy. */
const MOST = { maxBytes: 100, maxInodes: 1_000_000, mayGoOn: () => undefined };

const rowsOf = (storage: Storage): string[] =>
  storage.shares
    .listed(OWNER, { path: "/", after: { path: "", username: "" }, limit: 100 })
    .shares.map(({ path, username, isExcluded }) => `${isExcluded ? "-" : "+"}${username} ${path}`);

test("below a share the end of one takes the user out of the subtree, new entries too, and nobody else", async (t) => {
  const { storage } = await freshStorage(t);
  const before = version(storage);
  const { b } = await withExclusion(storage);
  assert.ok(version(storage) >= before + 3, "whoever was checked before is checked again");
  await file(storage, "a", "b", "later");
  for (const names of [
    ["a", "b"],
    ["a", "b", "c"],
    ["a", "b", "later"],
  ]) {
    assert.deepEqual(sharedAt(storage, ...names), [CAROL], names.join("/"));
    assert.deepEqual(storage.shares.usersOf(inodeAt(storage, ...names).id), [CAROL]);
  }
  for (const names of [["a"], ["a", "d"]]) assert.deepEqual(sharedAt(storage, ...names), [BOB, CAROL]);
  assert.deepEqual(storage.shares.pathsOf(OWNER, BOB), { granted: ["/a"], excluded: ["/a/b"] });
  assert.deepEqual(storage.shares.ofRoot(OWNER), [
    { path: "/a", username: BOB },
    { path: "/a", username: CAROL },
  ]);
  const between = version(storage);
  assert.equal((await unshare(storage, b)).affectedInodes, 0, "a second time changes nothing");
  assert.equal(version(storage), between);
});

test("a share at the same place takes the exclusion away again, and one above all those below it", async (t) => {
  const { storage } = await freshStorage(t);
  const { a, b } = await withExclusion(storage);
  assert.equal((await share(storage, b)).affectedInodes, 2);
  assert.deepEqual(rowsOf(storage), [`+${BOB} /a`, `+${CAROL} /a`], "as it was");
  assert.equal((await share(storage, b)).affectedInodes, 2, "now it is a share of its own");
  await unshare(storage, b);
  assert.deepEqual(rowsOf(storage), [`+${BOB} /a`, `+${CAROL} /a`, `-${BOB} /a/b`], "instead of the share");
  await unshare(storage, inodeAt(storage, "a", "d").id);
  assert.equal((await share(storage, a)).affectedInodes, 4);
  assert.deepEqual(rowsOf(storage), [`+${BOB} /a`, `+${CAROL} /a`]);
  assert.deepEqual(sharedAt(storage, "a", "b", "c"), [BOB, CAROL]);
});

test("shares and exclusions lie in each other, and the end of the outermost ends all", async (t) => {
  const { storage } = await freshStorage(t);
  const { a, b } = await withExclusion(storage);
  const deep = await directory(storage, "a", "b", "x");
  const deeper = await directory(storage, "a", "b", "x", "y");
  await share(storage, deep);
  await unshare(storage, deeper);
  assert.deepEqual(sharedAt(storage, "a", "b"), [CAROL]);
  assert.deepEqual(sharedAt(storage, "a", "b", "x"), [BOB, CAROL]);
  assert.deepEqual(sharedAt(storage, "a", "b", "x", "y"), [CAROL]);
  assert.equal(
    (await unshare(storage, b)).affectedInodes,
    2,
    "what was shared below it ends, it stays excluded",
  );
  assert.deepEqual(rowsOf(storage), [`+${BOB} /a`, `+${CAROL} /a`, `-${BOB} /a/b`]);
  assert.equal((await unshare(storage, a)).affectedInodes, 6);
  assert.deepEqual(rowsOf(storage), [`+${CAROL} /a`]);
});

test("an exclusion goes with what is moved or renamed, and holds wherever a share would give it", async (t) => {
  const { storage, rootDirectoryId } = await freshStorage(t);
  const { a, b } = await withExclusion(storage);
  const other = await directory(storage, "other");
  await share(storage, other);
  const move = (parentId: number, name: string): Promise<unknown> =>
    storage.rename({ ...BY, inodeId: b, parentId, name, onConflict: "fail" });
  await move(a, "renamed");
  assert.deepEqual(storage.shares.pathsOf(OWNER, BOB).excluded, ["/a/renamed"]);
  await move(rootDirectoryId, "out");
  assert.deepEqual(sharedAt(storage, "out", "c"), []);
  await move(other, "b");
  assert.deepEqual(sharedAt(storage, "other", "b", "c"), []);
  await move(a, "b");
  assert.deepEqual(sharedAt(storage, "a", "b", "c"), [CAROL]);
  // A moved inode takes on the access of its new place.
  const c = inodeAt(storage, "a", "b", "c").id;
  await storage.rename({ ...BY, inodeId: c, parentId: a, name: "c", onConflict: "fail" });
  assert.deepEqual(sharedAt(storage, "a", "c"), [BOB, CAROL]);
});

test("what takes the place of an excluded entry is excluded as well, by a move, a copy and a restore", async (t) => {
  const { storage } = await freshStorage(t);
  const { a } = await withExclusion(storage);
  await unshare(storage, await file(storage, "a", "secret"));
  const onto = { ...BY, parentId: a, name: "secret", onConflict: "replace" } as const;
  const kept = [`+${BOB} /a`, `+${CAROL} /a`, `-${BOB} /a/b`, `-${BOB} /a/secret`];
  const assertKept = (): void => {
    assert.deepEqual(rowsOf(storage), kept);
    assert.deepEqual(sharedAt(storage, "a", "secret"), [CAROL]);
  };
  await storage.rename({ ...onto, inodeId: await file(storage, "a", "newer") });
  assertKept();
  const sourceId = await file(storage, "a", "template");
  const order = { by: OWNER, ...MOST };
  await storage.copy({ ...order, target: () => ({ ...onto, sourceId }) });
  assertKept();
  const { item } = await storage.trash({ ...BY, inodeId: sourceId });
  await storage.restore({ ...BY, trashId: item.id, names: ["a", "secret"], onConflict: "replace" });
  assertKept();
  // A share of the entry itself goes with it, wherever it moves.
  const shared = await file(storage, "a", "shared");
  await share(storage, shared);
  await storage.rename({ ...onto, inodeId: shared });
  assert.deepEqual(sharedAt(storage, "a", "secret"), [BOB, CAROL]);
});

test("what takes the place of an excluded folder that goes to the trash is excluded itself, and the trash keeps the rest", async (t) => {
  const { storage } = await freshStorage(t);
  const { a } = await withExclusion(storage);
  await directory(storage, "a", "b", "deep");
  await unshare(storage, inodeAt(storage, "a", "b", "c").id, CAROL);
  const onto = { ...BY, parentId: a, name: "b", onConflict: "trash" } as const;
  const sourceId = await directory(storage, "new");
  await directory(storage, "new", "c");
  const order = { by: OWNER, ...MOST };
  const rows = [`+${BOB} /a`, `+${CAROL} /a`, `-${BOB} /a/b`];
  const { kept } = await storage.copy({ ...order, target: () => ({ ...onto, sourceId }) });
  assert.deepEqual([kept?.originalPath, kept?.inodeCount], ["/a/b", 3]);
  assert.deepEqual(rowsOf(storage), rows);
  await storage.rename({ ...onto, inodeId: sourceId });
  assert.deepEqual(rowsOf(storage), rows);
  assert.deepEqual(sharedAt(storage, "a", "b", "c"), [CAROL]);
  await storage.restore({ ...BY, trashId: kept?.id ?? "", names: ["a", "former"], onConflict: "fail" });
  assert.deepEqual(rowsOf(storage), [...rows, `-${BOB} /a/former`, `-${CAROL} /a/former/c`]);
});

test("an entry takes the place of no folder that it lies in, and the levels below a folder fall with what makes way", async (t) => {
  const { storage } = await freshStorage(t);
  const { a, b } = await withExclusion(storage);
  const root = storage.root(OWNER)?.directoryId ?? 0;
  const over = { ...BY, parentId: root, name: "a", onConflict: "trash" } as const;
  await assert.rejects(storage.rename({ ...over, inodeId: b }), refusal("BAD_ARGUMENT"));
  const copying = storage.copy({ by: OWNER, ...MOST, target: () => ({ ...over, sourceId: b }) });
  await assert.rejects(copying, refusal("BAD_ARGUMENT"));
  await directory(storage, "a", "b", "x");
  await directory(storage, "a", "b", "x", "y");
  const { id: inodeId } = inodeAt(storage, "a", "d");
  await storage.rename({ ...BY, parentId: a, name: "b", onConflict: "trash", inodeId });
  assert.deepEqual([inodeAt(storage, "a", "b").id, inodeAt(storage, "a").childCount], [inodeId, 1]);
});

test("what another user replaces of an excluded file is excluded when it comes back beside it", async (t) => {
  const { storage } = await freshStorage(t);
  await withExclusion(storage);
  const secret = await file(storage, "a", "secret");
  await unshare(storage, secret);
  const { kept } = await storage.setSize({
    ...BY,
    by: CAROL,
    fileId: secret,
    sizeBytes: 0,
    ifMatch: undefined,
  });
  const names = ["a", "former"];
  await storage.restore({ ...BY, trashId: kept?.id ?? "", names, onConflict: "fail" });
  assert.deepEqual(sharedAt(storage, ...names), [CAROL]);
  assert.deepEqual(rowsOf(storage).slice(3), [`-${BOB} /a/former`, `-${BOB} /a/secret`]);
});

test("the trash gives shares up and keeps exclusions, so that a restore shows nothing that was hidden (D14)", async (t) => {
  const { storage } = await freshStorage(t);
  const { b } = await withExclusion(storage);
  await unshare(storage, inodeAt(storage, "a", "b", "c").id, CAROL);
  const { item } = await storage.trash({ ...BY, inodeId: b });
  assert.deepEqual(item.formerShares, []);
  assert.deepEqual(rowsOf(storage), [`+${BOB} /a`, `+${CAROL} /a`]);
  const names = ["a", "back"];
  await storage.restore({ ...BY, trashId: item.id, names, onConflict: "fail" });
  assert.deepEqual(sharedAt(storage, "a", "back"), [CAROL]);
  assert.deepEqual(sharedAt(storage, "a", "back", "c"), []);
  assert.deepEqual(rowsOf(storage).slice(2), [`-${BOB} /a/back`, `-${CAROL} /a/back/c`]);
  await storage.remove({ ...BY, inodeId: b, recursive: true });
  assert.deepEqual(rowsOf(storage), [`+${BOB} /a`, `+${CAROL} /a`]);
});

test("a folder that a restore makes anew is kept from whom it was kept, and from nobody else (D14)", async (t) => {
  const { storage } = await freshStorage(t);
  const { b } = await withExclusion(storage);
  const { item } = await storage.trash({ ...BY, inodeId: inodeAt(storage, "a", "b", "c").id });
  await storage.remove({ ...BY, inodeId: b, recursive: true });
  await storage.restore({ ...BY, trashId: item.id, names: undefined, onConflict: "fail" });
  assert.deepEqual(sharedAt(storage, "a", "b", "c"), [CAROL]);
  assert.deepEqual(rowsOf(storage), [`+${BOB} /a`, `+${CAROL} /a`, `-${BOB} /a/b`]);
});

test("a listing leaves out what is kept from a user, on full pages in every order, and nothing for others", async (t) => {
  const { storage } = await freshStorage(t);
  const a = await directory(storage, "a");
  for (let at = 0; at < 12; at++) await file(storage, "a", `f${String(at).padStart(2, "0")}`);
  await share(storage, a);
  const hidden = [0, 1, 2, 5, 11].map((at) => `f${String(at).padStart(2, "0")}`);
  for (const name of hidden) await unshare(storage, inodeAt(storage, "a", name).id);
  const seen = Array.from({ length: 12 }, (_, at) => `f${String(at).padStart(2, "0")}`);
  const pagesFor = (sort: ListSort, hiddenFrom: string | undefined): string[][] => {
    const pages: string[][] = [];
    let pageToken: string | undefined = "";
    while (pageToken !== undefined) {
      const page = storage.list(a, { limit: 3, pageToken, sort, hiddenFrom });
      pages.push(page.entries.map(({ name }) => name));
      pageToken = page.nextPageToken;
    }
    return pages;
  };
  const left = seen.filter((name) => !hidden.includes(name));
  for (const sort of ["name", "name-desc", "size", "mtime-desc"] as const) {
    const pages = pagesFor(sort, BOB);
    assert.deepEqual(pages.flat().toSorted(), left, sort);
    assert.deepEqual(
      pages.map(({ length }) => length),
      [3, 3, 1],
      sort,
    );
    assert.deepEqual(pagesFor(sort, CAROL).flat().toSorted(), seen);
    assert.deepEqual(pagesFor(sort, undefined).flat().toSorted(), seen);
  }
  const { own } = storage.list(a, { limit: 1, pageToken: "", sort: "name" });
  assert.deepEqual([...own.values()][0], { shared: [], excluded: [BOB] });
});

test("a user's copy has what that user's listing shows; the owner's has all, and no share of its own (D13)", async (t) => {
  const { storage, rootDirectoryId } = await freshStorage(t);
  const { a } = await withExclusion(storage);
  const into = await directory(storage, "into");
  await share(storage, into);
  const copy = (by: string, name: string): Promise<unknown> => {
    const place = { ...BY, by, sourceId: a, parentId: into, name, onConflict: "fail" } as const;
    return storage.copy({ by, ...MOST, target: () => place });
  };
  await copy(BOB, "bobs");
  assert.deepEqual(storage.resolve(OWNER, ["into", "bobs", "b"]).missing, ["b"]);
  assert.deepEqual(storage.resolve(OWNER, ["into", "bobs", "d"]).missing, []);
  assert.equal(inodeAt(storage, "into", "bobs").sizeBytes, 1);
  await copy(OWNER, "all");
  assert.deepEqual(sharedAt(storage, "into", "all", "b", "c"), [BOB]);
  assert.deepEqual(storage.resolve(OWNER, []).chain[0].id, rootDirectoryId);
});

test("a copy ends when the folder that it has come to is taken from its user meanwhile", async (t) => {
  const { storage } = await freshStorage(t);
  const a = await directory(storage, "a");
  const b = await directory(storage, "a", "b");
  const count = 3 * COPY_SLICE_ROWS;
  await Promise.all(
    Array.from({ length: count }, (_, at) =>
      storage.createFile({ ...BY, parentId: b, name: `f${at}`, data: Buffer.alloc(0), mtimeMs: 0 }),
    ),
  );
  await share(storage, a);
  const into = await directory(storage, "into");
  const place = { ...BY, by: BOB, sourceId: a, parentId: into, name: "copy", onConflict: "fail" } as const;
  const copying = storage.copy({ by: BOB, ...MOST, target: () => place });
  const ended = assert.rejects(copying, refusal("OVERLOADED"));
  await unshare(storage, b);
  await ended;
  assert.deepEqual(storage.resolve(OWNER, ["into", "copy"]).missing, ["copy"]);
});

test("what was begun below an exclusion is found as shut out, and what lies beside it is not", async (t) => {
  const { storage } = await freshStorage(t);
  await withExclusion(storage);
  const begin = (path: string): Promise<unknown> =>
    storage.uploads.create({
      ...BY,
      by: BOB,
      path,
      uploadId: path,
      sizeBytes: 10,
      onExists: "replace",
      ifMatch: undefined,
      mtimeMs: 0,
    });
  for (const path of ["/a/b/up", "/a/up", "/a b/up"]) await begin(path);
  assert.deepEqual(
    storage.uploads
      .shutOut(10)
      .map(({ path }) => path)
      .toSorted(),
    ["/a b/up", "/a/b/up"],
  );
  const [first] = storage.uploads.shutOut(1);
  assert.deepEqual(
    [first, ...storage.uploads.shutOut(1, first)].map((upload) => upload?.path),
    ["/a b/up", "/a/b/up"],
  );
});

test("exclusions count in the limits of shares, and take no room that their user's own rows had", async (t) => {
  const { storage } = await freshStorage(t);
  const { b } = await withExclusion(storage);
  const users = Array.from({ length: GRANTS_PER_INODE - 1 }, (_, index) => `u${index}@example.com`);
  await Promise.all(users.map((user) => share(storage, b, user)));
  await assert.rejects(unshare(storage, b, CAROL), refusal("SHARE_LIMIT"));
  assert.deepEqual(sharedAt(storage, "a", "b").includes(CAROL), true);
  await unshare(storage, b, users[0]);
  await unshare(storage, b, CAROL);
  assert.equal((await share(storage, b)).affectedInodes, 2, "to end one needs no room");
});

test("exclusions outlive a restart, and a check finds what is wrong with them and repairs it", async (t) => {
  const path = temporaryDirectory(t);
  const first = await openTestStorage(path);
  await first.createRoot({ owner: OWNER, rootId: "01ROOT" });
  const { b } = await withExclusion(first);
  await first.close();
  assertSound(path);
  const db = new DatabaseSync(join(path, DATABASE_FILE));
  db.exec(
    `UPDATE share_grant SET path = '/elsewhere' WHERE inode_id = ${b}; UPDATE inode SET flags = 0 WHERE id = ${b}`,
  );
  db.close();
  const found = checkStorage(path, { repair: true, deep: false });
  assert.equal(found.repairedCount, 2);
  assert.ok(
    found.differences.some((text) => text.includes(`the exclusion from ${OWNER}:/a/b of ${BOB} says`)),
    found.differences.join("\n"),
  );
  assertSound(path);
  const again = await openTestStorage(path);
  assert.deepEqual(sharedAt(again, "a", "b", "c"), [CAROL]);
  assert.deepEqual([...again.shares.all()], [[OWNER, again.shares.ofRoot(OWNER)]]);
  await again.close();
});

test("an exclusion that no share is above any more gives way to a share of its own", async (t) => {
  const { storage, rootDirectoryId } = await freshStorage(t);
  const { b } = await withExclusion(storage);
  await storage.rename({ ...BY, inodeId: b, parentId: rootDirectoryId, name: "b", onConflict: "fail" });
  assert.deepEqual(rowsOf(storage).includes(`-${BOB} /b`), true);
  await share(storage, b);
  assert.deepEqual(sharedAt(storage, "b"), [BOB]);
  assert.deepEqual(
    rowsOf(storage).filter((row) => row.endsWith(" /b")),
    [`+${BOB} /b`],
  );
});

test("shares are listed page by page, and told for the inodes that are asked for", async (t) => {
  const { storage } = await freshStorage(t);
  const { a, b } = await withExclusion(storage);
  const pages: string[] = [];
  let after = { path: "", username: "" };
  for (let isLast = false; !isLast; ) {
    const page = storage.shares.listed(OWNER, { path: "/", after, limit: 1 });
    pages.push(page.shares.map(({ path, username }) => `${username} ${path}`).join(", "));
    const last = page.shares.at(-1);
    if (last !== undefined) after = { path: last.path, username: last.username };
    ({ isLast } = page);
  }
  assert.deepEqual(pages, [`${BOB} /a`, `${CAROL} /a`, `${BOB} /a/b`]);
  assert.deepEqual(storage.shares.at([b, a]), [
    { inodeId: b, username: BOB, isExcluded: true },
    { inodeId: a, username: BOB, isExcluded: false },
    { inodeId: a, username: CAROL, isExcluded: false },
  ]);
});
