// Tests of grants in storage: coverage, effects of moves and removals, and the check's findings.
import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { GRANTS_PER_INODE, GRANTS_PER_ROOT } from "#base/limits.ts";
import { checkStorage } from "#storage/check/check-storage.ts";
import { DATABASE_FILE } from "#storage/metadata/schema.ts";
import { temporaryDirectory } from "#testing/temporary-folder.ts";
import { SHARED_PATHS_CACHED } from "./share-store.ts";
import { BOB, BY, CAROL, directory, file, share, sharedAt, unshare, version } from "./shares.fixture.ts";
import { assertSound, freshStorage, inodeAt, OWNER, openTestStorage, refusal } from "./store.fixture.ts";

test("a share covers the directory and all below it, new entries too, and counts them (spec 4.5, T24)", async (t) => {
  const { storage } = await freshStorage(t);
  const docs = await directory(storage, "docs");
  await directory(storage, "docs", "deep");
  await file(storage, "docs", "deep", "a");
  await file(storage, "other");
  const before = version(storage);
  assert.equal((await share(storage, docs)).affectedInodes, 3);
  assert.ok(version(storage) > before, "whoever was checked before is checked again");
  await file(storage, "docs", "deep", "later");
  for (const names of [["docs"], ["docs", "deep"], ["docs", "deep", "a"], ["docs", "deep", "later"]]) {
    assert.deepEqual(sharedAt(storage, ...names), [BOB], names.join("/"));
    assert.deepEqual(storage.shares.usersOf(inodeAt(storage, ...names).id), [BOB]);
  }
  assert.deepEqual(sharedAt(storage, "other"), []);
  assert.deepEqual(sharedAt(storage), []);
  assert.deepEqual(storage.shares.pathsOf(OWNER, BOB).granted, ["/docs"]);
  assert.equal((await unshare(storage, docs)).affectedInodes, 4);
  assert.deepEqual(sharedAt(storage, "docs", "deep", "a"), []);
  assert.deepEqual(storage.shares.pathsOf(OWNER, BOB).granted, []);
});

test("a file and the root itself can be shared; the owner cannot be, nor shut out", async (t) => {
  const { storage, rootDirectoryId } = await freshStorage(t);
  const a = await file(storage, "a");
  assert.equal((await share(storage, a)).affectedInodes, 1);
  assert.deepEqual(sharedAt(storage, "a"), [BOB]);
  assert.equal((await share(storage, rootDirectoryId, CAROL)).affectedInodes, 2);
  assert.deepEqual(sharedAt(storage, "a"), [BOB, CAROL]);
  assert.deepEqual(storage.shares.ofRoot(OWNER), [
    { path: "/", username: CAROL },
    { path: "/a", username: BOB },
  ]);
  await assert.rejects(share(storage, a, OWNER), refusal("BAD_ARGUMENT"));
  await assert.rejects(unshare(storage, a, OWNER), refusal("BAD_ARGUMENT"));
  await assert.rejects(share(storage, 4_242), refusal("NO_SUCH_PATH"));
  assert.equal((await unshare(storage, rootDirectoryId, CAROL)).affectedInodes, 2);
});

test("a second share, and the end of one that is not there, change nothing and say so", async (t) => {
  const { storage } = await freshStorage(t);
  const docs = await directory(storage, "docs");
  await share(storage, docs);
  const before = version(storage);
  assert.equal((await share(storage, docs)).affectedInodes, 0);
  assert.equal((await unshare(storage, docs, CAROL)).affectedInodes, 0);
  assert.equal(version(storage), before);
});

test("the end of a share ends grants of that user below it too, and of nobody else (spec 4.5)", async (t) => {
  const { storage } = await freshStorage(t);
  const a = await directory(storage, "a");
  // In the order of bytes "/a b" lies between "/a" and "/a/x".
  for (const names of [["a b"], ["a", "x"], ["a", "x", "y"], ["a", "z"]]) {
    const id = await directory(storage, ...names);
    await share(storage, id);
  }
  await share(storage, inodeAt(storage, "a", "x").id, CAROL);
  assert.equal((await unshare(storage, a)).affectedInodes, 3, "x with y, and z");
  assert.deepEqual(storage.shares.ofRoot(OWNER), [
    { path: "/a b", username: BOB },
    { path: "/a/x", username: CAROL },
  ]);
});

test("what moves loses what it inherited and keeps its own grants, wherever they lie in it (spec 4.5)", async (t) => {
  const { storage, rootDirectoryId } = await freshStorage(t);
  const shared = await directory(storage, "shared");
  const moved = await directory(storage, "shared", "höher 👍");
  await file(storage, "shared", "höher 👍", "own");
  await share(storage, shared);
  await share(storage, inodeAt(storage, "shared", "höher 👍", "own").id, CAROL);
  const before = version(storage);
  await storage.rename({ ...BY, inodeId: moved, parentId: rootDirectoryId, name: "x", onConflict: "fail" });
  assert.ok(version(storage) > before);
  assert.deepEqual(sharedAt(storage, "x"), []);
  assert.deepEqual(sharedAt(storage, "x", "own"), [CAROL]);
  assert.deepEqual(storage.shares.pathsOf(OWNER, CAROL).granted, ["/x/own"]);
  // A rename in place changes the paths of grants as well; the MetaServer must receive it.
  const between = version(storage);
  await storage.rename({ ...BY, inodeId: moved, parentId: rootDirectoryId, name: "y", onConflict: "fail" });
  assert.ok(version(storage) > between);
  assert.deepEqual(storage.shares.pathsOf(OWNER, CAROL).granted, ["/y/own"]);
});

test("a move within one share overtakes nobody; one out of it makes checks made before stale", async (t) => {
  const { storage, rootDirectoryId } = await freshStorage(t);
  const shared = await directory(storage, "shared");
  const below = await directory(storage, "shared", "below");
  const a = await file(storage, "shared", "a");
  await share(storage, shared);
  const before = version(storage);
  await storage.rename({ ...BY, inodeId: a, parentId: below, name: "a", onConflict: "fail" });
  assert.equal(version(storage), before);
  await storage.rename({ ...BY, inodeId: a, parentId: rootDirectoryId, name: "a", onConflict: "fail" });
  const late = { owner: OWNER, by: BOB, accessVersion: before, fileId: a, offset: 0, ifMatch: undefined };
  await assert.rejects(storage.writeRange({ ...late, data: Buffer.from("late") }), /check again/);
});

test("a removal takes the grants along, also of what lies below, and also in the transaction of the share", async (t) => {
  const { storage } = await freshStorage(t);
  const told: string[] = [];
  storage.shares.onChange((owners) => told.push(...owners));
  const a = await directory(storage, "a");
  const inner = await file(storage, "a", "inner");
  const empty = await directory(storage, "empty");
  await Promise.all([
    share(storage, inner),
    share(storage, empty),
    storage.remove({ ...BY, inodeId: a, recursive: true }),
    storage.remove({ ...BY, inodeId: empty, recursive: false }),
  ]);
  assert.deepEqual(storage.shares.ofRoot(OWNER), []);
  assert.equal(storage.shares.usersOf(inner), undefined);
  assert.ok(told.length > 0 && told.every((owner) => owner === OWNER));
});

test("a listing tells which entries are shared by a grant of their own", async (t) => {
  const { storage, rootDirectoryId } = await freshStorage(t);
  const a = await directory(storage, "a");
  await file(storage, "b");
  await share(storage, a, CAROL);
  await share(storage, a);
  const { entries, own } = storage.list(rootDirectoryId, { limit: 10, pageToken: "", sort: "name" });
  assert.deepEqual(
    entries.map(({ id, name }) => [name, own.get(id)?.shared]),
    [
      ["a", [BOB, CAROL]],
      ["b", undefined],
    ],
  );
});

test(`one inode has at most ${GRANTS_PER_INODE} grants, and shares end again to make room`, async (t) => {
  const { storage } = await freshStorage(t);
  const a = await file(storage, "a");
  const users = Array.from({ length: GRANTS_PER_INODE }, (_, index) => `u${index}@example.com`);
  await Promise.all(users.map((user) => share(storage, a, user)));
  await assert.rejects(share(storage, a), refusal("SHARE_LIMIT"));
  assert.equal((await share(storage, a, users[0])).affectedInodes, 0, "one that is there is no new one");
  await unshare(storage, a, users[7]);
  assert.equal((await share(storage, a)).affectedInodes, 1);
});

test(`one root has at most ${GRANTS_PER_ROOT} shares, wherever they hang`, async (t) => {
  const { storage } = await freshStorage(t);
  const folders = Math.ceil(GRANTS_PER_ROOT / GRANTS_PER_INODE);
  for (let at = 0; at < folders; at++) {
    const id = await directory(storage, `d${at}`);
    const count = Math.min(GRANTS_PER_INODE, GRANTS_PER_ROOT - at * GRANTS_PER_INODE);
    await Promise.all(
      Array.from({ length: count }, (_, index) => share(storage, id, `u${index}@example.com`)),
    );
  }
  assert.equal(storage.shares.ofRoot(OWNER).length, GRANTS_PER_ROOT);
  const one = await directory(storage, "one more");
  await assert.rejects(share(storage, one), refusal("SHARE_LIMIT"));
  await unshare(storage, inodeAt(storage, "d0").id, "u0@example.com");
  await share(storage, one);
  assert.deepEqual(storage.shares.pathsOf(OWNER, BOB).granted, ["/one more"]);
});

test("however many have asked in vain, a new share is seen at once", async (t) => {
  const { storage } = await freshStorage(t);
  const docs = await directory(storage, "docs");
  assert.deepEqual(storage.shares.pathsOf(OWNER, BOB).granted, []);
  for (let at = 0; at <= SHARED_PATHS_CACHED; at++) {
    assert.deepEqual(storage.shares.pathsOf(`nobody${at}@example.com`, BOB).granted, []);
  }
  await share(storage, docs);
  assert.deepEqual(storage.shares.pathsOf(OWNER, BOB).granted, ["/docs"]);
  await unshare(storage, docs);
  assert.deepEqual(storage.shares.pathsOf(OWNER, BOB).granted, []);
});

test("shares outlive a restart", async (t) => {
  const path = temporaryDirectory(t);
  const first = await openTestStorage(path);
  await first.createRoot({ owner: OWNER, rootId: "01ROOT" });
  await share(first, await directory(first, "docs"));
  await first.close();
  const again = await openTestStorage(path);
  assert.deepEqual(sharedAt(again, "docs"), [BOB]);
  assert.deepEqual([...again.shares.all()], [[OWNER, [{ path: "/docs", username: BOB }]]]);
  await again.close();
  assertSound(path);
});

test("a check finds grants with a wrong path, without a mark, or of what is in no tree, and repairs them", async (t) => {
  const path = temporaryDirectory(t);
  const storage = await openTestStorage(path);
  await storage.createRoot({ owner: OWNER, rootId: "01ROOT" });
  const docs = await directory(storage, "docs");
  const a = await directory(storage, "a");
  await share(storage, docs);
  await share(storage, a);
  await storage.close();
  const db = new DatabaseSync(join(path, DATABASE_FILE));
  db.exec(`UPDATE share_grant SET path = '/elsewhere' WHERE inode_id = ${docs};
    UPDATE inode SET flags = 0 WHERE id = ${a}; UPDATE root SET grant_count = 7`);
  db.close();
  assert.equal(checkStorage(path, { repair: false, deep: false }).differenceCount, 3);
  assert.equal(checkStorage(path, { repair: true, deep: false }).repairedCount, 3);
  assertSound(path);
});
