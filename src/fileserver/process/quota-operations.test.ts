// GetQuota and SetQuota over a real connection: both proofs of the right, and the refusals' exact words.
import assert from "node:assert/strict";
import { argon2Sync, createHash } from "node:crypto";
import { after, before, test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { Code } from "#wire/framing/status.ts";
import { refusal, startTestNode, type TestNode } from "./node.fixture.ts";

const NOT_ADMIN = "permission denied: only cluster administrators can modify quotas";
const HASH = createHash("sha256").update("correct horse").digest("hex");
let node: TestNode;
before(async () => {
  node = await startTestNode({ env: { SVC_ADMIN_EMAIL: "admin@example.com", ADMIN_PASSWORD_HASH: HASH } });
  await node.signIn("user@example.com");
});
after(() => node.stop());

const withHash = (hash: string) => ({ metadata: { "x-admin-password-hash": hash } });

test("the password path needs no session, and its quota is in force at once (spec 5.5, T9)", async () => {
  const reply = await node.anonymous.setQuota(
    { username: "User@Example.com", quotaBytes: 5_000n },
    withHash(HASH),
  );
  assert.deepEqual([reply.success, reply.error], [true, ""]);
  const user = await node.signIn("user@example.com");
  const quota = await user.call.getQuota({});
  assert.deepEqual([quota.quotaBytes, quota.source], [5_000n, "explicit"]);
  await node.anonymous.setQuota(
    { username: "user@example.com", quotaBytes: 0n },
    withHash(HASH.toUpperCase()),
  );
  assert.deepEqual((await user.call.getQuota({})).source, "default");
});

test("the identity path is open to SVC_ADMIN_EMAIL alone (spec 5.5)", async () => {
  const admin = await node.signIn("admin@example.com");
  assert.equal((await admin.call.setQuota({ username: "user@example.com", quotaBytes: 7n })).success, true);
  const user = await node.signIn("user@example.com");
  assert.equal((await user.call.getQuota({})).quotaBytes, 7n);
  const reply = await user.call.setQuota({ username: "user@example.com", quotaBytes: 2n ** 40n });
  assert.deepEqual([reply.success, reply.error], [false, NOT_ADMIN]);
  assert.equal((await user.call.getQuota({})).quotaBytes, 7n);
});

test("an inode limit by itself leaves the quota that another administrator has set meanwhile", async () => {
  const username = "user@example.com";
  await node.signIn(username);
  const admin = await node.signIn("admin@example.com");
  await admin.call.setQuota({ username, quotaBytes: 9_000n });
  const late = { username, quotaBytes: 7n, keepQuota: true, inodeLimit: 500n };
  assert.equal((await admin.call.setQuota(late)).inodeLimit, 500n);
  const user = await node.signIn(username);
  const { quotaBytes, inodeLimit } = await user.call.getQuota({});
  assert.deepEqual([quotaBytes, inodeLimit], [9_000n, 500n]);
  await admin.call.setQuota({ username, quotaBytes: 7n, inodeLimit: 0n });
});

test("no credential at all gets the text of spec 7 and not Unauthenticated; a broken session is named (T9)", async () => {
  const reply = await node.anonymous.setQuota({ username: "user@example.com", quotaBytes: 1n });
  assert.deepEqual([reply.success, reply.error], [false, NOT_ADMIN]);
  const wrong = node.anonymous.setQuota(
    { username: "user@example.com", quotaBytes: 1n },
    { metadata: { authorization: `Bearer sst_${"A".repeat(43)}` } },
  );
  assert.equal((await refusal(wrong)).reason, "SESSION_UNKNOWN");
});

test("a user who is not on this node, and what is no user, are refused in words (D19)", async () => {
  const unknown = await node.anonymous.setQuota(
    { username: "nobody@example.com", quotaBytes: 1n },
    withHash(HASH),
  );
  assert.deepEqual([unknown.success, unknown.error], [false, "no such user on this fileserver"]);
  const bad = await node.anonymous.setQuota({ username: "x", quotaBytes: 1n }, withHash(HASH));
  assert.equal(bad.success, false);
});

test("a quota below what is used frees nothing, deletes nothing, and stops the next byte (A-15)", async () => {
  const user = await node.signIn("full@example.com");
  await user.call.createFile({ path: "/f", data: Buffer.alloc(100) });
  await node.anonymous.setQuota({ username: "full@example.com", quotaBytes: 50n }, withHash(HASH));
  assert.equal((await refusal(user.call.createFile({ path: "/g" }))).message, "storage quota exceeded");
  assert.equal(
    (await refusal(user.call.writeFile({ path: "/f", data: Buffer.from("x") }))).reason,
    "QUOTA_EXCEEDED",
  );
  assert.equal((await user.call.getAttr({ path: "/f" })).size, 100n);
  const quota = await user.call.getQuota({});
  assert.deepEqual([quota.usedBytes, quota.liveBytes, quota.quotaBytes], [100n, 100n, 50n]);
});

test("the administrator sees every user's quota, users their own alone (D13)", async () => {
  const admin = await node.signIn("admin@example.com");
  assert.equal((await admin.call.getQuota({ root: "user@example.com" })).quotaBytes, 7n);
  assert.equal((await refusal(admin.call.getQuota({ root: "nobody@example.com" }))).code, Code.NOT_FOUND);
  assert.equal(
    (await refusal(admin.call.getAttr({ root: "user@example.com", path: "/" }))).reason,
    "NOT_SHARED",
  );
});

test("a sixth wrong password is answered like the others, and even the right one is not compared, for 15 minutes (spec 5.5, D17)", async () => {
  const clock = new ManualClock();
  const guarded = await startTestNode({ clock, env: { ADMIN_PASSWORD: "correct horse" } });
  try {
    await guarded.signIn("user@example.com");
    const set = (hash: string) =>
      guarded.anonymous.setQuota({ username: "user@example.com", quotaBytes: 1n }, withHash(hash));
    for (let i = 0; i < 5; i++) {
      assert.equal((await set(HASH)).success, true);
      assert.deepEqual((await set("0".repeat(64))).error, NOT_ADMIN);
      clock.advance(1_000);
    }
    const answered = async (hash: string): Promise<void> => {
      const { success, error } = await set(hash);
      assert.deepEqual([success, error], [false, NOT_ADMIN]);
    };
    await answered("0".repeat(64));
    await answered(HASH);
    clock.advance(15 * 60_000 - 5_001);
    await answered(HASH);
    // An attempt without a comparison does not count: the first of the five is over.
    clock.advance(1);
    assert.equal((await set(HASH)).success, true);
  } finally {
    await guarded.stop();
  }
});

test("right passwords at once are all right, however long each takes to verify; of wrong ones five are (T11, D17)", async () => {
  // Argon2 at its cheapest over the same hash: what counts is that others come while it runs.
  const nonce = Buffer.alloc(16, 1);
  const cost = { memory: 8, passes: 1, parallelism: 1, tagLength: 32 };
  const bare = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64").replaceAll("=", "");
  const tag = argon2Sync("argon2id", { message: HASH, nonce, ...cost });
  const hash = `$argon2id$v=19$m=8,t=1,p=1$${bare(nonce)}$${bare(tag)}`;
  const slow = await startTestNode({ env: { ADMIN_PASSWORD_HASH: hash } });
  const setAtOnce = async (password: string): Promise<number> => {
    const request = { username: "user@example.com", quotaBytes: 7n };
    const replies = await Promise.all(
      Array.from({ length: 60 }, () => slow.anonymous.setQuota(request, withHash(password))),
    );
    return replies.filter(({ success }) => success).length;
  };
  try {
    await slow.signIn("user@example.com");
    assert.equal(await setAtOnce(HASH), 60);
    assert.equal(await setAtOnce(HASH.replace(/^./, (digit) => (digit === "0" ? "1" : "0"))), 0);
    const events = await fetch(`http://127.0.0.1:${slow.node.metricsPort}/security-events`);
    const { events: listed } = (await events.json()) as { events: { type: string; count: number }[] };
    assert.deepEqual(
      listed.map(({ type, count }) => [type, count]),
      [["admin_hash_failed", 5]],
    );
    assert.equal(await setAtOnce(HASH), 0);
  } finally {
    await slow.stop();
  }
});

test("the password is taken over TLS or from this machine, and the default one from this machine alone (T9, T10)", async () => {
  const peers = [
    { address: "127.0.0.1", encrypted: false, own: true, default: true },
    { address: "::1", encrypted: false, own: true, default: true },
    { address: "10.0.0.9", encrypted: true, own: true, default: false },
    { address: "10.0.0.9", encrypted: false, own: false, default: false },
    { address: "127.evil.example", encrypted: false, own: false, default: false },
  ];
  const byDefault = await startTestNode();
  try {
    await byDefault.signIn("user@example.com");
    for (const peer of peers) {
      const set = (target: TestNode, passwordHash: string) =>
        target.node.service.quotas.setQuota(
          { username: "user@example.com", quotaBytes: 0n },
          { passwordHash, peer, session: () => undefined },
        );
      const own = await set(node, HASH);
      assert.equal(own.success, peer.own, peer.address);
      const byDefaultHash = await set(byDefault, createHash("sha256").update("admin").digest("hex"));
      assert.equal(byDefaultHash.success, peer.default, peer.address);
      for (const reply of [own, byDefaultHash]) assert.ok(reply.success || reply.error.startsWith(NOT_ADMIN));
      if (!peer.default) assert.match(byDefaultHash.error, /ADMIN_PASSWORD_HASH|TLS/);
    }
  } finally {
    await byDefault.stop();
  }
});

test("-no_password_path leaves the identity path alone (T9)", async () => {
  const without = await startTestNode({
    env: { ADMIN_PASSWORD_HASH: HASH, SVC_ADMIN_EMAIL: "admin@example.com" },
    options: { passwordPath: false },
  });
  try {
    const admin = await without.signIn("admin@example.com");
    const reply = await without.anonymous.setQuota(
      { username: "admin@example.com", quotaBytes: 1n },
      withHash(HASH),
    );
    assert.deepEqual([reply.success, reply.error], [false, NOT_ADMIN]);
    assert.equal(
      (await admin.call.setQuota({ username: "admin@example.com", quotaBytes: 1n })).success,
      true,
    );
  } finally {
    await without.stop();
  }
});

test("quotas and files survive a restart; sessions do not (D6, T21)", async () => {
  const first = await startTestNode({ env: { ADMIN_PASSWORD_HASH: HASH } });
  const user = await first.signIn("user@example.com");
  await user.call.createFile({ path: "/f", data: Buffer.alloc(10) });
  await first.anonymous.setQuota({ username: "user@example.com", quotaBytes: 11n }, withHash(HASH));
  await first.node.stop(500);
  const second = await startTestNode({ dataFolder: first.dataFolder, env: { ADMIN_PASSWORD_HASH: HASH } });
  try {
    assert.equal(
      (await refusal(second.anonymous.getAttr({ path: "/" }, { metadata: user.metadata }))).reason,
      "SESSION_UNKNOWN",
    );
    const again = await second.signIn("user@example.com");
    assert.equal(again.registered.rootId, user.registered.rootId);
    const quota = await again.call.getQuota({});
    assert.deepEqual([quota.quotaBytes, quota.usedBytes], [11n, 10n]);
    assert.equal(
      (await refusal(again.call.createFile({ path: "/g", data: Buffer.alloc(2) }))).reason,
      "QUOTA_EXCEEDED",
    );
  } finally {
    await second.stop();
    await first.stop();
  }
});

test("the quota of a root that waits for its switch to another node is not set: it would be left behind", async (t) => {
  const username = "mover@example.com";
  const first = await startTestNode({ env: { ADMIN_PASSWORD_HASH: HASH } });
  await first.signIn(username);
  const { moves } = first.node.storage;
  await moves.beginExport({ moveId: "move", owner: username });
  await moves.freeze("move");
  await first.node.stop();
  const frozen = await startTestNode({ env: { ADMIN_PASSWORD_HASH: HASH }, dataFolder: first.dataFolder });
  t.after(() => Promise.all([frozen.stop(), first.stop()]));
  const set = () => frozen.anonymous.setQuota({ username, quotaBytes: 5_000n }, withHash(HASH));
  assert.equal((await refusal(set())).reason, "NODE_DRAINING");
  await frozen.node.storage.moves.depart("move", "elsewhere:1");
  assert.match((await set()).error, /no such user/);
});
