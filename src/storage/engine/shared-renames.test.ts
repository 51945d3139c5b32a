// Tests of a user's new name on the shared engine: once for all processes, each of which has let go before.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ChangeContext } from "#storage/contract/inode.ts";
import { againWhenRowsCome } from "#storage/contract/rows-to-come.ts";
import type { Storage } from "#storage/contract/storage.ts";
import { refusal } from "#storage/local/store.fixture.ts";
import { connectShared } from "#storage/shared/shared-connection.ts";
import { enginePlaces } from "#testing/engine-places.ts";
import { until } from "#testing/until.ts";
import { enginePlace, inodeAt, openEngine } from "./engine.fixture.ts";

const places = enginePlaces();
const { skip } = places;
const LONG = { skip, timeout: 120_000 };
const [ADA, BOB, CAROL, NEW] = ["ada@x.de", "bob@x.de", "carol@x.de", "ada.new@x.de"];

const by = (owner: string, user = owner): ChangeContext => ({ owner, by: user, accessVersion: undefined });

/** A root with a folder that is shared with users, and a file in it that the first of them has made. */
async function fill(storage: Storage, owner: string, ...users: string[]): Promise<void> {
  const root = await storage.createRoot({ owner, rootId: `01${owner.toUpperCase()}` });
  const { inode } = await storage.createDirectory({ ...by(owner), parentId: root.directoryId, name: "docs" });
  for (const username of users) await storage.shares.grant({ ...by(owner), inodeId: inode.id, username });
  await makeFile(storage, owner, users[0] ?? owner, "made");
}

async function makeFile(storage: Storage, owner: string, user: string, name: string): Promise<void> {
  const { id: parentId } = await inodeAt(storage, owner, "docs");
  await storage.createFile({ ...by(owner, user), parentId, name, data: Buffer.from(name), mtimeMs: 1 });
}

const pathsOf = (storage: Storage, owner: string, user: string): Promise<readonly string[]> =>
  againWhenRowsCome(() => storage.shares.pathsOf(owner, user).granted);

const usage = (storage: Storage, owner: string): Promise<unknown> =>
  againWhenRowsCome(() => storage.root(owner)?.usage);

test(
  "a new name takes over roots, shares, makers and trash in all processes, once each has heard",
  LONG,
  async (t) => {
    const place = await enginePlace(places);
    const one = await openEngine(t, place, { name: "n1" });
    const two = await openEngine(t, place, { name: "n2" });
    const told: string[] = [];
    two.storage.shares.onChange((owners) => told.push(...owners));
    await fill(one.storage, ADA, BOB);
    await fill(two.storage, BOB, ADA, NEW);
    await one.rows.setQuota(ADA, 5_000_000n, undefined);
    const { id } = await inodeAt(one.storage, ADA, "docs", "made");
    await one.storage.trash({ ...by(ADA), inodeId: id });
    const before = await usage(one.storage, ADA);
    const change = { from: ADA, to: NEW, version: 7 };

    // The other process still has the person's sessions.
    await assert.rejects(one.storage.renameUser(change), refusal("STORE_UNAVAILABLE"));
    assert.deepEqual(await usage(one.storage, ADA), before);
    assert.equal(one.storage.renamedUpTo(), 0);
    const [first, second] = await Promise.all([
      one.storage.renameUser(change),
      two.storage.renameUser(change),
    ]);
    assert.ok((first === 0) !== (second === 0), "one of them renames");
    assert.deepEqual([one.storage.renamedUpTo(), two.storage.renamedUpTo()], [7, 7]);

    assert.equal(await usage(one.storage, ADA), undefined);
    assert.deepEqual(await usage(one.storage, NEW), before);
    assert.deepEqual(await pathsOf(one.storage, NEW, BOB), ["/docs"]);
    assert.deepEqual(await pathsOf(two.storage, BOB, ADA), []);
    assert.deepEqual(await pathsOf(two.storage, BOB, NEW), ["/docs"]);
    assert.ok(told.includes(BOB), "who has asked about the shares asks again");
    assert.equal((await inodeAt(two.storage, BOB, "docs", "made")).createdBy, NEW);
    const trash = await againWhenRowsCome(() => one.storage.listTrash(NEW, { limit: 10, pageToken: "" }));
    assert.equal(trash.items.length, 1);
    assert.deepEqual(await one.rows.quotas([ADA, NEW]), [
      { username: NEW, bytes: 5_000_000n, inodes: undefined },
    ]);
    // Both go on to change what was renamed, and nothing of the time before comes back.
    await makeFile(one.storage, NEW, NEW, "after");
    await makeFile(two.storage, BOB, NEW, "after");
    await one.storage.createRoot({ owner: ADA, rootId: "01NEWCOMER" });
    assert.equal(await one.storage.renameUser(change), 0, "it is not repeated");
    await assert.rejects(
      Promise.all(
        [8, 8].map((version, at) => (at === 0 ? one : two).storage.renameUser({ ...change, version })),
      ),
      refusal("PATH_EXISTS"),
    );
    await Promise.all([one, two].map(({ storage }) => storage.close()));
    const again = await openEngine(t, place, { directory: one.directory });
    assert.equal(again.storage.renamedUpTo(), 7);
    await until(() => againWhenRowsCome(() => again.storage.root(BOB) !== undefined), "the other one's root");
    for (const owner of [NEW, BOB])
      assert.equal((await inodeAt(again.storage, owner, "docs", "after")).createdBy, NEW);
  },
);

test(
  "a process that has rows of the time before commits none of them, and goes on with fresh ones",
  LONG,
  async (t) => {
    const place = await enginePlace(places);
    const one = await openEngine(t, place, { name: "n1" });
    const two = await openEngine(t, place, { name: "n2" });
    await fill(two.storage, BOB, ADA, CAROL);
    // The second process has said that it is ready, and hears of the rename only by its own commit.
    const hearing = two.storage
      .renameUser({ from: ADA, to: NEW, version: 3 })
      .catch((error: unknown) => error);
    const changes = Promise.all(
      Array.from({ length: 20 }, (_, at) => makeFile(two.storage, BOB, CAROL, `during${at}`)),
    );
    await one.storage.renameUser({ from: ADA, to: NEW, version: 3 });
    for (let at = 0; at < 20; at++) await makeFile(two.storage, BOB, CAROL, `after${at}`);
    await changes;
    await hearing;
    assert.deepEqual(await pathsOf(two.storage, BOB, ADA), []);
    assert.deepEqual(await pathsOf(two.storage, BOB, NEW), ["/docs"]);
    assert.equal((await inodeAt(two.storage, BOB, "docs", "made")).createdBy, NEW);
    // The first one would take the root over.
    for (const { storage } of [one, two]) await storage.close();
    const again = await openEngine(t, place, { directory: two.directory });
    assert.deepEqual(await pathsOf(again.storage, BOB, NEW), ["/docs"]);
    assert.equal((await inodeAt(again.storage, BOB, "docs", "made")).createdBy, NEW);
    assert.equal((await inodeAt(again.storage, BOB, "docs", "after19")).createdBy, CAROL);
  },
);

test(
  "what a process changes by rows of the time before is not committed, and brings no old name back",
  LONG,
  async (t) => {
    const place = await enginePlace(places);
    const one = await openEngine(t, place, { name: "n1" });
    const two = await openEngine(t, place, { name: "n2" });
    await fill(two.storage, ADA, BOB);
    const client = await connectShared(place.database);
    t.after(() => client.end());
    const owners = async (): Promise<unknown[]> =>
      (await client.query("SELECT owner FROM root")).rows.map(({ owner }: { owner: string }) => owner);
    // The second process has said that it is ready, and has not looked since.
    await client.query("UPDATE instance SET renamed_up_to = 5");
    const change = { from: ADA, to: NEW, version: 5 };
    assert.ok((await one.storage.renameUser(change)) > 0);
    await assert.rejects(makeFile(two.storage, ADA, ADA, "late"));
    assert.deepEqual(await owners(), [NEW]);
    assert.equal(await two.storage.renameUser(change), 0);
    await makeFile(two.storage, NEW, NEW, "after");
    assert.deepEqual(await owners(), [NEW]);
  },
);

test(
  "a process that ended before it heard is not waited for, and hears of it at its next start",
  LONG,
  async (t) => {
    const place = await enginePlace(places);
    const one = await openEngine(t, place, { name: "n1" });
    const two = await openEngine(t, place, { name: "n2" });
    await fill(two.storage, ADA, BOB);
    await two.storage.close();
    assert.ok((await one.storage.renameUser({ from: ADA, to: NEW, version: 4 })) > 0);
    const again = await openEngine(t, place, { directory: two.directory });
    assert.equal(await again.storage.renameUser({ from: ADA, to: NEW, version: 4 }), 0);
    const newer = await openEngine(t, place, { name: "n3" });
    assert.equal(newer.storage.renamedUpTo(), 4, "a new folder has nothing of the time before");
  },
);

test(
  "a database of the version before gets what a change of an address needs, and keeps its rows",
  LONG,
  async (t) => {
    const place = await enginePlace(places);
    const one = await openEngine(t, place, { name: "n1" });
    await fill(one.storage, ADA, BOB);
    await one.storage.close();
    const client = await connectShared(place.database);
    await client.query(`DROP TABLE renamed_user, renamed_root; ALTER TABLE instance DROP COLUMN renamed_up_to;
    DROP INDEX inode_by_creator; DROP FUNCTION rename_user(TEXT, TEXT, BIGINT)`);
    await client.end();
    const again = await openEngine(t, place, { directory: one.directory });
    assert.ok((await again.storage.renameUser({ from: ADA, to: NEW, version: 4 })) > 0);
    await makeFile(again.storage, NEW, NEW, "after");
  },
);
