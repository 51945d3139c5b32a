// Locked users over a real connection: sessions, streams and uploads end, sign-ins fail, after restarts too.
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { USER_STATES_FILE } from "#security/identity/user-state-store.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { Code } from "#wire/framing/status.ts";
import { chunk, header, refusal, startTestNode, type TestNode } from "./node.fixture.ts";

const HASH = createHash("sha256").update("correct horse").digest("hex");
const BY_PASSWORD = { metadata: { "x-admin-password-hash": HASH } };
const ENV = { SVC_ADMIN_EMAIL: "admin@example.com", ADMIN_PASSWORD_HASH: HASH };
let node: TestNode;
before(async () => {
  node = await startTestNode({ env: ENV });
});
after(() => node.stop());

const disable = (username: string, more: object = {}) =>
  node.anonymous.setUserState(
    { state: { username, disabled: true, reason: "has left", ...more } },
    BY_PASSWORD,
  );
const enable = (username: string) =>
  node.anonymous.setUserState({ state: { username, reason: "is back" } }, BY_PASSWORD);
const personToken = (email: string, sub: string, more: object = {}): string =>
  Buffer.from(JSON.stringify({ email, iss: "https://idp.example.com", sub, ...more })).toString("base64url");
const register = (token: string) =>
  node.anonymous.registerClient({}, { metadata: { authorization: `Bearer mock-jwt.${token}` } });

test("who is locked out loses every session, is told so, and signs in no more until let in again", async () => {
  const dave = await node.signIn("dave@example.com");
  const second = await node.signIn("dave@example.com");
  const other = await node.signIn("other@example.com");
  await dave.call.createFile({ path: "/kept", data: Buffer.from("kept") });
  const reply = await disable("Dave@Example.com");
  assert.deepEqual([reply.applied, reply.sessionsEnded, reply.state?.setBy], [true, 2, "administrator"]);
  for (const session of [dave, second]) {
    const refused = await refusal(session.call.getAttr({ path: "/kept" }));
    assert.deepEqual([refused.code, refused.reason], [Code.PERMISSION_DENIED, "USER_DISABLED"]);
    assert.equal((await refusal(session.call.purgeTrash({}))).reason, "USER_DISABLED");
  }
  const refused = await refusal(node.signIn("dave@example.com"));
  assert.equal(refused.reason, "USER_DISABLED");
  assert.doesNotMatch(refused.message, /has left/);
  await other.call.getAttr({ path: "/" });
  await enable("dave@example.com");
  // Clients sign in again by themselves at this refusal, and not at the one before.
  assert.equal((await refusal(dave.call.getAttr({ path: "/kept" }))).reason, "SESSION_UNKNOWN");
  const back = await node.signIn("dave@example.com");
  assert.equal((await back.call.readFile({ path: "/kept" })).data.toString(), "kept");
});

test("streams in progress and uploads that were begun end with the lock, and give their bytes back", async () => {
  const user = await node.signIn("busy@example.com");
  const { uploadId } = await user.call.beginUpload({ path: "/begun", size: 12_000_000n });
  const opened = Promise.withResolvers<void>();
  const never = Promise.withResolvers<void>();
  const streaming = user.upload(
    (async function* () {
      yield header("/begun", { size: 12_000_000n, sizeKnown: true, uploadId });
      yield chunk(0, randomBytes(4_000_000));
      yield chunk(4_000_000, randomBytes(1_000));
      opened.resolve();
      await never.promise;
    })(),
  );
  const refused = refusal(streaming);
  await opened.promise;
  while ((await user.call.getQuota({})).stagingBytes === 0n) await new Promise(setImmediate);
  const reply = await disable("busy@example.com");
  assert.deepEqual([reply.sessionsEnded, reply.uploadsDropped], [1, 1]);
  assert.equal((await refused).reason, "USER_DISABLED");
  never.resolve();
  const root = node.node.storage.root("busy@example.com");
  assert.equal(root?.usage.stagingBytes, 0);
  await enable("busy@example.com");
  const back = await node.signIn("busy@example.com");
  assert.equal((await refusal(back.call.getUpload({ uploadId }))).reason, "NO_SUCH_UPLOAD");
});

test("a download in progress ends at its next chunk", async () => {
  const user = await node.signIn("reader@example.com");
  await user.upload(
    (async function* () {
      yield header("/big", { size: 24_000_000n, sizeKnown: true });
      for (let at = 0; at < 24_000_000; at += 4_000_000) yield chunk(at, Buffer.alloc(4_000_000));
    })(),
  );
  const reading = (async () => {
    let isLocked = false;
    for await (const _reply of user.call.downloadFile({ path: "/big" })) {
      if (!isLocked) await disable("reader@example.com");
      isLocked = true;
    }
  })();
  assert.equal((await refusal(reading)).reason, "USER_DISABLED");
});

test("the person is locked out too, whatever address comes with them, and an innocent of another subject is not", async () => {
  await register(personToken("mallory@example.com", "42"));
  const reply = await disable("mallory@example.com");
  assert.deepEqual([reply.state?.issuer, reply.state?.subject], ["https://idp.example.com", "42"]);
  assert.equal((await refusal(register(personToken("alias@example.com", "42")))).reason, "USER_DISABLED");
  await register(personToken("alias@example.com", "43"));
  await enable("mallory@example.com");
  await register(personToken("third@example.com", "42"));
});

test("a decision with a higher version stays, whoever comes with an older one", async () => {
  await node.signIn("versions@example.com");
  const first = await disable("versions@example.com");
  const version = first.state?.version ?? 0n;
  const late = await node.anonymous.setUserState(
    { state: { username: "versions@example.com", reason: "late", version: version - 1n } },
    BY_PASSWORD,
  );
  assert.deepEqual([late.applied, late.state?.disabled, late.state?.version], [false, true, version]);
  assert.equal((await refusal(node.signIn("versions@example.com"))).reason, "USER_DISABLED");
});

test("sessions that an administrator ends do not come back by the ID token of before", async () => {
  const iat = Math.floor(Date.now() / 1_000) - 60;
  const old = personToken("lost@example.com", "7", { iat });
  const { sessionToken } = await register(old);
  const tokensFromMs = BigInt(Date.now());
  const reply = await node.anonymous.setUserState(
    { state: { username: "lost@example.com", reason: "laptop lost", tokensFromMs } },
    BY_PASSWORD,
  );
  assert.equal(reply.sessionsEnded, 1);
  const withOld = { metadata: { authorization: `Bearer ${sessionToken}` } };
  assert.equal((await refusal(node.anonymous.getAttr({ path: "/" }, withOld))).reason, "SESSION_UNKNOWN");
  const refused = await refusal(register(old));
  assert.equal(refused.reason, "TOKEN_REJECTED");
  assert.match(refused.message, /sign in again/);
  await register(personToken("lost@example.com", "7", { iat: iat + 120 }));
});

test("what a locked-out user shares goes on, unless that is closed too", async () => {
  const owner = await node.signIn("sharing@example.com");
  await owner.call.createDirectory({ path: "/shared" });
  await owner.call.share({ path: "/shared", user: "friend@example.com" });
  const friend = await node.signIn("friend@example.com");
  const look = () => friend.call.getAttr({ root: "sharing@example.com", path: "/shared" });
  await disable("sharing@example.com");
  await look();
  await disable("sharing@example.com", { closesShares: true });
  assert.equal((await refusal(look())).reason, "NOT_SHARED");
  await enable("sharing@example.com");
  await look();
});

test("only administrators decide, with a reason, and never about themselves; every decision is in the audit log", async () => {
  const user = await node.signIn("nobody@example.com");
  const admin = await node.signIn("admin@example.com");
  const state = { username: "victim@example.com", disabled: true, reason: "no" };
  for (const call of [
    user.call.setUserState({ state }),
    user.call.listUserStates({}),
    node.anonymous.setUserState({ state }, { metadata: { "x-admin-password-hash": "0".repeat(64) } }),
  ]) {
    const refused = await refusal(call);
    assert.deepEqual([refused.code, refused.reason], [Code.PERMISSION_DENIED, "NOT_ADMIN"]);
    assert.match(refused.message, /only cluster administrators can do that/);
  }
  for (const bad of [
    { ...state, reason: " " },
    { ...state, reason: "x".repeat(201) },
    { ...state, reason: "two\nlines" },
    { ...state, username: "x" },
    { ...state, username: "admin@example.com" },
  ]) {
    assert.equal((await refusal(admin.call.setUserState({ state: bad }))).reason, "BAD_ARGUMENT");
  }
  await admin.call.setUserState({ state });
  const listed = await admin.call.listUserStates({ username: "victim@example.com" });
  assert.deepEqual(
    listed.states.map(({ disabled, reason, setBy }) => [disabled, reason, setBy]),
    [[true, "no", "admin@example.com"]],
  );
  const logged = async (): Promise<string> => {
    const folder = join(node.dataFolder, "audit");
    const names = (await readdir(folder)).filter((name) => name.endsWith(".log"));
    const texts = await Promise.all(names.map((name) => readFile(join(folder, name), "utf8")));
    const lines = texts.join("").split("\n");
    return lines.find((text) => text.includes("user.disable") && text.includes("victim@example.com")) ?? "";
  };
  while ((await logged()) === "") await new Promise((resolve) => setTimeout(resolve, 20));
  assert.match(await logged(), /"actor":"admin@example.com".*"reason":"no"/);
});

test("a lock outlives a restart, and a state file that cannot be read keeps the node from serving", async () => {
  const dataFolder = scratchFolder("grove-locked-");
  const first = await startTestNode({ env: ENV, dataFolder });
  await first.signIn("gone@example.com");
  await first.anonymous.setUserState(
    { state: { username: "gone@example.com", disabled: true, reason: "left" } },
    BY_PASSWORD,
  );
  await first.stop();
  const second = await startTestNode({ env: ENV, dataFolder });
  assert.equal((await refusal(second.signIn("gone@example.com"))).reason, "USER_DISABLED");
  await second.anonymous.setUserState(
    { state: { username: "next@example.com", disabled: true, reason: "left" } },
    BY_PASSWORD,
  );
  await second.stop();
  const path = join(dataFolder, USER_STATES_FILE);
  await writeFile(path, "{");
  const third = await startTestNode({ env: ENV, dataFolder });
  assert.equal((await refusal(third.signIn("gone@example.com"))).reason, "USER_DISABLED");
  await third.stop();
  const aside = (await readdir(dataFolder)).filter((name) => name.startsWith(`${USER_STATES_FILE}.corrupt-`));
  assert.equal(aside.length, 1, "the damaged file is set aside, and told");
  for (const file of [path, `${path}.previous`]) await writeFile(file, "{");
  await assert.rejects(startTestNode({ env: ENV, dataFolder }), /nobody knows who is locked out/);
});
