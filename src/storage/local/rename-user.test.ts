// Tests of a user's new name in storage: root, shares both ways, trash and makers, once for each version.
import assert from "node:assert/strict";
import { test } from "node:test";
import { BOB, BY, CAROL, directory, file, share, sharedAt } from "./shares.fixture.ts";
import { freshStorage, inodeAt, OWNER, openTestStorage, refusal } from "./store.fixture.ts";

const NEW = "ada.new@example.com";

test("a new name takes over root, usage and shares; the old one has nothing, over a restart too (D21)", async (t) => {
  const { storage, directory: folder } = await freshStorage(t);
  const docs = await directory(storage, "docs");
  const told: string[] = [];
  storage.shares.onChange((owners) => told.push(...owners));
  await file(storage, "docs", "a");
  await share(storage, docs);
  // A share with the new name itself would be one with its owner.
  await share(storage, docs, NEW);
  const before = storage.root(OWNER);
  assert.ok((await storage.renameUser({ from: OWNER, to: NEW, version: 7 })) > 0);
  assert.equal(storage.root(OWNER), undefined);
  const after = storage.root(NEW);
  assert.deepEqual([after?.rootId, after?.usage], [before?.rootId, before?.usage]);
  assert.ok(
    (after?.accessVersion ?? 0) > (before?.accessVersion ?? 0),
    "who was checked before is checked again",
  );
  assert.ok(told.includes(OWNER) && told.includes(NEW));
  assert.deepEqual(storage.shares.ofRoot(NEW), [{ path: "/docs", username: BOB }]);
  assert.deepEqual(storage.shares.pathsOf(OWNER, BOB).granted, []);
  assert.deepEqual(storage.shares.pathsOf(NEW, BOB).granted, ["/docs"]);
  assert.equal(storage.list(docs, { limit: 10, pageToken: "", sort: "name" }).entries[0]?.createdBy, NEW);
  assert.equal(storage.renamedUpTo(), 7);

  await storage.createRoot({ owner: OWNER, rootId: "01NEWCOMER" });
  assert.equal(await storage.renameUser({ from: OWNER, to: NEW, version: 7 }), 0, "it is not repeated");
  await assert.rejects(storage.renameUser({ from: OWNER, to: NEW, version: 8 }), refusal("PATH_EXISTS"));
  assert.equal(storage.renamedUpTo(), 7);
  await storage.close();
  const again = await openTestStorage(folder);
  assert.deepEqual(
    again.roots().map(({ owner, rootId }) => [owner, rootId]),
    [
      [NEW, "01ROOT"],
      [OWNER, "01NEWCOMER"],
    ],
  );
  await again.close();
});

test("what others have shared with a person goes to the new name, the stronger of two at one place", async (t) => {
  const { storage } = await freshStorage(t);
  for (const name of ["one", "both", "out"]) {
    const made = await directory(storage, name);
    await share(storage, made, BOB);
    if (name === "both") await share(storage, made, CAROL);
  }
  const deep = await directory(storage, "out", "deep");
  await share(storage, inodeAt(storage, "out").id, CAROL);
  await storage.shares.revoke({ ...BY, inodeId: deep, username: BOB });
  const count = storage.shares.ofRoot(OWNER).length;
  assert.ok((await storage.renameUser({ from: BOB, to: CAROL, version: 1 })) > 0);
  for (const name of ["one", "both", "out"]) assert.deepEqual(sharedAt(storage, name), [CAROL], name);
  assert.equal(storage.shares.ofRoot(OWNER).length, count - 2);
  assert.deepEqual(storage.shares.pathsOf(OWNER, BOB), { granted: [], excluded: [] });
  assert.deepEqual(storage.shares.pathsOf(OWNER, CAROL).excluded, ["/out/deep"]);
});
