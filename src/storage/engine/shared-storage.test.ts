// The shared engine as a whole: what one process keeps, another one serves after its end.
import assert from "node:assert/strict";
import { test } from "node:test";
import { crc32 } from "node:zlib";
import type { ChangeContext } from "#storage/contract/inode.ts";
import { againWhenRowsCome } from "#storage/contract/rows-to-come.ts";
import type { Storage } from "#storage/contract/storage.ts";
import { freshStorage, openTestStorage, patterned, refusal } from "#storage/local/store.fixture.ts";
import { connectShared } from "#storage/shared/shared-connection.ts";
import { enginePlaces } from "#testing/engine-places.ts";
import { until } from "#testing/until.ts";
import { enginePlace, inodeAt, openEngine, readAll, upload } from "./engine.fixture.ts";

const places = enginePlaces();
const { skip } = places;
const LONG = { skip, timeout: 120_000 };
const ADA = "ada@example.com";
const BOB = "bob@example.com";
const BY_ADA: ChangeContext = { owner: ADA, by: ADA, accessVersion: undefined };
const PROPERTY_BYTES = "DAV:".length + "tint".length + "<tint/>".length;
const LOCK = {
  token: "urn:uuid:1",
  credential: "",
  isExclusive: true,
  isDeep: false,
  note: "<owner/>",
  expiresAtMs: 4_000_000_000_000,
};

/** Does one of everything; returns the large file's bytes. */
async function fill(storage: Storage): Promise<Buffer> {
  const root = await storage.createRoot({ owner: ADA, rootId: "01ROOT" });
  const docs = await storage.createDirectory({ ...BY_ADA, parentId: root.directoryId, name: "docs" });
  const parentId = docs.inode.id;
  await storage.createFile({ ...BY_ADA, parentId, name: "small", data: Buffer.from("hello"), mtimeMs: 1 });
  const bytes = patterned(9_000_001, 7);
  await upload(storage, ADA, parentId, "large", bytes);
  const large = await inodeAt(storage, ADA, "docs", "large");
  const patch = Buffer.from("a changed range");
  await storage.writeRange({
    ...BY_ADA,
    fileId: large.id,
    offset: 4_100_000,
    data: patch,
    ifMatch: undefined,
  });
  patch.copy(bytes, 4_100_000);
  await storage.shares.grant({ ...BY_ADA, inodeId: parentId, username: BOB });
  const copied = await storage.copy({
    by: ADA,
    maxBytes: 20_000_000,
    maxInodes: 10,
    mayGoOn: () => undefined,
    target: () => ({
      ...BY_ADA,
      sourceId: large.id,
      parentId: root.directoryId,
      name: "copy",
      onConflict: "fail",
    }),
  });
  await storage.trash({ ...BY_ADA, inodeId: copied.inode.id });
  const edits = [{ kind: "set", namespace: "DAV:", name: "tint", xml: "<tint/>" } as const];
  const { usedDeltaBytes } = await storage.properties.change({ ...BY_ADA, inodeId: parentId, edits });
  assert.equal(usedDeltaBytes, PROPERTY_BYTES);
  await storage.locks.take({ ...BY_ADA, inodeId: large.id, ...LOCK });
  return bytes;
}

/** Looks at what `fill` made. */
async function assertFilled(storage: Storage, bytes: Buffer): Promise<void> {
  const small = await inodeAt(storage, ADA, "docs", "small");
  assert.equal((await readAll(storage, small.id)).toString(), "hello");
  const large = await inodeAt(storage, ADA, "docs", "large");
  assert.ok((await readAll(storage, large.id)).equals(bytes));
  const root = await againWhenRowsCome(() => storage.root(ADA));
  assert.equal(root?.usage.liveBytes, 9_000_006 + PROPERTY_BYTES);
  const { id } = await inodeAt(storage, ADA, "docs");
  const kept = await againWhenRowsCome(() => storage.properties.of(id));
  assert.deepEqual(kept, [{ namespace: "DAV:", name: "tint", xml: "<tint/>" }]);
  assert.deepEqual(await againWhenRowsCome(() => storage.properties.of(small.id)), []);
  const held = await againWhenRowsCome(() => storage.locks.ofRoot(ADA));
  assert.deepEqual(held, [{ ...LOCK, inodeId: large.id, username: ADA }]);
  assert.deepEqual(await againWhenRowsCome(() => storage.locks.namesBelow(large.id, id)), ["large"]);
  const other = { ...LOCK, token: "urn:uuid:2" };
  await assert.rejects(storage.locks.take({ ...BY_ADA, inodeId: large.id, ...other }), refusal("LOCKED"));
  assert.equal(root?.usage.trashBytes, 9_000_001);
  assert.deepEqual(await againWhenRowsCome(() => storage.shares.usersOf(small.id)), [BOB]);
  assert.deepEqual(storage.shares.pathsOf(ADA, BOB).granted, ["/docs"]);
  const { items } = await againWhenRowsCome(() => storage.listTrash(ADA, { limit: 9, pageToken: "" }));
  assert.deepEqual(
    items.map(({ originalPath }) => originalPath),
    ["/copy"],
  );
  const docs = await inodeAt(storage, ADA, "docs");
  const page = await againWhenRowsCome(() =>
    storage.list(docs.id, { limit: 10, pageToken: "", sort: "name" }),
  );
  assert.deepEqual(
    page.entries.map(({ name }) => name),
    ["large", "small"],
  );
  assert.deepEqual((await againWhenRowsCome(() => storage.resolve(ADA, ["nothing"]))).missing, ["nothing"]);
}

test("a process serves what it keeps, and the next one of its folder the same", LONG, async (t) => {
  const place = await enginePlace(places);
  const first = await openEngine(t, place);
  const bytes = await fill(first.storage);
  await assertFilled(first.storage, bytes);
  await first.storage.close();
  const again = await openEngine(t, place, { directory: first.directory });
  await assertFilled(again.storage, bytes);
});

test(
  "the roots of a process that stands still are served by another, and it commits nothing more",
  LONG,
  async (t) => {
    const place = await enginePlace(places);
    const leaseMs = 2_000;
    const first = await openEngine(t, place, { leaseMs });
    const bytes = await fill(first.storage);
    const second = await openEngine(t, place, { name: "n2", leaseMs });
    assert.equal(second.storage.root(ADA), undefined);
    assert.throws(() => second.storage.resolve(ADA, []), refusal("NO_SUCH_PATH"));
    const gained: string[] = [];
    second.storage.onRoots((owners) => gained.push(...owners));
    // As if others had seen no renewal for the time of a lease.
    const other = await connectShared(place.database);
    await other.query("UPDATE instance SET is_ended = TRUE WHERE address LIKE 'n1.%'");
    await other.end();
    await until(() => gained.includes(ADA));
    await assertFilled(second.storage, bytes);
    const docs = await inodeAt(second.storage, ADA, "docs");
    const late = { ...BY_ADA, parentId: docs.id, name: "late", data: Buffer.from("x"), mtimeMs: 1 };
    await assert.rejects(first.storage.createFile(late));
    await second.storage.createFile(late);
    assert.equal(
      (await readAll(second.storage, (await inodeAt(second.storage, ADA, "docs", "late")).id)).toString(),
      "x",
    );
  },
);

test("quotas of users come with their roots, and those of others stay", LONG, async (t) => {
  const place = await enginePlace(places);
  const first = await openEngine(t, place);
  await first.storage.createRoot({ owner: ADA, rootId: "01ROOT" });
  await first.rows.setQuota(ADA, 5_000n, undefined);
  await first.rows.setQuota(ADA, undefined, 17);
  await first.rows.setQuota(BOB, 9_000n, undefined);
  await first.rows.setQuota(BOB, 0n, undefined);
  await first.storage.close();
  const taken: unknown[] = [];
  const again = await openEngine(t, place, {
    directory: first.directory,
    takeQuotas: async (usernames, kept) => void taken.push(usernames, kept),
  });
  assert.deepEqual(taken, [[ADA], [{ username: ADA, bytes: 5_000n, inodes: 17 }]]);
  assert.deepEqual(await again.rows.quotas([BOB]), [{ username: BOB, bytes: undefined, inodes: undefined }]);
});

test("a folder of the other engine is refused, both ways", LONG, async (t) => {
  const place = await enginePlace(places);
  const engine = await openEngine(t, place);
  await engine.storage.close();
  await assert.rejects(openTestStorage(engine.directory), /start it with -engine/);
  const local = await freshStorage(t);
  await local.storage.close();
  await assert.rejects(openEngine(t, place, { directory: local.directory }), refusal("BAD_ARGUMENT"));
});

test("a copy of the database is refused the bucket of the original", LONG, async (t) => {
  const place = await enginePlace(places);
  await openEngine(t, place);
  const other = await enginePlace(places);
  await assert.rejects(openEngine(t, { ...other, storeUrl: place.storeUrl }), refusal("BAD_ARGUMENT"));
});

test(
  "while rows are fetched again, every read waits for them: no share seems to have ended",
  LONG,
  async (t) => {
    const { storage } = await openEngine(t, await enginePlace(places));
    await fill(storage);
    await storage.forgetRows();
    const paths = await Promise.all(
      [1, 2, 3].map(() => againWhenRowsCome(() => storage.shares.pathsOf(ADA, BOB).granted)),
    );
    assert.deepEqual(paths, [["/docs"], ["/docs"], ["/docs"]]);
  },
);

test(
  "a download goes on where rows were forgotten in its middle, and reads of a range open a part of a file",
  LONG,
  async (t) => {
    const { storage } = await openEngine(t, await enginePlace(places));
    const root = await storage.createRoot({ owner: ADA, rootId: "01ROOT" });
    const bytes = patterned(9_000_000);
    await upload(storage, ADA, root.directoryId, "f", bytes);
    const { id } = await inodeAt(storage, ADA, "f");
    const content = await againWhenRowsCome(() => storage.openFile(id, { offset: 0, end: bytes.length }));
    t.after(() => content.close());
    for (const offset of [0, 4_000_000, 8_000_000]) {
      const block = await content.readBlock(offset);
      assert.ok(block.equals(bytes.subarray(offset, offset + block.length)), `${offset}`);
      await storage.forgetRows();
    }
    const crc = await content.rangeCrc32(4_000_000, 4_000_000);
    assert.equal(crc, crc32(bytes.subarray(4_000_000, 8_000_000)));
  },
);

test(
  "another user's copy takes the name of a file that it replaces, which goes into the trash",
  LONG,
  async (t) => {
    const { storage } = await openEngine(t, await enginePlace(places));
    const { directoryId: parentId } = await storage.createRoot({ owner: ADA, rootId: "01ROOT" });
    const made = await storage.createFile({
      ...BY_ADA,
      parentId,
      name: "new",
      data: Buffer.from("new"),
      mtimeMs: 1,
    });
    await storage.createFile({ ...BY_ADA, parentId, name: "old", data: Buffer.from("old"), mtimeMs: 1 });
    await storage.shares.grant({ ...BY_ADA, inodeId: parentId, username: BOB });
    const { accessVersion } = storage.root(ADA) ?? assert.fail();
    await storage.copy({
      by: BOB,
      maxBytes: 20_000_000,
      maxInodes: 10,
      mayGoOn: () => undefined,
      target: () => ({
        owner: ADA,
        by: BOB,
        accessVersion,
        sourceId: made.inode.id,
        parentId,
        name: "old",
        onConflict: "replace",
      }),
    });
    assert.equal((await readAll(storage, (await inodeAt(storage, ADA, "old")).id)).toString(), "new");
  },
);

test("without the database, uploads, new roots and quotas are refused in words after which clients try again", {
  skip,
  timeout: 60_000,
}, async (t) => {
  const { storage, rows } = await openEngine(t, await enginePlace(places));
  const { directoryId } = await storage.createRoot({ owner: ADA, rootId: "01ROOT" });
  const other = storage.createRoot({ owner: ADA, rootId: "02ROOT" });
  await assert.rejects(other, refusal("PATH_EXISTS"));
  const bytes = patterned(100_000);
  await places.database.stop("immediate");
  t.after(() => places.database.start());
  for (const call of [
    () => upload(storage, ADA, directoryId, "large", bytes),
    () => storage.createRoot({ owner: BOB, rootId: "02ROOT" }),
    () => rows.setQuota(ADA, 5n, undefined),
  ]) {
    await assert.rejects(call, refusal("STORE_UNAVAILABLE"));
  }
  await places.database.start();
  await until(() =>
    upload(storage, ADA, directoryId, "large", bytes).then(
      () => true,
      () => false,
    ),
  );
});
