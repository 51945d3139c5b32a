// Exclusions below a share that goes on, as seen by owner, excluded user and sharee (spec 4.5, 5.4, D13).
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { CHUNK_BYTES } from "#base/limits.ts";
import { REQUEST_ID_HEADER } from "#base/request-scope.ts";
import { OnConflict, Perm } from "#wire/proto/gen/grove/v1/common_pb.ts";
import {
  chunk,
  header,
  parts,
  refusal,
  startTestNode,
  type TestNode,
  type TestUser,
  type UploadPart,
} from "./node.fixture.ts";

let node: TestNode;
let users = 0;

before(async () => {
  node = await startTestNode();
});
after(() => node.stop());

const newUser = (): Promise<TestUser> => node.signIn(`user${++users}@example.com`);
const reasonOf = async (call: Promise<unknown>): Promise<string> => (await refusal(call)).reason;

interface Place {
  readonly owner: TestUser;
  readonly sharee: TestUser;
  readonly other: TestUser;
  readonly root: string;
}

/** /docs with /docs/out/f and /docs/in/f, shared with two users; the first is excluded from /docs/out. */
async function partlyShared(): Promise<Place> {
  const [owner, sharee, other] = [await newUser(), await newUser(), await newUser()];
  for (const path of ["/docs", "/docs/out", "/docs/in"]) await owner.call.createDirectory({ path });
  for (const path of ["/docs/out/f", "/docs/in/f"])
    await owner.call.createFile({ path, data: Buffer.from("first") });
  for (const { email } of [sharee, other]) await owner.call.share({ path: "/docs", user: email });
  const { affectedInodes } = await owner.call.unshare({ path: "/docs/out", user: sharee.email });
  assert.equal(affectedInodes, 2n);
  return { owner, sharee, other, root: owner.email };
}

const namesIn = async (user: TestUser, root: string, path: string): Promise<string[]> =>
  (await user.call.listDir({ root, path })).entries.map(({ name }) => name);

test("the one user is out, the other is not, and the lists of users and entries say so (spec 4.5)", async () => {
  const { owner, sharee, other, root } = await partlyShared();
  assert.deepEqual((await owner.call.getAttr({ path: "/docs/out/f" })).shared, [other.email]);
  assert.deepEqual((await owner.call.getAttr({ path: "/docs/in/f" })).shared, [sharee.email, other.email]);
  assert.equal(await reasonOf(sharee.call.getAttr({ root, path: "/docs/out/f" })), "NOT_SHARED");
  assert.deepEqual(await namesIn(sharee, root, "/docs"), ["in"]);
  assert.deepEqual(await namesIn(other, root, "/docs"), ["in", "out"]);
  assert.deepEqual(await namesIn(owner, "", "/docs"), ["in", "out"]);
  const { entries } = await owner.call.listDir({ path: "/docs" });
  assert.deepEqual(
    entries.map(({ shared }) => shared),
    [[sharee.email, other.email], [other.email]],
  );
  await owner.call.share({ path: "/docs/out", user: sharee.email });
  assert.equal((await sharee.call.getAttr({ root, path: "/docs/out/f" })).size, 5n);
  assert.deepEqual(await namesIn(sharee, root, "/docs"), ["in", "out"]);
});

test("who is taken out of a place learns nothing of it, in any operation (D1)", async () => {
  const { sharee, root, owner } = await partlyShared();
  const operations: [string, (path: string) => Promise<unknown>][] = [
    ["NOT_SHARED", (path) => sharee.call.getAttr({ root, path })],
    ["NOT_SHARED", (path) => sharee.call.listDir({ root, path })],
    ["NOT_SHARED", (path) => sharee.call.readFile({ root, path })],
    ["NOT_SHARED", (path) => sharee.call.writeFile({ root, path, data: Buffer.from("x") })],
    ["NOT_SHARED", (path) => sharee.call.createFile({ root, path })],
    ["NOT_SHARED", (path) => sharee.call.rename({ root, path, targetPath: "/docs/x" })],
    ["NOT_SHARED", (path) => sharee.call.rename({ root, path: "/docs/in/f", targetPath: path })],
    ["NOT_SHARED", (path) => sharee.call.copy({ root, path, targetPath: "/docs/in/x" })],
    ["NOT_SHARED", (path) => sharee.call.beginUpload({ root, path, size: 9n })],
    ["NOT_SHARED", (path) => sharee.download({ root, path })],
    ["NOT_SHARED", (path) => sharee.upload(parts(path, Buffer.from("x"), 5, { root }))],
    ["NOT_OWNER", (path) => sharee.call.deleteFile({ root, path })],
    ["NOT_OWNER", (path) => sharee.call.listShares({ root, path })],
  ];
  for (const [reason, operation] of operations) {
    const answers = new Set<string>();
    for (const path of ["/docs/out", "/docs/out/f", "/docs/out/none", "/elsewhere"]) {
      const refused = await refusal(operation(path));
      assert.equal(refused.reason, reason);
      answers.add(
        `${refused.message} ${JSON.stringify([...refused.error.metadata.entries()].filter(([name]) => name !== REQUEST_ID_HEADER))}`,
      );
    }
    assert.equal(answers.size, 1, [...answers].join("; "));
  }
  const why = await sharee.call.explain({ root, path: "/docs/out/f", permission: Perm.READ });
  assert.deepEqual([why.allowed, why.reason], [false, "NOT_SHARED"]);
  assert.ok(!JSON.stringify(why.steps).includes("/docs"), JSON.stringify(why.steps));
  await owner.call.unshare({ path: "/docs", user: sharee.email });
  assert.equal(await reasonOf(sharee.call.getQuota({ root })), "NOT_SHARED");
});

test("a share within what somebody is taken out of is a place of its own, to which nothing else is moved (D13)", async () => {
  const { owner, sharee, root } = await partlyShared();
  await owner.call.createDirectory({ path: "/docs/out/back" });
  await owner.call.createFile({ path: "/docs/out/back/g", data: Buffer.from("g") });
  await owner.call.share({ path: "/docs/out/back", user: sharee.email });
  assert.deepEqual(await namesIn(sharee, root, "/docs/out/back"), ["g"]);
  assert.equal(await reasonOf(sharee.call.getAttr({ root, path: "/docs/out" })), "NOT_SHARED");
  for (const [path, targetPath] of [
    ["/docs/out/back/g", "/docs/in/g"],
    ["/docs/in/f", "/docs/out/back/f"],
  ] as const) {
    assert.equal(await reasonOf(sharee.call.rename({ root, path, targetPath })), "NOT_OWNER");
  }
  const why = await sharee.call.explain({ root, path: "/docs/out/back/g", permission: Perm.READ });
  assert.equal(
    why.steps.at(-2)?.text,
    "/docs/out/back is shared with you, which gives read and write there and below",
  );
  await sharee.call.rename({ root, path: "/docs/out/back/g", targetPath: "/docs/out/back/h" });
});

test("what a sharee moves takes what is kept from that user along unseen (D13)", async () => {
  const { owner, sharee, root } = await partlyShared();
  await owner.call.createDirectory({ path: "/docs/all" });
  await owner.call.rename({ path: "/docs/out", targetPath: "/docs/all/out" });
  await sharee.call.rename({ root, path: "/docs/all", targetPath: "/docs/in/all" });
  assert.deepEqual(await namesIn(sharee, root, "/docs/in/all"), []);
  assert.equal(await reasonOf(sharee.call.getAttr({ root, path: "/docs/in/all/out/f" })), "NOT_SHARED");
  const copied = await sharee.call.copy({ root, path: "/docs/in", targetPath: "/docs/copy" });
  assert.equal(copied.size, 5n);
  assert.deepEqual(await namesIn(owner, "", "/docs/copy/all"), []);
  const over = { root, path: "/docs/copy", targetPath: "/docs/in/all", onConflict: OnConflict.REPLACE };
  assert.equal(await reasonOf(sharee.call.rename(over)), "NOT_OWNER");
});

test("transfers below what somebody is taken out of end at their next chunk, and those beside it go on (D13)", async () => {
  const { owner, sharee, root } = await partlyShared();
  const big = Buffer.alloc(4 * CHUNK_BYTES, 7);
  await owner.call.share({ path: "/docs/out", user: sharee.email });
  for (const path of ["/docs/out/big", "/docs/in/big"]) await owner.upload(parts(path, big, CHUNK_BYTES));
  const end = (): Promise<unknown> => owner.call.unshare({ path: "/docs/out", user: sharee.email });
  const read = async (path: string, first: () => Promise<unknown>): Promise<number> => {
    let received = 0;
    for await (const { part } of sharee.call.downloadFile({ root, path })) {
      if (part.case !== "chunk") continue;
      if (received === 0) await first();
      received += part.value.data.length;
    }
    return received;
  };
  assert.equal(await reasonOf(read("/docs/out/big", end)), "NOT_SHARED");
  await owner.call.share({ path: "/docs/out", user: sharee.email });
  assert.equal(await read("/docs/in/big", end), big.length);
  for (const [path, outcome] of [
    ["/docs/out/late", "NOT_SHARED"],
    ["/docs/in/late", "OK"],
  ] as const) {
    await owner.call.share({ path: "/docs/out", user: sharee.email });
    async function* slowly(): AsyncGenerator<UploadPart> {
      yield header(path, { root, size: 2_000n, sizeKnown: true });
      yield chunk(0, Buffer.alloc(1_000));
      await end();
      yield chunk(1_000, Buffer.alloc(1_000));
    }
    const sending = sharee.upload(slowly());
    if (outcome === "OK") await sending;
    else assert.equal(await reasonOf(sending), outcome);
  }
});

test("the owner lists what is shared and taken out page by page, and is told why (spec 4.5)", async () => {
  const { owner, sharee, other } = await partlyShared();
  const listed: string[] = [];
  let pageToken = "";
  do {
    const page = await owner.call.listShares({ path: "/", pageSize: 2, pageToken });
    assert.ok(page.shares.length <= 2);
    for (const { path, user, excluded, madeBy } of page.shares) {
      assert.equal(madeBy, owner.email);
      listed.push(`${excluded ? "-" : "+"}${user} ${path}`);
    }
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  assert.deepEqual(listed, [`+${sharee.email} /docs`, `+${other.email} /docs`, `-${sharee.email} /docs/out`]);
  const below = await owner.call.listShares({ path: "/docs/out" });
  assert.deepEqual(
    below.shares.map(({ path }) => path),
    ["/docs/out"],
  );
  assert.equal((await owner.call.listShares({ path: "/docs/in" })).shares.length, 0);
  const first = await owner.call.listShares({ path: "/", pageSize: 1 });
  for (const wrong of [
    { path: "/docs", pageToken: first.nextPageToken },
    { path: "/", pageToken: "nonsense" },
    { path: "/", pageSize: 1_001 },
  ]) {
    assert.equal(await reasonOf(owner.call.listShares(wrong)), "BAD_ARGUMENT");
  }
  assert.equal(await reasonOf(owner.call.listShares({ path: "/none" })), "NO_SUCH_PATH");
  const why = await owner.call.explain({ path: "/docs/out/f", permission: Perm.READ });
  const others = why.steps.filter(({ check }) => check === "grant").map(({ text }) => text);
  assert.deepEqual(others, [
    `${sharee.email} is kept out, taken out of shares at /docs/out`,
    `${other.email} may read and write it, since /docs is shared with them`,
  ]);
});
