// Compares the answers of a node on the shared engine, which knows nothing before each call, with a local node's.
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { parsePostgresUrl } from "#os/postgres-url.ts";
import { againWhenRowsCome } from "#storage/contract/rows-to-come.ts";
import { SharedStorage } from "#storage/engine/shared-storage.ts";
import { storeSettings } from "#storage/object-store/store-settings.ts";
import { enginePlaces } from "#testing/engine-places.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { until } from "#testing/until.ts";
import { StatusError } from "#wire/framing/status.ts";
import { OnConflict, Sort } from "#wire/proto/gen/grove/v1/common_pb.ts";
import { bytesOf, parts, startTestNode, type TestNode, type TestUser } from "./node.fixture.ts";

const places = enginePlaces();
const { skip } = places;

async function engineNode(): Promise<TestNode> {
  const name = await places.database.createDatabase();
  const query = new URLSearchParams({
    endpoint: `http://127.0.0.1:${places.store.port}`,
    credentials: places.store.credentialsFile,
  });
  const password = encodeURIComponent(places.database.password);
  const url = `postgres://grove:${password}@127.0.0.1:${places.database.port}/${name}`;
  const engine = {
    database: parsePostgresUrl(url, {}),
    store: storeSettings(`s3://${places.store.bucket}/${name}?${query.toString()}`),
  };
  return startTestNode({ dataFolder: join(scratchFolder("grove-engine-"), "data"), options: { engine } });
}

/** What differs between two nodes that did the same: numbers of inodes, moments, tokens. */
const OWN =
  /^(?:\$\w+|etag|inodeId|fileId|id|mtimeMs|ctimeMs|trashId|trashedAtMs|madeAtMs|nowMs|nextPageToken|uploadId|expiresAtMs|secondsLeft|token|deleteAfterMs|purgedAtMs)$/;

function plain(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value, (key, each: unknown) => {
      if (OWN.test(key)) return undefined;
      if (typeof each === "bigint") return `${each}n`;
      return each instanceof Uint8Array ? Buffer.from(each).toString("base64") : each;
    }) ?? "null",
  );
}

type Call = (ada: TestUser, bob: TestUser) => Promise<unknown>;

const LARGE = Buffer.alloc(4_500_000, "a large file ");
const TINT = { namespace: "DAV:", name: "tint", xml: '<tint xmlns="DAV:"/>' };
const place = (path: string) => ({ path });
const etagAt = async (user: TestUser, path: string) => (await user.call.getAttr({ path })).etag;
const CALLS: readonly (readonly [string, Call])[] = [
  ["a folder", (ada) => ada.call.createDirectory(place("/docs"))],
  ["a folder in it", (ada) => ada.call.createDirectory(place("/docs/deep"))],
  ["a taken name", (ada) => ada.call.createDirectory(place("/docs"))],
  ["a small file", (ada) => ada.call.createFile({ path: "/docs/deep/a", data: Buffer.from("hello") })],
  ["a file below nothing", (ada) => ada.call.createFile({ path: "/none/a", data: Buffer.from("x") })],
  ["a large file", (ada) => ada.upload(parts("/docs/large", LARGE, 1_000_000))],
  ["its attributes", (ada) => ada.call.getAttr(place("/docs/large"))],
  ["a missing one's", (ada) => ada.call.getAttr(place("/docs/nothing"))],
  ["a folder's", (ada) => ada.call.changeDir(place("/docs/deep"))],
  ["a list", (ada) => ada.call.listDir(place("/docs"))],
  ["a list by size", (ada) => ada.call.listDir({ path: "/docs", sort: Sort.SIZE_DESC })],
  ["a small file's bytes", (ada) => ada.call.readFile(place("/docs/deep/a"))],
  [
    "bytes of a large file",
    (ada) => ada.call.readFile({ path: "/docs/large", offset: 3_999_990n, length: 40 }),
  ],
  ["a download", async (ada) => bytesOf(await ada.download({ path: "/docs/large" })).equals(LARGE)],
  [
    "a part of it",
    async (ada) => bytesOf(await ada.download({ path: "/docs/large", offset: 4_000_001n })).length,
  ],
  [
    "a changed range",
    (ada) => ada.call.writeFile({ path: "/docs/large", offset: 9n, data: Buffer.from("XY") }),
  ],
  [
    "a changed small file",
    (ada) => ada.call.writeFile({ path: "/docs/deep/a", offset: 2n, data: Buffer.from("!") }),
  ],
  ["a cut", (ada) => ada.call.writeFile({ path: "/docs/large", truncateSize: 4_100_000n })],
  ["a share", (ada, bob) => ada.call.share({ path: "/docs/deep", user: bob.email })],
  ["shares", (ada) => ada.call.listShares(place("/"))],
  ["another user's look", (ada, bob) => bob.call.getAttr({ root: ada.email, path: "/docs/deep/a" })],
  ["another user's look beside it", (ada, bob) => bob.call.getAttr({ root: ada.email, path: "/docs" })],
  ["another user's list", (ada, bob) => bob.call.listDir({ root: ada.email, path: "/docs/deep" })],
  [
    "another user's file",
    (ada, bob) => bob.upload(parts("/docs/deep/b", LARGE, 2_000_000, { root: ada.email })),
  ],
  ["another user's removal", (ada, bob) => bob.call.deleteFile({ root: ada.email, path: "/docs/deep/a" })],
  ["a property", (ada) => ada.call.changeProperties({ path: "/docs/deep/b", changes: [{ property: TINT }] })],
  [
    "another user's property",
    (ada, bob) =>
      bob.call.changeProperties({ root: ada.email, path: "/docs/deep", changes: [{ property: TINT }] }),
  ],
  ["properties", (ada) => ada.call.getProperties(place("/docs/deep/b"))],
  ["a lock", (ada, bob) => bob.call.lock({ root: ada.email, path: "/docs/deep/b", note: "Bob" })],
  ["a lock on a locked file", (ada) => ada.call.lock(place("/docs/deep/b"))],
  ["a lock on a folder", (ada) => ada.call.lock({ path: "/docs/deep", deep: true, shared: true })],
  ["a change of a locked file", (ada) => ada.call.writeFile({ path: "/docs/deep/b", truncateSize: 3n })],
  ["a removal above a lock", (ada) => ada.call.deleteFile({ path: "/docs", recursive: true })],
  ["an explanation of a lock", (ada) => ada.call.explain({ path: "/docs/deep/b", permission: 2 })],
  ["locks", (ada) => ada.call.listLocks({ path: "/", below: true })],
  [
    "a lock that lasts",
    async (ada, bob) => {
      const { locks } = await bob.call.listLocks({ root: ada.email, path: "/docs/deep/b" });
      const { token = "" } = locks.find(({ username }) => username === bob.email) ?? {};
      return bob.call.refreshLock({ root: ada.email, path: "/docs/deep/b", token, seconds: 60 });
    },
  ],
  ["broken locks", (ada) => ada.call.unlock({ path: "/docs/deep/b", breakLocks: true })],
  ["locks after that", (ada) => ada.call.listLocks({ path: "/", below: true })],
  ["a move", (ada) => ada.call.rename({ path: "/docs/deep/b", targetPath: "/b" })],
  ["a copy of a folder", (ada) => ada.call.copy({ path: "/docs", targetPath: "/again" })],
  [
    "a move of another version",
    (ada) => ada.call.rename({ path: "/again", targetPath: "/there", ifMatch: "1-1" }),
  ],
  [
    "a move of that very version",
    async (ada) =>
      ada.call.rename({ path: "/again", targetPath: "/there", ifMatch: await etagAt(ada, "/again") }),
  ],
  [
    "a move back over what is not there",
    (ada) => ada.call.rename({ path: "/there", targetPath: "/again", ifMatch: "", targetIfMatch: "1-1" }),
  ],
  ["a move back", (ada) => ada.call.rename({ path: "/there", targetPath: "/again" })],
  ["a copy of another version", (ada) => ada.call.copy({ path: "/b", targetPath: "/there", ifMatch: "1-1" })],
  [
    "a copy over another version",
    (ada) =>
      ada.call.copy({
        path: "/b",
        targetPath: "/docs/large",
        onConflict: OnConflict.REPLACE,
        targetIfMatch: "1-1",
      }),
  ],
  ["another version for the trash", (ada) => ada.call.trashFile({ path: "/docs/large", ifMatch: "1-1" })],
  ["a file for the trash", (ada) => ada.call.trashFile(place("/docs/large"))],
  ["a folder for the trash", (ada) => ada.call.trashFile(place("/docs/deep"))],
  ["the trash", (ada) => ada.call.showTrash({})],
  [
    "a restore",
    async (ada) => {
      const { items } = await ada.call.showTrash({ originalPath: "/docs/deep" });
      return ada.call.restoreFile({ trashId: items[0]?.trashId ?? "", onConflict: OnConflict.FAIL });
    },
  ],
  ["the end of a share", (ada, bob) => ada.call.unshare({ path: "/docs/deep", user: bob.email })],
  ["the rest of the trash", (ada) => ada.call.purgeTrash({})],
  ["properties of a copy", (ada) => ada.call.getProperties(place("/again/deep"))],
  [
    "a property that goes",
    (ada) => ada.call.changeProperties({ path: "/b", changes: [{ property: TINT, remove: true }] }),
  ],
  // Those of removed inodes count until they are purged, which is later on both.
  [
    "a copy's property that goes",
    (ada) => ada.call.changeProperties({ path: "/again/deep", changes: [{ property: TINT, remove: true }] }),
  ],
  ["a removal of a folder", (ada) => ada.call.deleteFile({ path: "/again", recursive: true })],
  ["an explanation", (ada) => ada.call.explain({ path: "/docs/deep/a", permission: 2 })],
  ["the quota", (ada) => ada.call.getQuota({})],
  ["another user's end", (ada, bob) => bob.call.getAttr({ root: ada.email, path: "/docs/deep/a" })],
  [
    "an upload in two streams",
    async (ada) => {
      const path = "/later";
      const begun = await ada.call.beginUpload({ path, size: BigInt(LARGE.length) });
      const { uploadId } = begun;
      return ada.upload(parts(path, LARGE, 1_000_000, { uploadId }));
    },
  ],
  ["everything", (ada) => ada.call.listDir(place("/"))],
];

async function answers(node: TestNode, before: () => Promise<void>): Promise<[string, unknown][]> {
  const [ada, bob] = [await node.signIn("ada@example.com"), await node.signIn("bob@example.com")];
  const found: [string, unknown][] = [];
  for (const [what, call] of CALLS) {
    await before();
    const answer = await call(ada, bob).catch((error: unknown) => {
      if (!(error instanceof StatusError)) throw error;
      return { refused: error.metadata.get("svc-reason"), message: error.message };
    });
    found.push([what, plain(answer)]);
  }
  return found;
}

test("every call has the local engine's answer, also when no row is at hand", {
  skip,
  timeout: 180_000,
}, async (t) => {
  const local = await startTestNode();
  t.after(() => local.stop());
  const shared = await engineNode();
  t.after(() => shared.stop());
  const expected = await answers(local, () => Promise.resolve());
  const { storage } = shared.node;
  assert.ok(storage instanceof SharedStorage);
  const actual = await answers(shared, () => storage.forgetRows());
  for (const [at, answer] of expected.entries()) assert.deepEqual(actual[at], answer);
});

test("what the database refuses is one caller's failure, and not that of others in the same commit", {
  skip,
  timeout: 180_000,
}, async (t) => {
  const shared = await engineNode();
  t.after(() => shared.stop());
  const [ada, bob] = [await shared.signIn("ada@example.com"), await shared.signIn("bob@example.com")];
  await ada.call.createDirectory({ path: "/d" });
  await ada.call.trashFile({ path: "/d" });
  const wrong: readonly (() => Promise<unknown>)[] = [
    () =>
      ada.call.changeProperties({ path: "/", changes: [{ property: { ...TINT, xml: "<tint>\0</tint>" } }] }),
    () => ada.call.lock({ path: "/", note: "\0" }),
    () => ada.call.restoreFile({ trashId: "\0" }),
  ];
  const { storage } = shared.node;
  assert.ok(storage instanceof SharedStorage);
  for (const [at, call] of wrong.entries()) {
    const both = [call(), bob.call.createDirectory({ path: `/${at}` })];
    assert.deepEqual(
      (await Promise.allSettled(both)).map(({ status }) => status),
      ["rejected", "fulfilled"],
    );
  }
  // Past the operations, which refuse such a text: PostgreSQL holds no NUL.
  const { id } = await againWhenRowsCome(() => storage.resolve(ada.email, []).chain[0]);
  const by = { by: ada.email, accessVersion: undefined };
  const edits = [{ kind: "set", namespace: "", name: "a", xml: "\0" }] as const;
  const { id: other } = await againWhenRowsCome(() => storage.resolve(bob.email, []).chain[0]);
  const group = [
    storage.createDirectory({ ...by, owner: bob.email, by: bob.email, parentId: other, name: "before" }),
    storage.properties.change({ ...by, owner: ada.email, inodeId: id, edits }),
    storage.createDirectory({ ...by, owner: ada.email, parentId: id, name: "behind" }),
  ];
  const outcomes = await Promise.allSettled(group);
  assert.deepEqual(
    outcomes.map(({ status }) => status),
    ["fulfilled", "rejected", "fulfilled"],
  );
  const names = async (user: TestUser) =>
    (await user.call.listDir({ path: "/" })).entries.map(({ name }) => name);
  assert.deepEqual(await names(ada), ["behind"]);
  assert.deepEqual(await names(bob), ["0", "1", "2", "before"]);
});

test("the usage that /metrics tells shrinks with the properties of a removed folder, without another change", {
  skip,
  timeout: 180_000,
}, async (t) => {
  const shared = await engineNode();
  t.after(() => shared.stop());
  const ada = await shared.signIn("ada@example.com");
  await ada.call.createDirectory({ path: "/d" });
  await ada.call.createDirectory({ path: "/d/below" });
  await ada.call.changeProperties({ path: "/d/below", changes: [{ property: TINT }] });
  const { usage } = shared.node.service;
  assert.equal(usage.of(ada.email)?.liveBytes, Object.values(TINT).join("").length);
  await ada.call.deleteFile({ path: "/d", recursive: true });
  await until(() => usage.of(ada.email)?.liveBytes === 0, "the property's bytes have gone");
});
