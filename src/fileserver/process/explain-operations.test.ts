// An explanation agrees with the operation for callers with a right to know; strangers learn nothing more.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { Perm } from "#wire/proto/gen/grove/v1/common_pb.ts";
import type { ExplainRequestSchema, ExplainResponse } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { refusal, startTestNode, type TestNode, type TestUser } from "./node.fixture.ts";

const OWNER = "owner@example.com";
let node: TestNode;
let owner: TestUser;
let sharee: TestUser;
let stranger: TestUser;

before(async () => {
  node = await startTestNode();
  owner = await node.signIn(OWNER);
  sharee = await node.signIn("sharee@example.com");
  stranger = await node.signIn("stranger@example.com");
  await owner.call.createDirectory({ path: "/docs" });
  await owner.call.createDirectory({ path: "/docs/deep" });
  await owner.call.createFile({ path: "/docs/deep/a.txt", data: Buffer.from("a") });
  await owner.call.createFile({ path: "/private.txt", data: Buffer.from("p") });
  const { storage } = node.node;
  const resolution = storage.resolve(OWNER, ["docs"]);
  await storage.shares.grant({
    owner: OWNER,
    accessVersion: resolution.root.accessVersion,
    by: OWNER,
    inodeId: resolution.chain.at(-1)?.id ?? 0,
    username: "sharee@example.com",
  });
});
after(() => node.stop());

type Question = MessageInitShape<typeof ExplainRequestSchema>;

const checks = (reply: ExplainResponse): string[] =>
  reply.steps.map(({ check, passed }) => `${passed ? "+" : "-"}${check}`);
const ask = (user: TestUser, question: Question): Promise<ExplainResponse> =>
  user.call.explain({ root: user.email === OWNER ? "" : OWNER, ...question });

test("an owner may do everything, and a write is told of quota and reserve (spec 4.6, 5.4)", async () => {
  const read = await ask(owner, { path: "/docs/deep/a.txt" });
  assert.deepEqual(
    [read.allowed, read.reason, checks(read)],
    [true, "", ["+identity", "+owner", "+grant", "+path"]],
  );
  assert.equal(
    read.steps[2]?.text,
    "sharee@example.com may read and write it, since /docs is shared with them",
  );
  assert.deepEqual(checks(await ask(owner, { path: "/private.txt" })), ["+identity", "+owner", "+path"]);
  const write = await ask(owner, { path: "/docs/new.txt", permission: Perm.WRITE, addBytes: 5n });
  assert.deepEqual(checks(write), ["+identity", "+owner", "+grant", "+path", "+quota", "+reserve"]);
  assert.equal((await ask(owner, { path: "/docs", permission: Perm.DELETE })).allowed, true);
  const root = await ask(owner, { path: "/", permission: Perm.DELETE });
  assert.deepEqual([root.allowed, root.reason], [false, "BAD_ARGUMENT"]);
});

test("a sharee learns which folder's share gives access, and that no share gives the right to delete (spec 5.4)", async () => {
  const read = await ask(sharee, { path: "/docs/deep/a.txt" });
  assert.deepEqual(checks(read), ["+identity", "+owner", "+grant", "+path"]);
  assert.match(read.steps[2]?.text ?? "", /^\/docs is shared with you/);
  const write = await ask(sharee, { path: "/docs/deep/a.txt", permission: Perm.WRITE, addBytes: 1n });
  assert.deepEqual([write.allowed, checks(write).slice(2, 4)], [true, ["+grant", "+right"]]);
  const remove = await ask(sharee, { path: "/docs/deep/a.txt", permission: Perm.DELETE });
  assert.deepEqual([remove.allowed, remove.reason], [false, "NOT_OWNER"]);
  assert.deepEqual(checks(remove), ["+identity", "+owner", "+grant", "-right"]);
});

test("a stranger is answered alike whether or not root and path exist, and like the operation (D1)", async () => {
  const places = [
    { root: OWNER, path: "/docs/deep/a.txt" },
    { root: OWNER, path: "/none/at/all" },
    { root: "nobody@example.com", path: "/docs" },
  ];
  for (const permission of [Perm.READ, Perm.WRITE, Perm.DELETE]) {
    const answers = await Promise.all(places.map((place) => stranger.call.explain({ ...place, permission })));
    const texts = answers.map(({ steps, owner: whose, nowMs: _now, ...rest }) => ({
      ...rest,
      steps: steps.map(({ check, passed, text }) => ({ check, passed, text: text.replace(whose, "OWNER") })),
    }));
    assert.deepEqual(texts[1], texts[0]);
    assert.deepEqual(texts[2], texts[0]);
    assert.deepEqual(checks(answers[0] as ExplainResponse), ["+identity", "+owner", "-grant"]);
    const { path } = places[0] ?? { path: "" };
    const operation =
      permission === Perm.READ
        ? stranger.call.getAttr({ root: OWNER, path })
        : permission === Perm.WRITE
          ? stranger.call.createDirectory({ root: OWNER, path })
          : stranger.call.deleteFile({ root: OWNER, path });
    const refused = await refusal(operation);
    assert.deepEqual([answers[0]?.reason, answers[0]?.message], [refused.reason, refused.message]);
  }
  const beside = await ask(sharee, { path: "/private.txt" });
  const nothing = await ask(sharee, { path: "/nothing.txt" });
  assert.deepEqual({ ...beside, nowMs: 0n }, { ...nothing, nowMs: 0n });
  assert.equal(beside.reason, "NOT_SHARED");
});

test("a write over the quota or into the reserve is refused with the operation's own numbers (spec 4.6, D1)", async () => {
  const quota = await ask(owner, { path: "/big", permission: Perm.WRITE, addBytes: 2n ** 40n });
  assert.deepEqual([quota.reason, checks(quota).at(-1)], ["QUOTA_EXCEEDED", "-quota"]);
  assert.deepEqual([quota.metadata["quota"], quota.metadata["used"]], ["17179869184", "2"]);
  const { freeBytes } = node.disk;
  node.disk.freeBytes = 21_474_836_480n;
  const reserve = await ask(owner, { path: "/big", permission: Perm.WRITE, addBytes: 1n });
  assert.deepEqual([reserve.reason, checks(reserve).at(-1)], ["DISK_RESERVE", "-reserve"]);
  assert.equal((await ask(owner, { path: "/private.txt", permission: Perm.DELETE })).allowed, true);
  node.disk.freeBytes = freeBytes;
  // No question leaves a reservation.
  assert.equal(node.node.service.ledger.promisedBytes, 0n);
  assert.equal(node.node.service.ledger.openAccounts, 0);
});

test("a path that is missing refuses a read and takes a write where its folder is there", async () => {
  assert.equal((await ask(owner, { path: "/none" })).reason, "NO_SUCH_PATH");
  assert.equal((await ask(owner, { path: "/none", permission: Perm.WRITE })).allowed, true);
  assert.equal((await ask(owner, { path: "/none/deeper", permission: Perm.WRITE })).reason, "NO_SUCH_PATH");
  assert.equal(
    (await ask(owner, { path: "/private.txt/x", permission: Perm.WRITE })).reason,
    "NOT_DIRECTORY",
  );
  assert.equal((await refusal(ask(owner, { path: "/", permission: Perm.ADMIN }))).reason, "BAD_ARGUMENT");
  assert.equal((await refusal(ask(owner, { path: "no-slash" }))).reason, "BAD_ARGUMENT");
});
