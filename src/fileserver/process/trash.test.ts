// The trash over a real connection: owners, shares, downloads, quota, full disks, pages, audit.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, test } from "node:test";
import { Code } from "#wire/framing/status.ts";
import { OnConflict } from "#wire/proto/gen/grove/v1/common_pb.ts";
import type { DownloadResponse } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { bytesOf, parts, refusal, startTestNode, type TestNode, type TestUser } from "./node.fixture.ts";

let node: TestNode;
let users = 0;
before(async () => {
  node = await startTestNode({ env: { SVC_ADMIN_EMAIL: "admin@example.com" } });
});
after(() => node.stop());

const newUser = (): Promise<TestUser> => node.signIn(`trash${users++}@example.com`);
const reasonOf = async (call: Promise<unknown>) => (await refusal(call)).reason;
const trash = async (user: TestUser, path: string) => {
  const { item } = await user.call.trashFile({ path });
  assert.ok(item);
  return item;
};
/** The audit lines about a user's trash, once there are as many as expected. */
const linesOf = async (owner: string, count: number) => {
  for (;;) {
    const reply = await fetch(`http://127.0.0.1:${node.node.metricsPort}/audit?after=0&limit=1000`);
    const { entries } = (await reply.json()) as {
      entries: { act: string; actor: string; subject: string; detail: Record<string, unknown> }[];
    };
    const lines = entries.filter(
      ({ act, subject }) => act.startsWith("trash.") && subject.startsWith(`${owner}:`),
    );
    if (lines.length >= count) return lines;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
};
const audited = async (act: string) => {
  const reply = await fetch(`http://127.0.0.1:${node.node.metricsPort}/audit?after=0`);
  const { entries } = (await reply.json()) as { entries: { act: string; actor: string; subject: string }[] };
  return entries.filter((entry) => entry.act === act);
};

test("a folder goes, keeps counting in the quota, and comes back, by the calls of spec 4.5 (D14)", async () => {
  const user = await newUser();
  await user.call.createDirectory({ path: "/d" });
  await user.upload(parts("/d/large", randomBytes(100_000), 50_000));
  const item = await trash(user, "/d");
  assert.deepEqual(
    [item.originalPath, item.size, item.inodeCount, item.trashedBy, item.parentExists],
    ["/d", 100_000n, 2n, user.email, true],
  );
  assert.equal(item.expiresAtMs - item.trashedAtMs, 30n * 86_400_000n);
  assert.equal(await reasonOf(user.call.getAttr({ path: "/d/large" })), "NO_SUCH_PATH");
  const quota = await user.call.getQuota({});
  assert.deepEqual([quota.usedBytes, quota.liveBytes, quota.trashBytes], [100_000n, 0n, 100_000n]);
  const { items, nowMs } = await user.call.showTrash({});
  assert.deepEqual(items, [item]);
  assert.ok(nowMs >= item.trashedAtMs, "the clock that the items' times are of");
  const back = await user.call.restoreFile({ trashId: item.trashId });
  assert.deepEqual([back.path, back.size], ["/d", 100_000n]);
  assert.equal(await reasonOf(user.call.restoreFile({ trashId: item.trashId })), "NO_SUCH_PATH");
});

test("refusals of the trash have the reasons of D1 and change nothing", async (t) => {
  const user = await newUser();
  await user.call.createFile({ path: "/f", data: Buffer.from("x") });
  const { trashId } = await trash(user, "/f");
  await user.call.createFile({ path: "/f" });
  await user.call.createDirectory({ path: "/full" });
  await user.call.createFile({ path: "/full/g" });
  const restore = (targetPath: string, onConflict: OnConflict = OnConflict.FAIL) =>
    user.call.restoreFile({ trashId, targetPath, onConflict });
  const rows: [string, () => Promise<unknown>, number, string][] = [
    ["the root directory", () => user.call.trashFile({ path: "/" }), Code.INVALID_ARGUMENT, "BAD_ARGUMENT"],
    ["what is not there", () => user.call.trashFile({ path: "/no" }), Code.NOT_FOUND, "NO_SUCH_PATH"],
    ["onto a taken name", () => restore(""), Code.ALREADY_EXISTS, "PATH_EXISTS"],
    ["below a file", () => restore("/f/x"), Code.FAILED_PRECONDITION, "NOT_DIRECTORY"],
    ["onto a folder", () => restore("/full", OnConflict.REPLACE), Code.FAILED_PRECONDITION, "IS_DIRECTORY"],
    ["onto the root", () => restore("/"), Code.ALREADY_EXISTS, "PATH_EXISTS"],
    ["to no path", () => restore("x"), Code.INVALID_ARGUMENT, "BAD_ARGUMENT"],
    ["to a bad name", () => restore("/a/.."), Code.INVALID_ARGUMENT, "BAD_NAME"],
    ["an unknown item", () => user.call.restoreFile({ trashId: "x" }), Code.NOT_FOUND, "NO_SUCH_PATH"],
    ["an unknown way", () => restore("", 9 as OnConflict), Code.INVALID_ARGUMENT, "BAD_ARGUMENT"],
    ["onto the trash", () => restore("", OnConflict.TRASH), Code.INVALID_ARGUMENT, "BAD_ARGUMENT"],
    ["a page of 1001", () => user.call.showTrash({ pageSize: 1_001 }), Code.INVALID_ARGUMENT, "BAD_ARGUMENT"],
    ["a foreign token", () => user.call.showTrash({ pageToken: "x" }), Code.INVALID_ARGUMENT, "BAD_ARGUMENT"],
  ];
  for (const [what, call, code, reason] of rows) {
    await t.test(what, async () => {
      const refused = await refusal(call());
      assert.deepEqual([refused.code, refused.reason], [code, reason], refused.message);
    });
  }
  assert.equal((await user.call.showTrash({})).items.length, 1);
  const both = await restore("", OnConflict.RENAME);
  assert.equal(both.path, "/f (2)");
});

test("the trash is its owner's alone: sharees, strangers and administrators are refused, whether or not there is one (spec 5.4, D1)", async () => {
  const owner = await newUser();
  const sharee = await newUser();
  const stranger = await newUser();
  const admin = await node.signIn("admin@example.com");
  await owner.call.createDirectory({ path: "/docs" });
  await owner.call.createFile({ path: "/docs/f", data: Buffer.from("x") });
  await owner.call.share({ path: "/docs", user: sharee.email });
  const { trashId } = await trash(owner, "/docs/f");
  for (const [user, root] of [
    [sharee, owner.email],
    [stranger, owner.email],
    [admin, owner.email],
    [stranger, "nobody@example.com"],
  ] as const) {
    const answers = await Promise.all(
      [
        user.call.trashFile({ root, path: "/docs" }),
        user.call.showTrash({ root }),
        user.call.restoreFile({ root, trashId }),
        user.call.purgeTrash({ root }),
        user.call.purgeTrash({ root, trashIds: [trashId] }),
      ].map((call) => refusal(call)),
    );
    for (const { code, reason, message } of answers) {
      assert.equal(code, Code.PERMISSION_DENIED);
      const own = answers[0];
      if (user !== sharee) assert.deepEqual([reason, message], [own?.reason, own?.message]);
    }
  }
  assert.equal((await owner.call.showTrash({})).items.length, 1);
});

test("trashing ends a sharee's running download at the next chunk, not the owner's; the share is told on the item (D13, D14)", async () => {
  const owner = await newUser();
  const sharee = await newUser();
  const bytes = randomBytes(40_000_000);
  await owner.call.createDirectory({ path: "/docs" });
  await owner.upload(parts("/docs/large", bytes, 4_000_000));
  await owner.call.share({ path: "/docs", user: sharee.email });
  const slow = async (user: TestUser, ready: PromiseWithResolvers<void>, go: Promise<void>) => {
    const replies: DownloadResponse[] = [];
    for await (const reply of user.call.downloadFile({ root: owner.email, path: "/docs/large" })) {
      replies.push(reply);
      if (replies.length === 2) {
        ready.resolve();
        await go;
      }
    }
    return bytesOf(replies);
  };
  const [ready, ownReady, trashed] = [0, 0, 0].map(() => Promise.withResolvers<void>());
  assert.ok(ready && ownReady && trashed);
  const cut = refusal(slow(sharee, ready, trashed.promise));
  const whole = slow(owner, ownReady, trashed.promise);
  await Promise.all([ready.promise, ownReady.promise]);
  const item = await trash(owner, "/docs/large");
  trashed.resolve();
  assert.equal((await cut).code, Code.PERMISSION_DENIED);
  assert.ok((await whole).equals(bytes));
  assert.deepEqual(item.formerShares, []);
  const folder = await trash(owner, "/docs");
  assert.deepEqual(
    folder.formerShares.map(({ path, user }) => [path, user]),
    [["/docs", sharee.email]],
  );
  assert.equal(await reasonOf(sharee.call.getAttr({ root: owner.email, path: "/docs" })), "NOT_SHARED");
  await owner.call.restoreFile({ trashId: folder.trashId });
  assert.equal(await reasonOf(sharee.call.getAttr({ root: owner.email, path: "/docs" })), "NOT_SHARED");
});

test("what a sharee's upload replaces is in the owner's trash, and counts in the owner's quota (D13)", async () => {
  const owner = await newUser();
  const sharee = await newUser();
  await owner.call.createDirectory({ path: "/docs" });
  await owner.upload(parts("/docs/f", Buffer.from("the owner's words"), 100));
  await owner.call.share({ path: "/docs", user: sharee.email });
  const reply = await sharee.upload(parts("/docs/f", Buffer.from("others"), 100, { root: owner.email }));
  assert.equal(reply.quotaUsed, 23n);
  const { items } = await owner.call.showTrash({ originalPath: "/docs/f" });
  assert.deepEqual(
    items.map(({ size, trashedBy, originalPath }) => [size, trashedBy, originalPath]),
    [[17n, sharee.email, "/docs/f"]],
  );
  const attr = await owner.call.restoreFile({
    trashId: items[0]?.trashId ?? "",
    onConflict: OnConflict.REPLACE,
  });
  assert.equal(attr.path, "/docs/f");
  assert.equal(
    Buffer.from((await owner.call.readFile({ path: "/docs/f" })).data).toString(),
    "the owner's words",
  );
  assert.equal((await owner.call.getQuota({})).usedBytes, 17n);
});

test("over the quota and on a full disk trash, restore and purge work, and a purge makes room (D14)", async () => {
  const owner = await newUser();
  const admin = await node.signIn("admin@example.com");
  await owner.upload(parts("/f", randomBytes(5_000), 5_000));
  await admin.call.setQuota({ username: owner.email, quotaBytes: 4_000n });
  const before = node.disk.freeBytes;
  node.disk.freeBytes = 0n;
  try {
    const { trashId } = await trash(owner, "/f");
    // Folders on the way would be new ones (spec 4.6.1).
    const elsewhere = owner.call.restoreFile({ trashId, targetPath: "/new/place/f" });
    assert.equal(await reasonOf(elsewhere), "QUOTA_EXCEEDED");
    assert.equal((await owner.call.restoreFile({ trashId, targetPath: "/g" })).path, "/g");
    const again = await trash(owner, "/g");
    assert.equal(await reasonOf(owner.call.createFile({ path: "/x" })), "QUOTA_EXCEEDED");
    const purged = await owner.call.purgeTrash({ trashIds: [again.trashId, "unknown"] });
    assert.deepEqual([purged.purgedItems, purged.freedBytes], [1n, 5_000n]);
  } finally {
    node.disk.freeBytes = before;
  }
  await owner.call.createFile({ path: "/x", data: randomBytes(4_000) });
});

test("PurgeTrash takes all of one trash, or what is older than a time, of named items too, and each item has its audit line (D14, D24)", async () => {
  const user = await newUser();
  const other = await newUser();
  await other.call.createFile({ path: "/mine", data: Buffer.from("x") });
  await trash(other, "/mine");
  const paths = Array.from({ length: 150 }, (_, at) => `/f${at}`);
  for (const path of paths) await user.call.createFile({ path, data: Buffer.from("abc") });
  for (const path of paths) await trash(user, path);
  const { items, nextPageToken } = await user.call.showTrash({ pageSize: 100 });
  assert.equal(items.length, 100);
  const rest = await user.call.showTrash({ pageSize: 100, pageToken: nextPageToken });
  assert.equal(rest.items.length, 50);
  assert.equal(await reasonOf(other.call.showTrash({ pageToken: nextPageToken })), "BAD_ARGUMENT");
  const oldest = rest.items.at(-1)?.trashedAtMs ?? 0n;
  const none = await user.call.purgeTrash({ trashedBeforeMs: oldest });
  assert.equal(none.purgedItems, 0n);
  const named = { trashIds: [rest.items.at(-1)?.trashId ?? "", "unknown"] };
  assert.equal((await user.call.purgeTrash({ ...named, trashedBeforeMs: oldest })).purgedItems, 0n);
  assert.equal((await user.call.purgeTrash({ ...named, trashedBeforeMs: oldest + 1n })).purgedItems, 1n);
  const all = await user.call.purgeTrash({});
  assert.deepEqual([all.purgedItems, all.freedBytes], [149n, 447n]);
  assert.deepEqual((await user.call.showTrash({})).items, []);
  assert.equal((await other.call.showTrash({})).items.length, 1);
  await user.call.createFile({ path: "/gone", data: Buffer.from("x") });
  await user.call.deleteFile({ path: "/gone" });
  let purges = await audited("trash.purge");
  while (purges.length < 151) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    purges = await audited("trash.purge");
  }
  const mine = purges.filter(({ actor }) => actor === user.email);
  assert.deepEqual(
    new Set(mine.map(({ subject }) => subject)),
    new Set(paths.map((path) => `${user.email}:${path}`)),
  );
  let deletes = await audited("file.delete");
  while (deletes.length === 0) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    deletes = await audited("file.delete");
  }
  assert.equal(deletes.at(-1)?.subject, `${user.email}:/gone`);
  assert.ok((await audited("quota.set")).length > 0);
});

test("what a move or a copy puts into the trash is audited with the shares that end, and comes back as it was", async () => {
  const owner = await newUser();
  for (const path of ["/old", "/old/in", "/new"]) await owner.call.createDirectory({ path });
  await owner.call.createFile({ path: "/old/in/f", data: Buffer.from("old") });
  await owner.call.share({ path: "/old/in", user: "bob@example.com" });
  const onConflict = OnConflict.TRASH;
  await owner.call.copy({ path: "/new", targetPath: "/old", onConflict });
  await owner.call.createFile({ path: "/f", data: Buffer.from("f") });
  await owner.call.rename({ path: "/f", targetPath: "/new", onConflict });
  const lines = await linesOf(owner.email, 2);
  assert.deepEqual(
    lines.map(({ act, subject, detail }) => [act, subject.slice(owner.email.length + 1), detail["replaced"]]),
    [
      ["trash.add", "/old", true],
      ["trash.add", "/new", true],
    ],
  );
  const ended = (await audited("share.remove")).filter(({ actor }) => actor === owner.email);
  assert.deepEqual(
    ended.map(({ subject }) => subject),
    [`${owner.email}:/old/in`],
  );
  await owner.call.restoreFile({ trashId: String(lines[0]?.detail["trash_id"]), targetPath: "/back" });
  assert.equal(String((await owner.call.readFile({ path: "/back/in/f" })).data), "old");
});

test("the audit log says who put what into the trash, what made way for a sharee's writing, and who brought it back (D13, D24)", async () => {
  const owner = await newUser();
  const sharee = await newUser();
  await owner.call.createDirectory({ path: "/docs" });
  await owner.upload(parts("/docs/f", Buffer.from("the owner's words"), 100));
  await owner.call.createFile({ path: "/docs/g", data: Buffer.from("abc") });
  await owner.call.share({ path: "/docs", user: sharee.email });
  await sharee.upload(parts("/docs/f", Buffer.from("others"), 100, { root: owner.email }));
  const move = { root: owner.email, path: "/docs/f", targetPath: "/docs/g", onConflict: OnConflict.REPLACE };
  await sharee.call.copy(move);
  // What an owner replaces is gone, without a trash item.
  await owner.upload(parts("/docs/g", Buffer.from("mine again"), 100));
  const { trashId } = await trash(owner, "/docs");
  await owner.call.restoreFile({ trashId, targetPath: "/back" });
  const lines = await linesOf(owner.email, 4);
  assert.deepEqual(
    lines.map(({ act, actor, subject, detail }) => [
      act,
      actor,
      subject.slice(owner.email.length + 1),
      detail["bytes"],
      detail["replaced"],
    ]),
    [
      ["trash.add", sharee.email, "/docs/f", 17, true],
      ["trash.add", sharee.email, "/docs/g", 3, true],
      ["trash.add", owner.email, "/docs", 16, undefined],
      ["trash.restore", owner.email, "/back", undefined, undefined],
    ],
  );
  const { items } = await owner.call.showTrash({});
  assert.deepEqual(
    new Set(items.map((item) => item.trashId)),
    new Set(lines.slice(0, 2).map(({ detail }) => detail["trash_id"])),
  );
  assert.equal(lines[3]?.detail["trash_id"], trashId);
});
