// Tests of Copy and truncation over gRPC: permissions, cost, and refusals that change nothing (D13, D16).
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { until } from "#testing/until.ts";
import { OnConflict } from "#wire/proto/gen/grove/v1/common_pb.ts";
import { bytesOf, parts, refusal, startTestNode, type TestNode, type TestUser } from "./node.fixture.ts";

let node: TestNode;
let ada: TestUser;
let bob: TestUser;
let admin: TestUser;
before(async () => {
  node = await startTestNode({ env: { SVC_ADMIN_EMAIL: "root@example.com" } });
  ada = await node.signIn("ada@example.com");
  bob = await node.signIn("bob@example.com");
  admin = await node.signIn("root@example.com");
});
after(() => node.stop());

async function makeTree(user: TestUser, path: string): Promise<void> {
  await user.call.createDirectory({ path });
  await user.call.createDirectory({ path: `${path}/in` });
  await user.call.createFile({ path: `${path}/in/small`, data: Buffer.from("small") });
  await user.upload(parts(`${path}/large`, Buffer.alloc(200_000, "x"), 100_000));
}

test("a directory is copied with all that is in it, and counts in full (D13, D16)", async () => {
  await makeTree(ada, "/t");
  const usedBefore = (await ada.call.getQuota({})).usedBytes;
  const copied = await ada.call.copy({ path: "/t", targetPath: "/u" });
  assert.equal(copied.path, "/u");
  assert.equal(copied.size, 200_005n);
  assert.equal((await ada.call.getQuota({})).usedBytes, usedBefore + 200_005n);
  assert.equal(bytesOf(await ada.download({ path: "/u/in/small" })).toString(), "small");
  const again = await ada.call.copy({ path: "/t", targetPath: "/u", onConflict: OnConflict.RENAME });
  assert.equal(again.path, "/u (2)");
  assert.equal((await refusal(ada.call.copy({ path: "/t", targetPath: "/u" }))).reason, "PATH_EXISTS");
  const replace = ada.call.copy({ path: "/t", targetPath: "/u", onConflict: OnConflict.REPLACE });
  assert.equal((await refusal(replace)).reason, "NOT_EMPTY");
});

test("a copy whose client has cancelled ends: nothing of it comes into sight or stays claimed (D13, D16)", async () => {
  const eve = await node.signIn("eve@example.com");
  await eve.call.createDirectory({ path: "/big" });
  const { storage, service } = node.node;
  const { chain } = storage.resolve("eve@example.com", ["big"]);
  const place = { owner: "eve@example.com", by: "eve@example.com", accessVersion: undefined };
  const parentId = chain.at(-1)?.id ?? assert.fail();
  const put = (name: string) =>
    storage.createFile({ ...place, parentId, name, data: Buffer.from("1"), mtimeMs: 0 });
  await Promise.all(Array.from({ length: 8_000 }, (_, index) => put(`f${index}`)));
  const gone = new AbortController();
  const copying = eve.call.copy({ path: "/big", targetPath: "/copy" }, { signal: gone.signal });
  const refused = assert.rejects(copying);
  await eve.call.createDirectory({ path: "/beside" });
  gone.abort();
  await refused;
  await until(() => service.ledger.openAccounts === 0);
  assert.equal((await refusal(eve.call.getAttr({ path: "/copy" }))).reason, "NO_SUCH_PATH");
});

test("every bad copy gets its answer and changes nothing (D1)", async () => {
  const before = await ada.call.getQuota({});
  const rows: readonly (readonly [string, string, string])[] = [
    ["/nothing", "/x", "NO_SUCH_PATH"],
    ["/t", "/no/such", "NO_SUCH_PATH"],
    ["/t", "/t/in/x", "BAD_ARGUMENT"],
    ["/", "/x", "BAD_ARGUMENT"],
    ["/t", "/", "BAD_ARGUMENT"],
    ["/t", "/t/in/small/x", "NOT_DIRECTORY"],
    ["t", "/x", "BAD_ARGUMENT"],
  ];
  for (const [path, targetPath, reason] of rows) {
    assert.equal(
      (await refusal(ada.call.copy({ path, targetPath }))).reason,
      reason,
      `${path} ${targetPath}`,
    );
  }
  const foreign = bob.call.copy({ root: "ada@example.com", path: "/t", targetPath: "/x" });
  assert.equal((await refusal(foreign)).code, 7);
  assert.equal((await ada.call.getQuota({})).usedBytes, before.usedBytes);
});

test("a copy that the quota has no room for is refused before anything is copied (D16)", async () => {
  const user = await node.signIn("full@example.com");
  await makeTree(user, "/t");
  await admin.call.setQuota({ username: "full@example.com", quotaBytes: 400_009n });
  const refused = await refusal(user.call.copy({ path: "/t", targetPath: "/u" }));
  assert.deepEqual([refused.reason, refused.message], ["QUOTA_EXCEEDED", "storage quota exceeded"]);
  await admin.call.setQuota({ username: "full@example.com", quotaBytes: 400_010n });
  await user.call.copy({ path: "/t", targetPath: "/u" });
  assert.equal((await user.call.getQuota({})).usedBytes, 400_010n);
});

test("a sharee copies from one shared folder of a root to another, not out of what is shared (D13)", async () => {
  const root = "ada@example.com";
  await makeTree(ada, "/s1");
  await ada.call.createDirectory({ path: "/s2" });
  for (const path of ["/s1", "/s2"]) await ada.call.share({ path, user: "bob@example.com" });
  const copied = await bob.call.copy({ root, path: "/s1/in", targetPath: "/s2/in" });
  assert.equal(copied.owner, root);
  assert.equal(copied.createdBy, "bob@example.com");
  assert.equal((await refusal(bob.call.copy({ root, path: "/s1/in", targetPath: "/x" }))).code, 7);
  assert.equal((await refusal(bob.call.copy({ root, path: "/t", targetPath: "/s2/t" }))).code, 7);
});

test("a file is cut and grown to a size, a hole reads as zeros and is charged in full (D15, D16)", async () => {
  const user = await node.signIn("cut@example.com");
  await user.call.createFile({ path: "/f", data: Buffer.from("0123456789") });
  const cut = await user.call.writeFile({ path: "/f", truncateSize: 4n });
  assert.equal(cut.size, 4n);
  const grown = await user.call.writeFile({ path: "/f", truncateSize: 100_000n, ifMatch: cut.etag });
  assert.notEqual(grown.etag, cut.etag);
  const bytes = bytesOf(await user.download({ path: "/f" }));
  assert.ok(Buffer.concat([Buffer.from("0123"), Buffer.alloc(99_996)]).equals(bytes));
  assert.equal((await user.call.getQuota({})).usedBytes, 100_000n);
  await admin.call.setQuota({ username: "cut@example.com", quotaBytes: 100_000n });
  const over = await refusal(user.call.writeFile({ path: "/f", truncateSize: 100_001n }));
  assert.equal(over.reason, "QUOTA_EXCEEDED");
  await admin.call.setQuota({ username: "cut@example.com", quotaBytes: 5n });
  // A change that frees space works over the quota.
  assert.equal((await user.call.writeFile({ path: "/f", truncateSize: 0n })).size, 0n);
  const stale = await refusal(user.call.writeFile({ path: "/f", truncateSize: 1n, ifMatch: cut.etag }));
  assert.equal(stale.reason, "ETAG_MISMATCH");
  const both = await refusal(user.call.writeFile({ path: "/f", truncateSize: 1n, data: Buffer.from("x") }));
  assert.equal(both.reason, "BAD_ARGUMENT");
});

test("no bytes written far behind the end grow nothing, so that nothing passes the quota (D16)", async () => {
  const user = await node.signIn("hole@example.com");
  await user.call.createFile({ path: "/f", data: Buffer.from("abc") });
  const written = await user.call.writeFile({ path: "/f", offset: 2n ** 42n });
  assert.equal(written.size, 3n);
  assert.equal((await user.call.getQuota({})).usedBytes, 3n);
});
