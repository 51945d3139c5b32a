// Properties over a real connection: kept whole, counted, copied, moved, and gone with what they lie on.
import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, beforeEach, test } from "node:test";
import { XML_MAX_DEPTH, XML_MAX_ELEMENTS, XML_NAMESPACE_MAX_LENGTH } from "#base/limits.ts";
import { checkStorage } from "#storage/check/check-storage.ts";
import { until } from "#testing/until.ts";
import { OnConflict } from "#wire/proto/gen/grove/v1/common_pb.ts";
import { refusal, startTestNode, type TestNode, type TestUser } from "./node.fixture.ts";

const ALICE = "alice@example.com";
const nodes: TestNode[] = [];
let node: TestNode;
let alice: TestUser;

beforeEach(async () => {
  node = await startTestNode({ env: { SVC_ADMIN_EMAIL: "administrator@example.com" } });
  nodes.push(node);
  alice = await node.signIn(ALICE);
  await alice.call.createDirectory({ path: "/d" });
  await alice.call.createFile({ path: "/d/f", data: Buffer.from("text") });
});
after(() => Promise.all(nodes.map((one) => one.stop())));

const reasonOf = async (call: Promise<unknown>): Promise<string> => (await refusal(call)).reason;
const used = async (user = alice): Promise<number> => Number((await user.call.getQuota({})).usedBytes);
/** An element of so many bytes. */
const element = (name: string, bytes: number, letter = "x"): string => {
  const [start, end] = [`<${name} xmlns="urn:n">`, `</${name}>`];
  return start + letter.repeat(bytes - start.length - end.length) + end;
};
/** A property of 100 bytes. */
const property = (name: string, letter = "x") => ({
  namespace: "urn:n",
  name,
  xml: element(name, 95 - name.length, letter),
});
const set = (path: string, ...names: string[]) =>
  alice.call.changeProperties({ path, changes: names.map((name) => ({ property: property(name) })) });
const namesAt = async (path: string, user = alice): Promise<string[]> =>
  (await user.call.getProperties({ path })).properties.map(({ name }) => name);

test("properties are set, replaced and removed in order, all or none, and count in the quota", async () => {
  assert.equal((await alice.call.getProperties({ path: "/d/f" })).noneInRoot, true);
  assert.equal((await set("/d/f", "a", "b")).bytes, 200n);
  assert.equal(await used(), 204);
  await alice.call.changeProperties({
    path: "/d/f",
    changes: [
      { property: property("c") },
      { property: { name: "b", namespace: "urn:n" }, remove: true },
      { property: property("a", "y") },
      { property: { name: "never", namespace: "urn:n" }, remove: true },
    ],
  });
  const { properties, noneInRoot } = await alice.call.getProperties({ path: "/d/f" });
  assert.deepEqual(
    properties.map(({ namespace, name, xml }) => [namespace, name, xml]),
    [
      ["urn:n", "a", property("a", "y").xml],
      ["urn:n", "c", property("c").xml],
    ],
  );
  assert.equal(noneInRoot, false);
  const tooLarge = { ...property("big"), xml: element("big", 65_400) };
  await alice.call.changeProperties({ path: "/d", changes: [{ property: tooLarge }] });
  assert.equal(await reasonOf(set("/d", "y", "z")), "BAD_ARGUMENT");
  assert.deepEqual(await namesAt("/d"), ["big"]);
  assert.equal(await reasonOf(set("/d", "")), "BAD_ARGUMENT");
  assert.equal(await reasonOf(set("/missing", "a")), "NO_SUCH_PATH");
});

test("a property and a lock's note are XML that changes nothing around it", async () => {
  const put = (xml: string, name = "a", namespace = "urn:n") =>
    alice.call.changeProperties({ path: "/d/f", changes: [{ property: { namespace, name, xml } }] });
  await put('<a xmlns="urn:n">one &amp; <b xmlns="">two</b></a>');
  await put('<x:a xmlns:x="urn:n"/>');
  await put("<a/>", "a", "");
  const wrong = [
    "",
    "text",
    "<",
    '<a xmlns="urn:n">',
    '<a xmlns="urn:n"/><a xmlns="urn:n"/>',
    '<a xmlns="urn:n"/></D:prop><D:prop>',
    '<a xmlns="urn:n"><D:b/></a>',
    '<a xmlns="urn:n">\0</a>',
    '<a xmlns="urn:n">&other;</a>',
    '<b xmlns="urn:n"/>',
    '<a xmlns="urn:m"/>',
    '<!DOCTYPE a><a xmlns="urn:n"/>',
    '<?xml version="1.0"?><a xmlns="urn:n"/>',
    '<a xmlns="urn:n"><?php end?></a>',
  ];
  for (const xml of wrong) assert.equal(await reasonOf(put(xml)), "BAD_ARGUMENT", xml);
  assert.equal(await reasonOf(put('<a/><b xmlns="urn:n"/>', "a/><b")), "BAD_ARGUMENT");
  const levels = (count: number): string =>
    `<a xmlns="urn:n">${"<b>".repeat(count - 1)}${"</b>".repeat(count - 1)}</a>`;
  const many = (count: number): string => `<a xmlns="urn:n">${"<b/>".repeat(count - 1)}</a>`;
  const named = (length: number): string => `<a xmlns="urn:n" xmlns:p="${"u".repeat(length)}"/>`;
  for (const [make, most] of [
    [levels, XML_MAX_DEPTH],
    [many, XML_MAX_ELEMENTS],
    [named, XML_NAMESPACE_MAX_LENGTH],
  ] as const) {
    await put(make(most));
    assert.equal(await reasonOf(put(make(most + 1))), "BAD_ARGUMENT", make.name);
  }
  const notes = [
    "<",
    "<a>".repeat(XML_MAX_DEPTH) + "</a>".repeat(XML_MAX_DEPTH),
    "</content><content>",
    "&",
    "\0",
    "<?php end?>",
    "<D:href/>",
  ];
  for (const note of notes) {
    assert.equal(await reasonOf(alice.call.lock({ path: "/d/f", note })), "BAD_ARGUMENT", note);
  }
  for (const note of ["Bob", "", '<href xmlns="DAV:">http://bob.example.com</href> &amp; co', "<!-- -->"]) {
    const lock = await alice.call.lock({ path: "/d/f", note, shared: true });
    assert.equal(lock.note, note);
  }
});

test("an upload keeps them, a copy has them too and pays, a move takes them along", async () => {
  await set("/d", "folder");
  await set("/d/f", "file");
  await alice.upload([{ part: { case: "header", value: { path: "/d/f" } } }]);
  assert.deepEqual(await namesAt("/d/f"), ["file"]);
  assert.equal(await used(), 200);
  await alice.call.copy({ path: "/d", targetPath: "/c" });
  await alice.call.copy({ path: "/d/f", targetPath: "/g" });
  assert.deepEqual(
    [await namesAt("/c"), await namesAt("/c/f"), await namesAt("/g")],
    [["folder"], ["file"], ["file"]],
  );
  assert.equal(await used(), 500);
  await alice.call.rename({ path: "/c", targetPath: "/e" });
  assert.deepEqual([await namesAt("/e"), await namesAt("/e/f")], [["folder"], ["file"]]);
  assert.equal(await used(), 500);
});

test("copying a folder asks for the properties in it, and not for those of the whole root", async () => {
  await alice.call.createDirectory({ path: "/d/deep" });
  await alice.call.createFile({ path: "/d/deep/g", data: Buffer.alloc(0) });
  await set("/d/deep/g", "a");
  await alice.call.createDirectory({ path: "/far" });
  await set("/far", "a", "b", "c", "d");
  const bytes = await used();
  // The property, and what "/d/f" has.
  const copied = 100 + 4;
  const administrator = await node.signIn("administrator@example.com");
  const allow = (more: number) =>
    administrator.call.setQuota({ username: ALICE, quotaBytes: BigInt(bytes + more) });
  await allow(copied - 1);
  assert.equal(await reasonOf(alice.call.copy({ path: "/d", targetPath: "/e" })), "QUOTA_EXCEEDED");
  await allow(copied);
  await alice.call.copy({ path: "/d", targetPath: "/e" });
  assert.deepEqual(await namesAt("/e/deep/g"), ["a"]);
  assert.equal(await used(), bytes + copied);
});

test("the trash keeps them; what goes for good gives their bytes back", async () => {
  await set("/d", "folder");
  await set("/d/f", "file");
  const { item } = await alice.call.trashFile({ path: "/d" });
  assert.equal(await used(), 204);
  await alice.call.restoreFile({ trashId: item?.trashId ?? "" });
  assert.deepEqual([await namesAt("/d"), await namesAt("/d/f")], [["folder"], ["file"]]);
  await alice.call.deleteFile({ path: "/d", recursive: true });
  await until(async () => (await used()) === 0, "the bytes of the removed properties");
  const told = async (): Promise<unknown> => {
    const answer = await fetch(`http://127.0.0.1:${node.node.metricsPort}/metrics`);
    const document = (await answer.json()) as { per_user_storage: Record<string, number> };
    return document.per_user_storage[ALICE];
  };
  await until(async () => (await told()) === 0, "/metrics says the same without another change");
  assert.equal((await alice.call.getProperties({ path: "/" })).noneInRoot, true);
});

test("what goes for good takes its properties out of the account of a root that others change meanwhile", async () => {
  const { ledger } = node.node.service;
  const openAt = (): ReturnType<typeof ledger.open> => {
    const usage = node.node.storage.root(ALICE)?.usage ?? assert.fail();
    return ledger.open({ owner: ALICE, usage });
  };
  for (const path of ["/d/g", "/d/h", "/d/i", "/d/j"]) {
    await alice.call.createFile({ path, data: Buffer.from("text") });
  }
  await alice.call.createDirectory({ path: "/full" });
  await alice.call.createFile({ path: "/full/f", data: Buffer.from("text") });
  const long = openAt();
  const before = long.usedBytes;
  for (const path of ["/d/f", "/d/g", "/d/h", "/d/i", "/d/j", "/full"]) await set(path, "a");
  assert.equal(long.usedBytes, before + 600n);
  await alice.call.deleteFile({ path: "/d/f" });
  await alice.call.deleteFile({ path: "/full", recursive: true });
  assert.equal(long.usedBytes, before + 400n - 8n);
  // One is replaced by a move, one goes by way of the trash.
  await alice.call.rename({ path: "/d/h", targetPath: "/d/g", onConflict: OnConflict.REPLACE });
  assert.equal(long.usedBytes, before + 300n - 12n);
  const { item } = await alice.call.trashFile({ path: "/d/j" });
  assert.equal(long.usedBytes, before + 300n - 12n);
  await alice.call.purgeTrash({ trashIds: [item?.trashId ?? ""] });
  assert.equal(long.usedBytes, before + 200n - 16n);
  await alice.call.changeProperties({
    path: "/d/i",
    changes: [{ property: { name: "a", namespace: "urn:n" }, remove: true }],
  });
  assert.equal(long.usedBytes, before + 100n - 16n);
  const fresh = openAt();
  assert.equal(fresh.usedBytes, long.usedBytes);
  long.release();
  fresh.release();
  assert.equal(BigInt(await used()), before + 100n - 16n);
});

test("they pass no quota, no lock and no missing right, and are the owner's to pay", async () => {
  const administrator = await node.signIn("administrator@example.com");
  await administrator.call.setQuota({ username: ALICE, quotaBytes: 150n });
  assert.equal(await reasonOf(set("/d/f", "a", "b")), "QUOTA_EXCEEDED");
  await set("/d/f", "a");
  assert.equal(await reasonOf(alice.call.copy({ path: "/d/f", targetPath: "/g" })), "QUOTA_EXCEEDED");
  const bob = await node.signIn("bob@example.com");
  const byBob = {
    root: ALICE,
    path: "/d/f",
    changes: [{ property: { namespace: "urn:n", name: "a" }, remove: true }],
  };
  assert.equal(await reasonOf(bob.call.changeProperties(byBob)), "NOT_SHARED");
  await alice.call.share({ path: "/d", user: bob.email });
  await alice.call.lock({ path: "/d/f" });
  assert.equal(await reasonOf(bob.call.changeProperties(byBob)), "LOCKED");
  await alice.call.unlock({ path: "/d/f", breakLocks: true });
  await bob.call.changeProperties(byBob);
  assert.deepEqual(await namesAt("/d/f"), []);
  assert.equal(await used(), 4);
});

test("a restart keeps them, the check of the data counts them, and repairs what belongs to nothing", async () => {
  await set("/d/f", "a");
  await alice.call.lock({ path: "/d/f" });
  await node.node.stop();
  const directory = node.dataFolder;
  const check = (repair: boolean) => checkStorage(directory, { repair, deep: true });
  assert.deepEqual(check(false).differences, []);
  const db = new DatabaseSync(join(directory, "inodes.db"));
  db.exec("INSERT INTO property (inode_id, namespace, name, xml) VALUES (999999, 'urn:n', 'lost', 'x')");
  db.exec("UPDATE root SET property_bytes = 7, lock_count = 3");
  db.close();
  assert.equal(check(true).differences.length, 3);
  assert.deepEqual(check(false).differences, []);
  const again = await startTestNode({ dataFolder: node.dataFolder });
  nodes.push(again);
  const back = await again.signIn(ALICE);
  assert.deepEqual(await namesAt("/d/f", back), ["a"]);
  assert.equal(await used(back), 104);
});

test("at the quota's end a property is replaced by one that adds nothing, and over it by a smaller one (spec 4.6.2)", async () => {
  await set("/d/f", "a");
  const admin = await node.signIn("administrator@example.com");
  const limit = (quotaBytes: number) =>
    admin.call.setQuota({ username: ALICE, quotaBytes: BigInt(quotaBytes) });
  const replace = (bytes: number) =>
    alice.call.changeProperties({
      path: "/d/f",
      changes: [{ property: { namespace: "urn:n", name: "a", xml: element("a", bytes - 6, "y") } }],
    });
  await limit(await used());
  assert.equal((await replace(100)).bytes, 100n);
  assert.equal(await reasonOf(replace(101)), "QUOTA_EXCEEDED");
  await limit(10);
  assert.equal(await reasonOf(replace(100)), "QUOTA_EXCEEDED");
  assert.equal((await replace(90)).bytes, 90n);
  assert.equal(await used(), 94);
});
