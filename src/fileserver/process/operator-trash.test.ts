// An administrator at a user's trash: rights, no reason given, the user's view, audit (spec 5.5, D13).
import assert from "node:assert/strict";
import { hash } from "node:crypto";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { OPERATOR_LOOKS_PER_USER, OperatorLooks } from "#fileserver/operations/operator-looks.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { createClient } from "#wire/grpc/client.ts";
import { OnConflict } from "#wire/proto/gen/grove/v1/common_pb.ts";
import { FileServer } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { refusal, startTestNode, type TestNode, type TestUser } from "./node.fixture.ts";

let node: TestNode;
let admin: TestUser;
before(async () => {
  node = await startTestNode({
    env: { SVC_ADMIN_EMAIL: "admin@example.com", ADMIN_PASSWORD_HASH: hash("sha256", "opens", "hex") },
  });
  admin = await node.signIn("admin@example.com");
});
after(() => node.stop());

const reasonOf = async (call: Promise<unknown>) => (await refusal(call)).reason;

/** A user with one formerly shared file in the trash. */
async function userWithTrash(name: string): Promise<{ user: TestUser; trashId: string }> {
  const user = await node.signIn(`${name}@example.com`);
  await user.call.createDirectory({ path: "/docs" });
  await user.call.createFile({ path: "/docs/f", data: Buffer.from("abc") });
  await user.call.share({ path: "/docs/f", user: "sharee@example.com" });
  const { item } = await user.call.trashFile({ path: "/docs/f" });
  assert.ok(item);
  return { user, trashId: item.trashId };
}

/** Lines of the audit log, once there are so many. */
async function auditOf(
  act: string,
  subject: string,
  wanted = 1,
): Promise<{ actor: string; detail: Record<string, unknown> }[]> {
  for (;;) {
    const reply = await fetch(`http://127.0.0.1:${node.node.metricsPort}/audit?after=0&limit=1000`);
    const { entries } = (await reply.json()) as {
      entries: { act: string; actor: string; subject: string; detail: Record<string, unknown> }[];
    };
    const lines = entries.filter((line) => line.act === act && line.subject === subject);
    if (lines.length >= wanted) return lines;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

test("without a reason an administrator sees no names, with one all, and the user is shown who looked and why", async () => {
  const { user, trashId } = await userWithTrash("looked-at");
  const plain = await admin.call.showTrash({ root: user.email, operator: {} });
  assert.deepEqual(
    plain.items.map((item) => [
      item.trashId,
      item.originalPath,
      item.size,
      item.trashedBy,
      item.formerShares,
    ]),
    [[trashId, "", 3n, user.email, []]],
  );
  assert.deepEqual((await user.call.showTrash({})).operatorLooks, []);
  const asked = { root: user.email, originalPath: "/docs/f" };
  for (const reason of [" ", "a\nb", "\u001b[2J"]) {
    assert.equal(await reasonOf(admin.call.showTrash({ ...asked, operator: { reason } })), "BAD_ARGUMENT");
  }
  const named = await admin.call.showTrash({ ...asked, operator: { reason: "ticket 4711" } });
  assert.deepEqual(
    named.items.map((item) => [item.originalPath, item.formerShares.length]),
    [["/docs/f", 1]],
  );
  const { operatorLooks } = await user.call.showTrash({});
  assert.deepEqual(
    operatorLooks.map(({ by, reason, restoredPath }) => [by, reason, restoredPath]),
    [["admin@example.com", "ticket 4711", ""]],
  );
  const lines = await auditOf("trash.look", user.email, 2);
  assert.deepEqual(
    lines.map(({ actor, detail }) => [actor, detail["names"], detail["reason"]]),
    [
      ["admin@example.com", false, undefined],
      ["admin@example.com", true, "ticket 4711"],
    ],
  );
});

test("an administrator brings an item back for a reason and replaces nothing; both audit and user are told", async () => {
  const { user, trashId } = await userWithTrash("restored");
  await user.call.createFile({ path: "/docs/f", data: Buffer.from("newer") });
  const request = { root: user.email, trashId };
  const operator = { reason: "asked by phone" };
  assert.equal(await reasonOf(admin.call.restoreFile({ ...request, operator: {} })), "BAD_ARGUMENT");
  const replacing = { ...request, operator, onConflict: OnConflict.REPLACE };
  assert.equal(await reasonOf(admin.call.restoreFile(replacing)), "BAD_ARGUMENT");
  assert.equal(await reasonOf(admin.call.restoreFile({ ...request, operator })), "PATH_EXISTS");
  const back = await admin.call.restoreFile({ ...request, operator, onConflict: OnConflict.RENAME });
  assert.deepEqual([back.path, back.owner], ["/docs/f (2)", user.email]);
  const read = await user.call.readFile({ path: "/docs/f (2)" });
  assert.equal(Buffer.from(read.data).toString(), "abc");
  const { operatorLooks } = await user.call.showTrash({});
  assert.deepEqual(
    operatorLooks.map(({ by, reason, restoredPath }) => [by, reason, restoredPath]),
    [["admin@example.com", "asked by phone", "/docs/f (2)"]],
  );
  const [line] = await auditOf("trash.restore", `${user.email}:/docs/f (2)`);
  assert.deepEqual([line?.actor, line?.detail["reason"]], ["admin@example.com", "asked by phone"]);
  // It is the right to the trash, and none to files.
  assert.equal(await reasonOf(admin.call.readFile({ root: user.email, path: "/docs/f" })), "NOT_SHARED");
});

test("nobody else gets in, whatever they say; the administrator's password does, and the log names who used it", async () => {
  const { user, trashId } = await userWithTrash("guarded");
  const other = await node.signIn("other@example.com");
  const operator = { reason: "curious" };
  for (const root of [user.email, "nobody@example.com"]) {
    assert.equal(await reasonOf(other.call.showTrash({ root, operator })), "NOT_ADMIN");
    assert.equal(await reasonOf(other.call.restoreFile({ root, trashId, operator })), "NOT_ADMIN");
  }
  assert.equal(
    await reasonOf(admin.call.showTrash({ root: "nobody@example.com", operator })),
    "NO_SUCH_PATH",
  );
  const as = (password: string) => ({
    metadata: {
      authorization: `Bearer ${other.token}`,
      "x-admin-password-hash": hash("sha256", password, "hex"),
    },
  });
  const asked = { root: user.email, operator };
  assert.equal(await reasonOf(other.call.showTrash(asked, as("guess"))), "NOT_ADMIN");
  assert.equal((await other.call.showTrash(asked, as("opens"))).items.length, 1);
  const [line] = await auditOf("trash.look", user.email);
  assert.equal(line?.actor, "other@example.com");
});

test("looks are there after a restart; each user has places of their own, and a damaged file is set aside", async () => {
  const folder = scratchFolder("looks-");
  const log = { debug() {}, info() {}, warn() {}, error() {} };
  const deps = { clock: new ManualClock(1_000), log } as never;
  try {
    const looks = await OperatorLooks.open(folder, deps);
    await looks.add({ owner: "a", by: "op", reason: "first", restored_path: "" });
    for (let at = 0; at <= OPERATOR_LOOKS_PER_USER; at++) {
      await looks.add({ owner: "b", by: "op", reason: `${at}`, restored_path: "" });
    }
    await looks.add({ owner: "b", by: "op", reason: `${OPERATOR_LOOKS_PER_USER}`, restored_path: "" });
    const again = await OperatorLooks.open(folder, deps);
    assert.deepEqual(
      again.of("a").map(({ reason }) => reason),
      ["first"],
    );
    assert.equal(again.of("b").length, OPERATOR_LOOKS_PER_USER);
    assert.deepEqual([again.of("b")[0]?.reason, again.of("b").at(-1)?.reason], ["20", "1"]);
    await writeFile(join(folder, "operator_looks.json"), "{");
    const recovered = await OperatorLooks.open(folder, deps);
    assert.equal(recovered.of("b")[0]?.reason, "19");
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("a look that the disk did not take is kept when the disk takes it", async () => {
  const folder = scratchFolder("looks-");
  const log = { debug() {}, info() {}, warn() {}, error() {} };
  const deps = { clock: new ManualClock(1_000), log } as never;
  const looks = await OperatorLooks.open(folder, deps);
  const look = { owner: "a", by: "op", reason: "first", restored_path: "" };
  await rm(folder, { recursive: true });
  await assert.rejects(looks.add(look));
  await mkdir(folder);
  await looks.add(look);
  assert.equal((await OperatorLooks.open(folder, deps)).of("a").length, 1);
});

test("the password alone lets in where there is no session, as the console has none, and to nothing but what an administrator may do", async () => {
  const { user, trashId } = await userWithTrash("by-password");
  const files = createClient(FileServer, user.channel);
  const by = (password: string) => ({
    metadata: { "x-admin-password-hash": hash("sha256", password, "hex") },
  });
  const root = user.email;
  const operator = { reason: "asked by phone" };
  assert.equal(await reasonOf(files.showTrash({ root, operator })), "SESSION_MISSING");
  assert.equal(await reasonOf(files.restoreFile({ root, trashId, operator })), "SESSION_MISSING");
  assert.equal(await reasonOf(files.showTrash({ root, operator }, by("guess"))), "NOT_ADMIN");
  assert.equal(await reasonOf(files.restoreFile({ root, trashId, operator }, by("guess"))), "NOT_ADMIN");
  // A user's own requests need a session, with any password.
  assert.equal(await reasonOf(files.showTrash({ root }, by("opens"))), "SESSION_MISSING");
  assert.equal(await reasonOf(files.restoreFile({ root, trashId }, by("opens"))), "SESSION_MISSING");
  assert.equal(await reasonOf(files.purgeTrash({ root }, by("opens"))), "SESSION_MISSING");
  assert.equal(await reasonOf(files.readFile({ root, path: "/docs" }, by("opens"))), "SESSION_MISSING");
  const { items } = await files.showTrash({ root, operator }, by("opens"));
  assert.deepEqual(
    items.map(({ originalPath }) => originalPath),
    ["/docs/f"],
  );
  const back = await files.restoreFile({ root, trashId, operator }, by("opens"));
  assert.deepEqual([back.path, back.owner], ["/docs/f", root]);
  const { operatorLooks } = await user.call.showTrash({});
  assert.deepEqual(
    operatorLooks.map((look) => [look.by, look.restoredPath]),
    [
      ["administrator", "/docs/f"],
      ["administrator", ""],
    ],
  );
  const [line] = await auditOf("trash.restore", `${root}:/docs/f`);
  assert.equal(line?.actor, "administrator");
});
