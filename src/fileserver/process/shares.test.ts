// Shares of two users: rights, their end, the payer, and what callers without a share learn (spec 4.5, 5.4).
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, test } from "node:test";
import { CHUNK_BYTES } from "#base/limits.ts";
import { REQUEST_ID_HEADER } from "#base/request-scope.ts";
import type { VerifiedIdentity } from "#base/verified-identity.ts";
import { Access, type AccessDeps } from "#fileserver/operations/access.ts";
import { Code } from "#wire/framing/status.ts";
import { OnConflict, Perm } from "#wire/proto/gen/grove/v1/common_pb.ts";
import {
  bytesOf,
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

/** An owner with /docs/sub/f and /private/f, a sharee of /docs, and the root's place. */
async function sharedDocs(): Promise<{ owner: TestUser; sharee: TestUser; root: string }> {
  const [owner, sharee] = [await newUser(), await newUser()];
  for (const path of ["/docs", "/docs/sub", "/private"]) await owner.call.createDirectory({ path });
  for (const path of ["/docs/sub/f", "/private/f"])
    await owner.call.createFile({ path, data: Buffer.from("first") });
  await owner.call.share({ path: "/docs", user: sharee.email });
  return { owner, sharee, root: owner.email };
}

test("a sharee reads and writes all below, as the owner's, and the owner alone deletes and pays (spec 5.4, D13)", async () => {
  const { owner, sharee, root } = await sharedDocs();
  const attr = await sharee.call.getAttr({ root, path: "/docs/sub/f" });
  assert.deepEqual(
    [attr.owner, attr.shared, attr.myPermissions],
    [root, [sharee.email], [Perm.READ, Perm.WRITE]],
  );
  const listed = await sharee.call.listDir({ root, path: "/docs" });
  assert.deepEqual(
    listed.entries.map(({ name, shared }) => [name, shared]),
    [["sub", [sharee.email]]],
  );
  const before = await owner.call.getQuota({});
  const content = randomBytes(100_000);
  await sharee.upload(parts("/docs/new", content, 50_000, { root }));
  const made = await owner.call.getAttr({ path: "/docs/new" });
  assert.deepEqual([made.createdBy, made.owner, made.shared], [sharee.email, root, [sharee.email]]);
  assert.ok(bytesOf(await owner.download({ path: "/docs/new" })).equals(content));
  assert.equal((await owner.call.getQuota({})).usedBytes, before.usedBytes + 100_000n);
  assert.equal((await sharee.call.getQuota({})).usedBytes, 0n);
  assert.equal((await sharee.call.getQuota({ root })).usedBytes, before.usedBytes + 100_000n);
  await sharee.call.writeFile({ root, path: "/docs/sub/f", data: Buffer.from("again") });
  assert.equal(await reasonOf(sharee.call.deleteFile({ root, path: "/docs/new" })), "NOT_OWNER");
  assert.equal(
    await reasonOf(sharee.call.share({ root, path: "/docs/sub", user: "c@example.com" })),
    "NOT_OWNER",
  );
  assert.equal(await reasonOf(sharee.call.unshare({ root, path: "/docs", user: sharee.email })), "NOT_OWNER");
  await sharee.call.rename({ root, path: "/docs/new", targetPath: "/docs/sub/new" });
  assert.equal(
    await reasonOf(sharee.call.rename({ root, path: "/docs/sub/new", targetPath: "/new" })),
    "NOT_SHARED",
  );
  // The shared folder itself hangs in one that is not shared.
  assert.equal(
    await reasonOf(sharee.call.rename({ root, path: "/docs", targetPath: "/docs2" })),
    "NOT_SHARED",
  );
  assert.equal(
    (await sharee.call.rename({ root, path: "/docs/sub", targetPath: "/docs/sub2" })).path,
    "/docs/sub2",
  );
});

test("Share and Unshare say how many inodes they cover and who pays (D13)", async () => {
  const { owner, sharee } = await sharedDocs();
  const again = await owner.call.share({ path: "/docs", user: sharee.email.toUpperCase() });
  assert.deepEqual([again.affectedInodes, again.paysQuota], [0n, "owner"]);
  const other = await owner.call.share({ path: "/docs", user: "nobody-yet@example.com" });
  assert.deepEqual([other.affectedInodes, other.paysQuota], [3n, "owner"]);
  assert.equal((await owner.call.share({ path: "/docs/sub/f", user: sharee.email })).affectedInodes, 1n);
  assert.equal((await owner.call.unshare({ path: "/docs/sub/f", user: sharee.email })).affectedInodes, 1n);
  const ended = await owner.call.unshare({ path: "/docs", user: sharee.email });
  assert.deepEqual([ended.affectedInodes, ended.paysQuota], [3n, "owner"]);
  assert.equal((await owner.call.unshare({ path: "/docs", user: sharee.email })).affectedInodes, 0n);
  for (const user of ["", "bob", owner.email]) {
    assert.equal(await reasonOf(owner.call.share({ path: "/docs", user })), "BAD_ARGUMENT", user);
  }
  assert.equal(await reasonOf(owner.call.share({ path: "/none", user: "c@example.com" })), "NO_SUCH_PATH");
  assert.equal((await owner.call.share({ path: "/", user: "c@example.com" })).affectedInodes, 6n);
});

test("what moves into a shared folder is shared, and what moves out is not (spec 4.5)", async () => {
  const { owner, sharee, root } = await sharedDocs();
  await owner.call.rename({ path: "/private/f", targetPath: "/docs/g" });
  assert.equal((await sharee.call.getAttr({ root, path: "/docs/g" })).name, "g");
  await owner.call.rename({ path: "/docs/sub", targetPath: "/private/sub" });
  assert.equal(await reasonOf(sharee.call.getAttr({ root, path: "/private/sub/f" })), "NOT_SHARED");
  await owner.call.rename({ path: "/docs", targetPath: "/papers" });
  assert.equal((await sharee.call.getAttr({ root, path: "/papers/g" })).name, "g");
  assert.equal(await reasonOf(sharee.call.getAttr({ root, path: "/docs/g" })), "NOT_SHARED");
});

test("what is moved or copied is answered with its own shares, and not with those of what it replaced (D13)", async () => {
  const [owner, sharee] = [await newUser(), await newUser()];
  for (const path of ["/mine", "/theirs"]) await owner.call.createFile({ path, data: Buffer.from(path) });
  await owner.call.share({ path: "/theirs", user: sharee.email });
  const moved = await owner.call.rename({ path: "/theirs", targetPath: "/moved" });
  assert.deepEqual(moved.shared, [sharee.email]);
  const onConflict = OnConflict.REPLACE;
  const copied = await owner.call.copy({ path: "/mine", targetPath: "/moved", onConflict });
  assert.deepEqual(copied.shared, []);
  assert.deepEqual((await owner.call.getAttr({ path: "/moved" })).shared, []);
});

test("a download ends at its next chunk after the share has ended, or the file was moved out of it (D13)", async () => {
  const size = 6 * CHUNK_BYTES;
  for (const end of [
    (owner: TestUser, sharee: TestUser) => owner.call.unshare({ path: "/docs", user: sharee.email }),
    (owner: TestUser) => owner.call.rename({ path: "/docs/big", targetPath: "/private/big" }),
  ]) {
    const { owner, sharee, root } = await sharedDocs();
    await owner.upload(parts("/docs/big", Buffer.alloc(size, 7), CHUNK_BYTES));
    let received = 0;
    let isEnded = false;
    const refused = await refusal(
      (async () => {
        for await (const { part } of sharee.call.downloadFile({ root, path: "/docs/big" })) {
          if (part.case !== "chunk") continue;
          received += part.value.data.length;
          if (!isEnded) await end(owner, sharee);
          isEnded = true;
        }
      })(),
    );
    assert.deepEqual([refused.code, refused.reason], [Code.PERMISSION_DENIED, "NOT_SHARED"]);
    assert.ok(received > 0 && received < size, `${received} bytes`);
  }
});

test("the owner's own download and a sharee's of something else go on when a share ends", async () => {
  const { owner, sharee, root } = await sharedDocs();
  const other = await newUser();
  await owner.call.share({ path: "/docs", user: other.email });
  await owner.upload(parts("/docs/big", Buffer.alloc(3 * CHUNK_BYTES, 7), CHUNK_BYTES));
  const reads = [owner, other].map(async (reader) => {
    let received = 0;
    for await (const { part } of reader.call.downloadFile({ root, path: "/docs/big" })) {
      if (part.case !== "chunk") continue;
      received += part.value.data.length;
      await owner.call.unshare({ path: "/docs", user: sharee.email });
    }
    return received;
  });
  assert.deepEqual(await Promise.all(reads), [3 * CHUNK_BYTES, 3 * CHUNK_BYTES]);
});

test("an upload ends at its next chunk after the share has ended, and leaves no trace (D13, spec 3.5)", async () => {
  const { owner, sharee, root } = await sharedDocs();
  const before = await owner.call.getQuota({});
  async function* slowly(): AsyncGenerator<UploadPart> {
    yield header("/docs/late", { root, size: 3_000n, sizeKnown: true });
    yield chunk(0, Buffer.alloc(1_000));
    await owner.call.unshare({ path: "/docs", user: sharee.email });
    yield chunk(1_000, Buffer.alloc(1_000));
    yield chunk(2_000, Buffer.alloc(1_000));
  }
  assert.equal(await reasonOf(sharee.upload(slowly())), "NOT_SHARED");
  assert.equal(await reasonOf(owner.call.getAttr({ path: "/docs/late" })), "NO_SUCH_PATH");
  assert.deepEqual(await owner.call.getQuota({}), before);
});

test("a sharee learns nothing of what is not shared with them, in any operation (D1)", async () => {
  const { sharee, root } = await sharedDocs();
  const operations: [string, (path: string) => Promise<unknown>][] = [
    ["NOT_SHARED", (path) => sharee.call.getAttr({ root, path })],
    ["NOT_SHARED", (path) => sharee.call.listDir({ root, path })],
    ["NOT_SHARED", (path) => sharee.call.changeDir({ root, path })],
    ["NOT_SHARED", (path) => sharee.call.readFile({ root, path })],
    ["NOT_SHARED", (path) => sharee.call.writeFile({ root, path, data: Buffer.from("x") })],
    ["NOT_SHARED", (path) => sharee.call.createFile({ root, path })],
    ["NOT_SHARED", (path) => sharee.call.createDirectory({ root, path })],
    ["NOT_SHARED", (path) => sharee.call.rename({ root, path, targetPath: "/docs/x" })],
    ["NOT_SHARED", (path) => sharee.call.rename({ root, path: "/docs/sub/f", targetPath: path })],
    ["NOT_SHARED", (path) => sharee.download({ root, path })],
    ["NOT_SHARED", (path) => sharee.upload(parts(path, Buffer.from("x"), 5, { root }))],
    ["NOT_OWNER", (path) => sharee.call.deleteFile({ root, path })],
    ["NOT_OWNER", (path) => sharee.call.share({ root, path, user: "c@example.com" })],
    ["NOT_OWNER", (path) => sharee.call.unshare({ root, path, user: "c@example.com" })],
  ];
  for (const [reason, operation] of operations) {
    const answers = new Set<string>();
    // "/docsx" only looks like the shared one.
    for (const path of ["/private", "/private/f", "/none", "/private/f/x", "/docsx"]) {
      const refused = await refusal(operation(path));
      answers.add(
        `${refused.code} ${refused.reason} ${refused.message} ${JSON.stringify([...refused.error.metadata.entries()].filter(([name]) => name !== REQUEST_ID_HEADER))}`,
      );
    }
    assert.equal(answers.size, 1, [...answers].join("; "));
    const [answer = ""] = answers;
    assert.ok(answer.startsWith(`${Code.PERMISSION_DENIED} ${reason} `), answer);
  }
});

test("who is not let in costs the same look at their own shares, whatever is there (D1)", async () => {
  const { sharee, owner } = await sharedDocs();
  const stranger = await newUser();
  const { storage } = node.node;
  const looks: string[] = [];
  const watched: AccessDeps["storage"] = {
    root: (name) => (looks.push(`root ${name}`), storage.root(name)),
    resolve: (name, names) => (looks.push(`resolve ${name}`), storage.resolve(name, names)),
    locks: storage.locks,
    shares: {
      usersOf: (id) => (looks.push(`usersOf ${id}`), storage.shares.usersOf(id)),
      pathsOf(name, username) {
        const paths = storage.shares.pathsOf(name, username);
        looks.push(`pathsOf ${paths.granted.length + paths.excluded.length}`);
        return paths;
      },
    },
  };
  const access = new Access({ storage: watched, adminUsername: undefined, homeAddressOf: () => undefined });
  const identity = (username: string): VerifiedIdentity => ({ username }) as VerifiedIdentity;
  const work = (
    caller: string,
    root: string,
    path: string,
    permission: "delete" | "read" | "write",
  ): string => {
    looks.length = 0;
    assert.throws(() => access.reach(identity(caller), root, path, permission));
    return looks.join(", ");
  };
  for (const permission of ["read", "write", "delete"] as const) {
    for (const [root, path] of [
      [owner.email, "/docs/sub/f"],
      [owner.email, "/none"],
      ["nobody@example.com", "/docs/sub/f"],
    ] as const) {
      assert.equal(
        work(stranger.email, root, path, permission),
        "pathsOf 0",
        `${permission} ${root} ${path}`,
      );
    }
    // Only the owner may delete, so a share makes no difference there.
    const paths =
      permission === "delete" ? ["/private/f", "/none", "/docs", "/docs/none"] : ["/private/f", "/none"];
    for (const path of paths) assert.equal(work(sharee.email, owner.email, path, permission), "pathsOf 1");
  }
});

test("a sharee replaces a file by a rename, as programs save; the old one is in the owner's trash (D13)", async () => {
  const owner = await newUser();
  const sharee = await newUser();
  await owner.call.createDirectory({ path: "/docs" });
  await owner.call.createDirectory({ path: "/docs/folder" });
  await owner.call.createFile({ path: "/docs/plan", data: Buffer.from("old") });
  await owner.call.createFile({ path: "/docs/shared", data: Buffer.from("old") });
  await owner.call.share({ path: "/docs", user: sharee.email });
  await owner.call.share({ path: "/docs/shared", user: "carol@example.com" });
  const { call, email: root } = { ...owner, call: sharee.call };
  const onConflict = OnConflict.REPLACE;
  const save = async (targetPath: string) => {
    await call.createFile({ root, path: "/docs/plan.tmp", data: Buffer.from("new") });
    return call.rename({ root, path: "/docs/plan.tmp", targetPath, onConflict });
  };
  assert.equal((await save("/docs/plan")).path, "/docs/plan");
  assert.equal(String((await owner.call.readFile({ path: "/docs/plan" })).data), "new");
  const { items } = await owner.call.showTrash({});
  assert.deepEqual(
    items.map(({ originalPath, trashedBy }) => [originalPath, trashedBy]),
    [["/docs/plan", sharee.email]],
  );
  assert.equal((await owner.call.getQuota({})).usedBytes, 9n);
  // Others would lose the file, or a folder would go.
  assert.equal((await refusal(save("/docs/shared"))).reason, "NOT_OWNER");
  await call.rename({ root, path: "/docs/plan.tmp", targetPath: "/docs/kept" });
  assert.equal((await refusal(save("/docs/folder"))).reason, "NOT_OWNER");
  const over = { root, path: "/docs/folder", targetPath: "/docs/plan", onConflict };
  assert.equal((await refusal(call.rename(over))).reason, "NOT_OWNER");
  const toTrash = { root, path: "/docs/kept", targetPath: "/docs/folder", onConflict: OnConflict.TRASH };
  for (const put of [call.rename, call.copy]) assert.equal((await refusal(put(toTrash))).reason, "NOT_OWNER");
});

test("a sharee's rename and copy replace no file that others reach by shares or links of its own (D13)", async () => {
  const { owner, sharee, root } = await sharedDocs();
  const carol = await newUser();
  for (const path of ["/docs/shared", "/docs/linked", "/docs/plain", "/docs/draft"])
    await owner.call.createFile({ path, data: Buffer.from(path) });
  await owner.call.share({ path: "/docs/shared", user: carol.email });
  await owner.call.createLink({ path: "/docs/linked" });
  const onConflict = OnConflict.REPLACE;
  for (const name of ["shared", "linked"]) {
    const over = { root, path: "/docs/draft", targetPath: `/docs/${name}`, onConflict };
    assert.equal(await reasonOf(sharee.call.copy(over)), "NOT_OWNER", `a copy over ${name}`);
    assert.equal(await reasonOf(sharee.call.rename(over)), "NOT_OWNER", `a rename over ${name}`);
  }
  assert.equal((await carol.call.getAttr({ root, path: "/docs/shared" })).name, "shared");
  assert.equal((await owner.call.listLinks({ path: "/docs/linked" })).links.length, 1);
  const plain = { root, path: "/docs/draft", targetPath: "/docs/plain", onConflict };
  assert.equal((await sharee.call.copy(plain)).path, "/docs/plain");
  // The owner may end what the owner has given.
  const own = { path: "/docs/draft", targetPath: "/docs/linked", onConflict };
  assert.equal((await owner.call.copy(own)).path, "/docs/linked");
  assert.equal((await owner.call.rename({ ...own, targetPath: "/docs/shared" })).path, "/docs/shared");
});
