// Handed-over roots over a real connection: the heir's rights, their term, and both users' audit lines.
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { GROUPS_FILE } from "#security/identity/known-groups.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { chunk, header, refusal, startTestNode, type TestNode, type TestUser } from "./node.fixture.ts";

const HASH = createHash("sha256").update("correct horse").digest("hex");
const BY_PASSWORD = { metadata: { "x-admin-password-hash": HASH } };
const ENV = { SVC_ADMIN_EMAIL: "admin@example.com", ADMIN_PASSWORD_HASH: HASH };
const HOUR_MS = 3_600_000;
const soon = (): bigint => BigInt(Date.now() + HOUR_MS);
let node: TestNode;
before(async () => {
  node = await startTestNode({ env: ENV });
});
after(() => node.stop());

const handOver = (username: string, to: string, more: object = {}, options: object = BY_PASSWORD) =>
  node.anonymous.setUserState(
    { state: { username, handOvers: [{ to, reason: "has left", untilMs: soon(), ...more }] } },
    options,
  );
const end = (username: string) => node.anonymous.setUserState({ state: { username } }, BY_PASSWORD);
const reasonOf = async (call: Promise<unknown>): Promise<string> => (await refusal(call)).reason;

interface Pair {
  readonly owner: TestUser;
  readonly heir: TestUser;
  readonly root: string;
}

/** An owner with `/docs/a`, and a user without access to it. */
async function pair(name: string): Promise<Pair> {
  const root = `${name}@example.com`;
  const owner = await node.signIn(root);
  await owner.call.createDirectory({ path: "/docs" });
  await owner.call.createFile({ path: "/docs/a", data: Buffer.from("kept") });
  return { owner, heir: await node.signIn(`${name}-heir@example.com`), root };
}

async function auditLines(match: string): Promise<string[]> {
  const folder = join(node.dataFolder, "audit");
  const names = (await readdir(folder)).filter((name) => name.endsWith(".log"));
  const texts = await Promise.all(names.map((name) => readFile(join(folder, name), "utf8")));
  return texts
    .join("")
    .split("\n")
    .filter((line) => line.includes(match));
}

test("an heir reads and writes all of the root, pays nothing, and neither deletes nor shares", async () => {
  const { owner, heir, root } = await pair("plain");
  assert.equal(await reasonOf(heir.call.readFile({ root, path: "/docs/a" })), "NOT_SHARED");
  await handOver(root, "plain-heir@example.com");
  assert.equal((await heir.call.readFile({ root, path: "/docs/a" })).data.toString(), "kept");
  assert.equal((await heir.call.listDir({ root, path: "/" })).entries.length, 1);
  await heir.call.createFile({ root, path: "/new", data: Buffer.from("12345678") });
  await heir.call.rename({ root, path: "/new", targetPath: "/docs/new" });
  const usage = node.node.storage.root("plain@example.com")?.usage;
  assert.equal(usage?.liveBytes, 12);
  assert.equal((await heir.call.getQuota({})).usedBytes, 0n);
  assert.equal((await heir.call.getQuota({ root })).usedBytes, 12n);
  for (const call of [
    () => heir.call.deleteFile({ root, path: "/docs/new" }),
    () => heir.call.trashFile({ root, path: "/docs/new" }),
    () => heir.call.showTrash({ root }),
    () => heir.call.share({ root, path: "/docs", user: "third@example.com" }),
  ]) {
    assert.equal(await reasonOf(call()), "NOT_OWNER");
  }
  assert.equal((await owner.call.readFile({ path: "/docs/new" })).data.toString(), "12345678");
});

test("an heir's copy has all that the heir sees, also what was taken out of a share with the heir before", async () => {
  const { owner, heir, root } = await pair("copies");
  await owner.call.share({ path: "/docs", user: heir.email });
  await owner.call.unshare({ path: "/docs/a", user: heir.email });
  await handOver(root, heir.email);
  await heir.call.copy({ root, path: "/docs", targetPath: "/copy" });
  const { entries } = await heir.call.listDir({ root, path: "/copy" });
  assert.deepEqual(
    entries.map(({ name }) => name),
    ["a"],
  );
});

test("an heir with delete empties the trash too, but shares nothing", async () => {
  const { heir, root } = await pair("wide");
  await handOver(root, "wide-heir@example.com", { mayDelete: true });
  await heir.call.trashFile({ root, path: "/docs/a" });
  assert.equal((await heir.call.showTrash({ root })).items.length, 1);
  await heir.call.deleteFile({ root, path: "/docs", recursive: true });
  assert.equal(await reasonOf(heir.call.share({ root, path: "/", user: "third@example.com" })), "NOT_OWNER");
  assert.equal(await reasonOf(heir.call.listShares({ root, path: "/" })), "NOT_OWNER");
});

test("it holds while the owner is locked out with closed shares, and ends when it is ended", async () => {
  const { heir, root } = await pair("leaver");
  const handOvers = [{ to: "leaver-heir@example.com", reason: "has left", untilMs: soon() }];
  const lock = { username: root, disabled: true, closesShares: true, reason: "has left", handOvers };
  await node.anonymous.setUserState({ state: lock }, BY_PASSWORD);
  await heir.call.readFile({ root, path: "/docs/a" });
  await node.anonymous.setUserState({ state: { ...lock, handOvers: [] } }, BY_PASSWORD);
  assert.equal(await reasonOf(heir.call.readFile({ root, path: "/docs/a" })), "NOT_SHARED");
});

test("a download of an heir ends with the handing over", async () => {
  const { owner, heir, root } = await pair("stream");
  await owner.upload(
    (async function* () {
      yield header("/big", { size: 24_000_000n, sizeKnown: true });
      for (let at = 0; at < 24_000_000; at += 4_000_000) yield chunk(at, randomBytes(4_000_000));
    })(),
  );
  await handOver(root, "stream-heir@example.com");
  const reading = (async () => {
    let isEnded = false;
    for await (const _reply of heir.call.downloadFile({ root, path: "/big" })) {
      if (!isEnded) await end(root);
      isEnded = true;
    }
  })();
  assert.equal(await reasonOf(reading), "NOT_SHARED");
});

test("an upload that an heir has begun waits for its stream as everybody's, and is dropped when the handing over ends", async () => {
  const { heir, root } = await pair("begun");
  await handOver(root, "begun-heir@example.com");
  const begun = await heir.call.beginUpload({ root, path: "/later", size: 8n });
  await node.node.service.resumable.expire();
  assert.equal((await heir.call.getUpload({ root, uploadId: begun.uploadId })).offset, 0n);
  await end(root);
  await node.node.service.resumable.expire();
  assert.equal(await reasonOf(heir.call.getUpload({ root, uploadId: begun.uploadId })), "NO_SUCH_UPLOAD");
});

test("it ends by itself at its moment", async () => {
  const { heir, root } = await pair("brief");
  await handOver(root, "brief-heir@example.com", { untilMs: BigInt(Date.now() + 400) });
  for (;;) {
    const answer = await heir.call.readFile({ root, path: "/docs/a" }).catch(() => undefined);
    if (answer === undefined) break;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  assert.equal(await reasonOf(heir.call.readFile({ root, path: "/docs/a" })), "NOT_SHARED");
});

test("nobody hands a root over to themselves, without a reason, without an end, or to too many", async () => {
  const root = "refused@example.com";
  const admin = await node.signIn("admin@example.com");
  const many = Array.from({ length: 5 }, (_, i) => ({
    to: `h${i}@example.com`,
    reason: "x",
    untilMs: soon(),
  }));
  for (const call of [
    () => handOver(root, root),
    () => handOver(root, "Refused@Example.com"),
    () =>
      admin.call.setUserState({
        state: { username: root, handOvers: [{ to: "admin@example.com", reason: "x", untilMs: soon() }] },
      }),
    () => handOver(root, "heir@example.com", { reason: " " }),
    () => handOver(root, "heir@example.com", { untilMs: 0n }),
    () => handOver(root, "heir@example.com", { untilMs: BigInt(Date.now() + 401 * 24 * HOUR_MS) }),
    () => node.anonymous.setUserState({ state: { username: root, handOvers: many } }, BY_PASSWORD),
  ]) {
    assert.equal(await reasonOf(call()), "BAD_ARGUMENT");
  }
});

test("no administrator hands a root over to a group of their own; the password does, and what stands stays", async (t) => {
  const dataFolder = scratchFolder("grove-own-group-");
  const role = { role: "read", setBy: "administrator", setAtMs: 1, untilMs: 0 };
  const groups = [
    { name: "own", roles: [{ ...role, username: "admin@example.com" }] },
    { name: "other", roles: [{ ...role, username: "carol@example.com" }] },
  ];
  const content = JSON.stringify({ schema: 1, confirmedMs: Date.now(), groups });
  await writeFile(join(dataFolder, GROUPS_FILE), content, { mode: 0o600 });
  const own = await startTestNode({ env: ENV, dataFolder });
  t.after(() => own.stop());
  const admin = await own.signIn("admin@example.com");
  const to = (group: string) => ({ to: `${group}@group`, reason: "takes over", untilMs: soon() });
  const asked = { state: { username: "dave@example.com", handOvers: [to("own")] } };
  const refused = await refusal(admin.call.setUserState(asked));
  assert.deepEqual([refused.reason, /group of their own/.test(refused.message)], ["BAD_ARGUMENT", true]);
  const { state } = await own.anonymous.setUserState(asked, BY_PASSWORD);
  const both = { username: "dave@example.com", handOvers: [...(state?.handOvers ?? []), to("other")] };
  const { state: next } = await admin.call.setUserState({ state: both });
  assert.deepEqual(
    next?.handOvers.map(({ to: heir, setBy }) => [heir, setBy]),
    [
      ["other@group", "admin@example.com"],
      ["own@group", "administrator"],
    ],
  );
});

test("beginning and end stand in the audit log at both users, and say nothing of the right to come in", async () => {
  const { root } = await pair("logged");
  await handOver(root, "logged-heir@example.com");
  await end(root);
  const acts = async () => {
    const lines = [...(await auditLines(`"subject":"${root}"`)), ...(await auditLines("logged-heir@"))];
    return new Set(lines.flatMap((line) => /"act":"(user\.[a-z_]+)"/.exec(line)?.[1] ?? []));
  };
  const wanted = ["user.hand_over", "user.hand_over_end", "user.inherit", "user.inherit_end"];
  for (let found = await acts(); wanted.some((act) => !found.has(act)); found = await acts()) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  assert.deepEqual([...(await acts())].toSorted(), wanted);
  const [inherit] = await auditLines('user.inherit"');
  assert.match(inherit ?? "", /"actor":"administrator"/);
});

test("it outlives a restart, and what was decided before stays as it was", async (t) => {
  const dataFolder = await mkdtemp(join(tmpdir(), "grove-heir-"));
  t.after(() => rm(dataFolder, { recursive: true, force: true }));
  const first = await startTestNode({ env: ENV, dataFolder });
  const lock = { username: "gone@example.com", disabled: true, reason: "left" };
  await first.anonymous.setUserState({ state: lock }, BY_PASSWORD);
  const handOvers = [{ to: "heir@example.com", reason: "takes over", untilMs: soon() }];
  const asked = await first.anonymous.setUserState({ state: { ...lock, handOvers } }, BY_PASSWORD);
  await first.stop();
  const second = await startTestNode({ env: ENV, dataFolder });
  t.after(() => second.stop());
  const { states } = await second.anonymous.listUserStates({ username: "gone@example.com" }, BY_PASSWORD);
  assert.deepEqual(states, [asked.state]);
  assert.equal(states[0]?.handOvers[0]?.setBy, "administrator");
});
