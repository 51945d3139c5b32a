// Concurrent changes on one path: their answers are those of some order of them (D13).
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { OnConflict } from "#wire/proto/gen/grove/v1/common_pb.ts";
import { parts, refusal, startTestNode, type TestNode, type TestUser } from "./node.fixture.ts";

const ROUNDS = 10;

let node: TestNode;
let ada: TestUser;
before(async () => {
  node = await startTestNode({ env: { SVC_ADMIN_EMAIL: "admin@example.com" } });
  ada = await node.signIn("ada@example.com");
});
after(() => node.stop());

const file = (path: string): Promise<unknown> => ada.call.createFile({ path, data: Buffer.from("here") });

/** "ok", or the reason of a refusal. */
async function outcome(call: Promise<unknown>): Promise<string> {
  try {
    await call;
    return "ok";
  } catch {
    return (await refusal(call)).reason ?? "none";
  }
}

async function names(): Promise<string[]> {
  const { entries } = await ada.call.listDir({ path: "/" });
  return entries.map(({ name }) => name);
}

async function clear(): Promise<void> {
  for (const name of await names()) await ada.call.deleteFile({ path: `/${name}`, recursive: true });
}

test("of two changes that take one path away, one finds nothing there", async () => {
  const ways = {
    rename: () => ada.call.rename({ path: "/a", targetPath: "/x" }),
    "other rename": () => ada.call.rename({ path: "/a", targetPath: "/y" }),
    delete: () => ada.call.deleteFile({ path: "/a" }),
    trash: () => ada.call.trashFile({ path: "/a" }),
  };
  const pairs = [
    ["rename", "other rename"],
    ["rename", "delete"],
    ["delete", "rename"],
    ["trash", "rename"],
    ["rename", "trash"],
  ] as const;
  for (const [one, other] of pairs) {
    for (let round = 0; round < ROUNDS; round++) {
      await file("/a");
      const outcomes = await Promise.all([outcome(ways[one]()), outcome(ways[other]())]);
      assert.deepEqual(outcomes.toSorted(), ["NO_SUCH_PATH", "ok"], `${one} and ${other}`);
      await clear();
    }
  }
});

test("a write meets the file that a move puts in another's place, and does not fall between the two", async () => {
  for (const bytes of [10, 70_000]) {
    for (let round = 0; round < ROUNDS; round++) {
      await file("/a");
      await file("/b");
      const outcomes = await Promise.all([
        outcome(ada.call.rename({ path: "/b", targetPath: "/a", onConflict: OnConflict.REPLACE })),
        outcome(ada.call.writeFile({ path: "/a", offset: 0n, data: Buffer.alloc(bytes) })),
      ]);
      assert.deepEqual(outcomes, ["ok", "ok"]);
      assert.deepEqual(await names(), ["a"]);
      await clear();
    }
  }
});

test("what is made in a folder that moves away at that moment lies where its path said, or in the folder that moved", async () => {
  for (let round = 0; round < ROUNDS; round++) {
    await ada.call.createDirectory({ path: "/a" });
    const [moved, made, uploaded] = await Promise.all([
      outcome(ada.call.rename({ path: "/a", targetPath: "/b" })),
      outcome(ada.call.createFile({ path: "/a/made", data: Buffer.from("1") })),
      outcome(ada.upload(parts("/a/uploaded", Buffer.from("22"), 1))),
    ]);
    assert.equal(moved, "ok");
    const { entries } = await ada.call.listDir({ path: "/b" });
    const wanted = [made === "ok" ? ["made"] : [], uploaded === "ok" ? ["uploaded"] : []].flat();
    assert.deepEqual(
      entries.map(({ name }) => name),
      wanted,
    );
    for (const said of [made, uploaded]) assert.ok(["ok", "NO_SUCH_PATH"].includes(said), said);
    await clear();
  }
});

test("a write or cut that others overtake again and again is made all the same, within its claim", async () => {
  const { storage } = node.node.service.uploads;
  const [setSize, writeRange] = [storage.setSize.bind(storage), storage.writeRange.bind(storage)];
  const bob = await node.signIn("bob@example.com");
  const of = { root: ada.email, path: "/a" };
  await file("/a");
  await ada.call.share({ path: "/a", user: bob.email });
  await ada.call.purgeTrash({});
  const fileId = storage.resolve(ada.email, ["a"]).chain.at(-1)?.id ?? 0;
  const plain = { owner: ada.email, by: ada.email, accessVersion: undefined, ifMatch: undefined, fileId };
  const overtaken = async <T>(made: () => Promise<T>): Promise<T> => {
    await setSize({ ...plain, sizeBytes: 0 });
    return made().catch(async (error: unknown) => {
      await setSize({ ...plain, sizeBytes: 4 });
      throw error;
    });
  };
  storage.setSize = (change) => overtaken(() => setSize(change));
  storage.writeRange = (change) => overtaken(() => writeRange(change));
  try {
    assert.equal((await ada.call.writeFile({ ...of, truncateSize: 9n })).size, 9n);
    assert.equal((await ada.call.writeFile({ ...of, offset: 3n, data: Buffer.from("xx") })).size, 5n);
    assert.equal((await bob.call.writeFile({ ...of, truncateSize: 2n })).size, 2n);
    const { etag: ifMatch } = await ada.call.getAttr(of);
    assert.equal(await outcome(ada.call.writeFile({ ...of, truncateSize: 0n, ifMatch })), "ETAG_MISMATCH");
  } finally {
    Object.assign(storage, { setSize, writeRange });
  }
  const quota = await ada.call.getQuota({});
  assert.deepEqual([quota.liveBytes, quota.trashBytes], [4n, 0n]);
  await clear();
});

test("writes at once inside a file find room at the quota's end, since they add nothing", async () => {
  const admin = await node.signIn("admin@example.com");
  const eve = await node.signIn("eve@example.com");
  await eve.call.createFile({ path: "/f", data: Buffer.alloc(1_000) });
  await admin.call.setQuota({ username: eve.email, quotaBytes: 1_400n });
  const write = () => outcome(eve.call.writeFile({ path: "/f", offset: 500n, data: Buffer.alloc(500) }));
  assert.deepEqual(new Set(await Promise.all(Array.from({ length: 8 }, write))), new Set(["ok"]));
});
