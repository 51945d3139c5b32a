// Locks over a real connection: who they shut out, from what, and until when (RFC 4918, sections 6 and 7).
import assert from "node:assert/strict";
import { after, beforeEach, test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { LOCKS_PER_SHAREE } from "#storage/writer/lock-commands.ts";
import { Metadata } from "#wire/framing/metadata.ts";
import { refusal, startTestNode, type TestNode, type TestUser } from "./node.fixture.ts";

const ALICE = "alice@example.com";
const DATA = Buffer.from("text");
const clock = new ManualClock();
const nodes: TestNode[] = [];
let node: TestNode;
let alice: TestUser;
let bob: TestUser;

beforeEach(async () => {
  node = await startTestNode({ clock });
  nodes.push(node);
  alice = await node.signIn(ALICE);
  bob = await node.signIn("bob@example.com");
  await alice.call.createDirectory({ path: "/d" });
  await alice.call.createDirectory({ path: "/d/sub" });
  await alice.call.createFile({ path: "/d/f", data: DATA });
  await alice.call.createFile({ path: "/d/sub/g", data: DATA });
  await alice.call.share({ path: "/d", user: bob.email });
});
after(() => Promise.all(nodes.map((one) => one.stop())));

const reasonOf = async (call: Promise<unknown>): Promise<string> => (await refusal(call)).reason;
const showing = (user: TestUser, ...tokens: string[]): { metadata: Metadata } => {
  const metadata = new Metadata();
  metadata.set("authorization", `Bearer ${user.token}`);
  metadata.set("svc-lock-tokens", tokens.join(", "));
  return { metadata };
};

test("a lock on a file shuts out all changes but those of its holder with its token", async () => {
  const { token, secondsLeft, path, username } = await bob.call.lock({
    root: ALICE,
    path: "/d/f",
    note: "Bob",
  });
  assert.deepEqual([secondsLeft, path, username], [3600, "/d/f", bob.email]);
  for (const change of [
    () => alice.call.writeFile({ path: "/d/f", data: DATA }),
    () => alice.call.trashFile({ path: "/d/f" }),
    () => alice.call.deleteFile({ path: "/d/f" }),
    () => alice.call.rename({ path: "/d/f", targetPath: "/d/h" }),
    () => alice.call.rename({ path: "/d", targetPath: "/e" }),
    () => alice.call.deleteFile({ path: "/d", recursive: true }),
    () => alice.call.copy({ path: "/d/sub/g", targetPath: "/d/f", onConflict: 2 }),
    () => alice.upload([{ part: { case: "header", value: { path: "/d/f" } } }]),
    () => alice.call.beginUpload({ path: "/d/f", size: 4n }),
    // The holder without the token is another program of the same person.
    () => bob.call.writeFile({ root: ALICE, path: "/d/f", data: DATA }),
    () => alice.call.writeFile({ path: "/d/f", data: DATA }, showing(alice, token)),
  ]) {
    assert.equal(await reasonOf(change()), "LOCKED");
  }
  await bob.call.writeFile({ root: ALICE, path: "/d/f", data: DATA }, showing(bob, token));
  await alice.call.createFile({ path: "/d/other", data: DATA });
  await alice.call.getAttr({ path: "/d/f" });
});

test("a lock on a folder keeps its entries; a deep one everything below", async () => {
  const { token } = await alice.call.lock({ path: "/d" });
  assert.equal(await reasonOf(bob.call.createFile({ root: ALICE, path: "/d/new", data: DATA })), "LOCKED");
  assert.equal(await reasonOf(alice.call.trashFile({ path: "/d/f" })), "LOCKED");
  await bob.call.writeFile({ root: ALICE, path: "/d/f", data: DATA });
  await bob.call.createFile({ root: ALICE, path: "/d/sub/new", data: DATA });
  await alice.call.unlock({ path: "/d", token });
  const deep = await alice.call.lock({ path: "/d", deep: true });
  assert.equal(await reasonOf(bob.call.writeFile({ root: ALICE, path: "/d/sub/g", data: DATA })), "LOCKED");
  assert.equal(await reasonOf(bob.call.createFile({ root: ALICE, path: "/d/sub/k", data: DATA })), "LOCKED");
  await alice.call.createFile({ path: "/d/sub/k", data: DATA }, showing(alice, deep.token));
});

test("locks exclude one another where they meet, shared ones do not", async () => {
  await alice.call.lock({ path: "/d/sub/g", shared: true });
  assert.equal(await reasonOf(bob.call.lock({ root: ALICE, path: "/d", deep: true })), "LOCKED");
  assert.equal(await reasonOf(bob.call.lock({ root: ALICE, path: "/d/sub/g" })), "LOCKED");
  const second = await bob.call.lock({ root: ALICE, path: "/d", deep: true, shared: true });
  assert.equal(await reasonOf(alice.call.lock({ path: "/d/f" })), "LOCKED");
  const { locks } = await bob.call.listLocks({ root: ALICE, path: "/d/sub/g" });
  assert.deepEqual(
    new Set(locks.map(({ path, username, token }) => `${path} ${username} ${token !== ""}`)),
    new Set([`/d ${bob.email} true`, `/d/sub/g ${ALICE} false`]),
  );
  await bob.call.writeFile({ root: ALICE, path: "/d/sub/g", data: DATA }, showing(bob, second.token));
});

test("where nothing is, a lock is refused as it would be once a file was made, so that none is made for nothing", async () => {
  const at = { root: ALICE, path: "/d/new" };
  assert.equal(await reasonOf(bob.call.lock(at)), "NO_SUCH_PATH");
  const deep = await alice.call.lock({ path: "/d", deep: true, shared: true });
  assert.equal(await reasonOf(bob.call.lock({ ...at, shared: true })), "NO_SUCH_PATH");
  assert.equal(await reasonOf(bob.call.lock(at)), "LOCKED");
  // Who holds the folder above may make a file, and not lock it a second time.
  assert.equal(await reasonOf(alice.call.lock({ path: "/d/new" }, showing(alice, deep.token))), "LOCKED");
  await alice.call.unlock({ path: "/d", token: deep.token });
  for (let taken = 0; taken < LOCKS_PER_SHAREE; taken++) {
    await bob.call.lock({ root: ALICE, path: "/d/f", shared: true });
  }
  assert.equal(await reasonOf(bob.call.lock(at)), "RATE_LIMITED");
  assert.equal(await reasonOf(alice.call.lock({ path: "/d/new" })), "NO_SUCH_PATH");
});

test("a lock ends by itself, by its holder, by the owner's word, and with what it lies on", async () => {
  const first = await bob.call.lock({ root: ALICE, path: "/d/f", seconds: 60 });
  clock.advance(59_000);
  const refreshed = await bob.call.refreshLock({
    root: ALICE,
    path: "/d/f",
    token: first.token,
    seconds: 30,
  });
  assert.equal(refreshed.secondsLeft, 30);
  clock.advance(29_999);
  assert.equal(await reasonOf(alice.call.writeFile({ path: "/d/f", data: DATA })), "LOCKED");
  clock.advance(1);
  await alice.call.writeFile({ path: "/d/f", data: DATA });
  const again = { root: ALICE, path: "/d/f", token: first.token };
  assert.equal(await reasonOf(bob.call.refreshLock(again)), "NO_SUCH_LOCK");

  const second = await bob.call.lock({ root: ALICE, path: "/d/f" });
  assert.equal(await reasonOf(alice.call.unlock({ path: "/d/f", token: second.token })), "NO_SUCH_LOCK");
  assert.equal(await reasonOf(bob.call.unlock({ root: ALICE, path: "/d/f", breakLocks: true })), "NOT_OWNER");
  assert.equal((await alice.call.unlock({ path: "/d/f", breakLocks: true })).ended, 1);
  await alice.call.writeFile({ path: "/d/f", data: DATA });

  const third = await alice.call.lock({ path: "/d/f" });
  await alice.call.rename({ path: "/d/f", targetPath: "/d/moved" }, showing(alice, third.token));
  await alice.call.writeFile({ path: "/d/moved", data: DATA });
});

test("a lock ends with its holder's right to write there", async () => {
  await bob.call.lock({ root: ALICE, path: "/d/f" });
  await bob.call.lock({ root: ALICE, path: "/d/sub/g" });
  await alice.call.unshare({ path: "/d/sub", user: bob.email });
  await alice.call.writeFile({ path: "/d/sub/g", data: DATA });
  assert.equal(await reasonOf(alice.call.writeFile({ path: "/d/f", data: DATA })), "LOCKED");
  await alice.call.unshare({ path: "/d", user: bob.email });
  await alice.call.writeFile({ path: "/d/f", data: DATA });
  // Shared again, the file is not locked again.
  await alice.call.share({ path: "/d", user: bob.email });
  assert.deepEqual((await alice.call.listLocks({ path: "/d", below: true })).locks, []);
});

test("a lock outlives shares that give its holder nothing new", async () => {
  const { token } = await bob.call.lock({ root: ALICE, path: "/d/f" });
  for (const path of ["/d", "/d/f", "/"]) await alice.call.share({ path, user: bob.email });
  assert.equal(await reasonOf(alice.call.writeFile({ path: "/d/f", data: DATA })), "LOCKED");
  await bob.call.writeFile({ root: ALICE, path: "/d/f", data: DATA }, showing(bob, token));
});

test("a refusal says where the lock lies, and a listing shows what lies below", async () => {
  await bob.call.lock({ root: ALICE, path: "/d/sub", deep: true });
  const { error, message } = await refusal(alice.call.writeFile({ path: "/d/sub/g", data: DATA }));
  assert.match(message, /locked by bob@example\.com/u);
  assert.ok(error.details.some(({ value }) => Buffer.from(value).includes("/d/sub")));
  const below = await refusal(alice.call.deleteFile({ path: "/d", recursive: true }));
  assert.equal(below.reason, "LOCKED");
  const { locks } = await alice.call.listLocks({ path: "/", below: true });
  assert.deepEqual(
    locks.map(({ path, username }) => [path, username]),
    [["/d/sub", bob.email]],
  );
  const explained = await alice.call.explain({ path: "/d/sub/g", permission: 1 });
  assert.deepEqual(
    [explained.allowed, explained.reason, explained.steps.at(-1)?.check],
    [false, "LOCKED", "lock"],
  );
});

test("a refusal names no place that its caller was taken out of", async () => {
  await alice.call.unshare({ path: "/d/sub/g", user: bob.email });
  await alice.call.lock({ path: "/d/sub/g" });
  const rename = (user: TestUser) => user.call.rename({ root: ALICE, path: "/d/sub", targetPath: "/d/new" });
  for (const [user, isTold] of [
    [alice, true],
    [bob, false],
  ] as const) {
    const { reason, error } = await refusal(rename(user));
    assert.equal(reason, "LOCKED");
    const told = error.details.some(({ value }) => Buffer.from(value).includes("/d/sub/g"));
    assert.equal(told, isTold, user.email);
  }
});

test("a lock outlives a restart of the node", async () => {
  const { token } = await bob.call.lock({ root: ALICE, path: "/d/f" });
  await node.node.stop();
  const again = await startTestNode({ clock, dataFolder: node.dataFolder });
  nodes.push(again);
  const back = await again.signIn(ALICE);
  assert.equal(await reasonOf(back.call.writeFile({ path: "/d/f", data: DATA })), "LOCKED");
  const { locks } = await back.call.listLocks({ path: "/d/f" });
  assert.deepEqual(
    locks.map(({ username }) => username),
    [bob.email],
  );
  const holder = await again.signIn(bob.email);
  await holder.call.writeFile({ root: ALICE, path: "/d/f", data: DATA }, showing(holder, token));
});

test("a hundred changes that race with a lock: none lands after it", async () => {
  const writes = Array.from({ length: 100 }, (_, index) =>
    alice.call.writeFile({ path: "/d/f", data: Buffer.from(`w${index}`) }).then(
      ({ etag }) => etag,
      () => undefined,
    ),
  );
  const { token } = await bob.call.lock({ root: ALICE, path: "/d/f" });
  const { etag } = await bob.call.getAttr({ root: ALICE, path: "/d/f" });
  await Promise.all(writes);
  assert.equal((await bob.call.getAttr({ root: ALICE, path: "/d/f" })).etag, etag);
  await bob.call.writeFile({ root: ALICE, path: "/d/f", data: DATA }, showing(bob, token));
});

test("locks that are taken elsewhere again and again keep no change from its end, one on its way refuses it", async () => {
  const { storage } = node.node.service.uploads;
  for (const call of ["createFile", "rename"] as const) {
    const made: (change: never) => Promise<unknown> = storage[call].bind(storage);
    let place = { path: "/d/sub/g", shared: true, deep: false };
    const afterLock = async (change: never): Promise<unknown> => {
      await bob.call.lock({ root: ALICE, ...place });
      return made(change);
    };
    Object.assign(storage, { [call]: afterLock });
    if (call === "createFile") await alice.call.createFile({ path: "/d/new", data: DATA });
    else await alice.call.rename({ path: "/d/new", targetPath: "/d/newer" });
    place = { path: "/d", shared: true, deep: true };
    const refused =
      call === "createFile"
        ? alice.call.createFile({ path: "/d/newest", data: DATA })
        : alice.call.rename({ path: "/d/newer", targetPath: "/newest" });
    assert.equal(await reasonOf(refused), "LOCKED");
    await alice.call.unlock({ path: "/d", breakLocks: true });
    Object.assign(storage, { [call]: made });
  }
});
