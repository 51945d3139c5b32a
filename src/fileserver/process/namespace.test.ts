// Files and directories over a real connection: each operation's answers; strangers learn nothing.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, test } from "node:test";
import { crc32 } from "node:zlib";
import { REQUEST_ID_HEADER } from "#base/request-scope.ts";
import { Code } from "#wire/framing/status.ts";
import { Kind, OnConflict, Perm, Sort } from "#wire/proto/gen/grove/v1/common_pb.ts";
import { parts, refusal, startTestNode, type TestNode, type TestUser } from "./node.fixture.ts";

let node: TestNode;
let users = 0;
before(async () => {
  node = await startTestNode();
});
after(() => node.stop());
const newUser = (): Promise<TestUser> => node.signIn(`name${users++}@example.com`);
const reasonOf = async (call: Promise<unknown>) => (await refusal(call)).reason;

test("CreateFile answers the Attr of what it made, and GetAttr the same (D13)", async () => {
  const user = await newUser();
  const data = Buffer.from("hello");
  await user.call.createDirectory({ path: "/docs" });
  const made = await user.call.createFile({ path: "/docs/a.txt", data });
  assert.deepEqual(
    [made.name, made.path, made.kind, made.size, made.crc32, made.owner, made.root, made.createdBy],
    ["a.txt", "/docs/a.txt", Kind.FILE, 5n, crc32(data), user.email, user.email, user.email],
  );
  assert.deepEqual(made.myPermissions, [Perm.READ, Perm.WRITE, Perm.DELETE]);
  assert.deepEqual(await user.call.getAttr({ path: "/docs/a.txt" }), made);
  const directory = await user.call.getAttr({ path: "/docs/" });
  assert.deepEqual(
    [directory.kind, directory.size, directory.childCount, directory.path],
    [Kind.DIRECTORY, 5n, 1n, "/docs"],
  );
  assert.equal(made.parentId, directory.id);
  const root = await user.call.getAttr({ path: "/", root: user.email.toUpperCase() });
  assert.deepEqual([root.name, root.path, root.parentId, root.size], ["", "/", "", 5n]);
});

test("names are the same in NFC and NFD (D13)", async () => {
  const user = await newUser();
  await user.call.createFile({ path: "/caf\u0065\u0301" });
  assert.equal((await user.call.getAttr({ path: "/caf\u00e9" })).name, "caf\u00e9");
  assert.equal(await reasonOf(user.call.createFile({ path: "/caf\u00e9" })), "PATH_EXISTS");
});

test("bad requests get the answers of D1 and change nothing", async (t) => {
  const user = await newUser();
  await user.call.createDirectory({ path: "/d" });
  await user.call.createFile({ path: "/d/f", data: Buffer.from("x") });
  const rows: [string, () => Promise<unknown>, number, string][] = [
    ["a file again", () => user.call.createFile({ path: "/d/f" }), Code.ALREADY_EXISTS, "PATH_EXISTS"],
    [
      "a directory again",
      () => user.call.createDirectory({ path: "/d" }),
      Code.ALREADY_EXISTS,
      "PATH_EXISTS",
    ],
    [
      "the root directory",
      () => user.call.createDirectory({ path: "/" }),
      Code.ALREADY_EXISTS,
      "PATH_EXISTS",
    ],
    [
      "a file below a file",
      () => user.call.createFile({ path: "/d/f/g" }),
      Code.FAILED_PRECONDITION,
      "NOT_DIRECTORY",
    ],
    ["a file in no directory", () => user.call.createFile({ path: "/no/g" }), Code.NOT_FOUND, "NO_SUCH_PATH"],
    [
      "65,537 bytes",
      () => user.call.createFile({ path: "/g", data: Buffer.alloc(65_537) }),
      Code.INVALID_ARGUMENT,
      "BAD_ARGUMENT",
    ],
    ["what is not there", () => user.call.getAttr({ path: "/no" }), Code.NOT_FOUND, "NO_SUCH_PATH"],
    ["below a file", () => user.call.getAttr({ path: "/d/f/g" }), Code.NOT_FOUND, "NO_SUCH_PATH"],
    ["an empty path", () => user.call.getAttr({ path: "" }), Code.INVALID_ARGUMENT, "BAD_ARGUMENT"],
    ["two slashes", () => user.call.getAttr({ path: "/d//f" }), Code.INVALID_ARGUMENT, "BAD_NAME"],
    ["a dot", () => user.call.getAttr({ path: "/d/." }), Code.INVALID_ARGUMENT, "BAD_NAME"],
    [
      "a path above 4096 bytes",
      () => user.call.getAttr({ path: `/${"a/".repeat(2_048)}` }),
      Code.INVALID_ARGUMENT,
      "BAD_ARGUMENT",
    ],
    [
      "a root that is no user",
      () => user.call.getAttr({ path: "/", root: "x" }),
      Code.INVALID_ARGUMENT,
      "BAD_ARGUMENT",
    ],
    ["listing a file", () => user.call.listDir({ path: "/d/f" }), Code.FAILED_PRECONDITION, "NOT_DIRECTORY"],
    [
      "a page of 1001",
      () => user.call.listDir({ path: "/", pageSize: 1_001 }),
      Code.INVALID_ARGUMENT,
      "BAD_ARGUMENT",
    ],
    [
      "a foreign page token",
      () => user.call.listDir({ path: "/", pageToken: "abc" }),
      Code.INVALID_ARGUMENT,
      "BAD_ARGUMENT",
    ],
    [
      "an unknown order",
      () => user.call.listDir({ path: "/", sort: 99 as Sort }),
      Code.INVALID_ARGUMENT,
      "BAD_ARGUMENT",
    ],
    [
      "entering a file",
      () => user.call.changeDir({ path: "/d/f" }),
      Code.FAILED_PRECONDITION,
      "NOT_DIRECTORY",
    ],
    [
      "reading a directory",
      () => user.call.readFile({ path: "/d" }),
      Code.FAILED_PRECONDITION,
      "IS_DIRECTORY",
    ],
    [
      "reading behind the end",
      () => user.call.readFile({ path: "/d/f", offset: 2n }),
      Code.INVALID_ARGUMENT,
      "BAD_ARGUMENT",
    ],
    [
      "reading 4,000,001 bytes",
      () => user.call.readFile({ path: "/d/f", length: 4_000_001 }),
      Code.INVALID_ARGUMENT,
      "BAD_ARGUMENT",
    ],
    [
      "writing a directory",
      () => user.call.writeFile({ path: "/d", data: Buffer.from("x") }),
      Code.FAILED_PRECONDITION,
      "IS_DIRECTORY",
    ],
    [
      "writing at 2^64 - 1",
      () => user.call.writeFile({ path: "/d/f", offset: 2n ** 64n - 1n, data: Buffer.from("x") }),
      Code.INVALID_ARGUMENT,
      "BAD_ARGUMENT",
    ],
    [
      "writing another version",
      () => user.call.writeFile({ path: "/d/f", ifMatch: "x", data: Buffer.from("x") }),
      Code.FAILED_PRECONDITION,
      "ETAG_MISMATCH",
    ],
    [
      "deleting a full directory",
      () => user.call.deleteFile({ path: "/d" }),
      Code.FAILED_PRECONDITION,
      "NOT_EMPTY",
    ],
    [
      "deleting the root",
      () => user.call.deleteFile({ path: "/", recursive: true }),
      Code.INVALID_ARGUMENT,
      "BAD_ARGUMENT",
    ],
    [
      "moving the root",
      () => user.call.rename({ path: "/", targetPath: "/d/r" }),
      Code.INVALID_ARGUMENT,
      "BAD_ARGUMENT",
    ],
    [
      "moving onto a name that is taken",
      () => user.call.rename({ path: "/d/f", targetPath: "/d" }),
      Code.ALREADY_EXISTS,
      "PATH_EXISTS",
    ],
    [
      "moving a directory into itself",
      () => user.call.rename({ path: "/d", targetPath: "/d/e" }),
      Code.INVALID_ARGUMENT,
      "BAD_ARGUMENT",
    ],
    [
      "moving into no directory",
      () => user.call.rename({ path: "/d/f", targetPath: "/no/f" }),
      Code.NOT_FOUND,
      "NO_SUCH_PATH",
    ],
  ];
  const before = await user.call.getAttr({ path: "/" });
  for (const [what, call, code, reason] of rows) {
    await t.test(what, async () => {
      const refused = await refusal(call());
      assert.deepEqual([refused.code, refused.reason], [code, reason]);
    });
  }
  assert.deepEqual(await user.call.getAttr({ path: "/" }), before);
});

test("strangers get the same answer for what exists and for what does not, to every operation (D1)", async () => {
  const [owner, stranger] = [await newUser(), await newUser()];
  await owner.call.createDirectory({ path: "/d" });
  await owner.call.createFile({ path: "/d/f", data: Buffer.from("x") });
  const operations: [string, (place: { root: string; path: string }) => Promise<unknown>][] = [
    ["NOT_SHARED", (place) => stranger.call.getAttr(place)],
    ["NOT_SHARED", (place) => stranger.call.listDir(place)],
    ["NOT_SHARED", (place) => stranger.call.changeDir(place)],
    ["NOT_SHARED", (place) => stranger.call.readFile(place)],
    ["NOT_SHARED", (place) => stranger.call.writeFile({ ...place, data: Buffer.from("x") })],
    ["NOT_SHARED", (place) => stranger.call.createFile(place)],
    ["NOT_SHARED", (place) => stranger.call.createDirectory(place)],
    ["NOT_OWNER", (place) => stranger.call.deleteFile(place)],
    ["NOT_SHARED", (place) => stranger.call.rename({ ...place, targetPath: "/x" })],
    ["NOT_SHARED", (place) => stranger.download(place)],
    ["NOT_SHARED", (place) => stranger.upload(parts(place.path, Buffer.from("x"), 5, { root: place.root }))],
    ["NOT_SHARED", (place) => stranger.call.getQuota({ root: place.root })],
  ];
  for (const [reason, operation] of operations) {
    const answers = new Set<string>();
    for (const root of [owner.email, "nobody@example.com"]) {
      for (const path of ["/d", "/d/f", "/no", "/d/f/x"]) {
        const refused = await refusal(operation({ root, path }));
        assert.equal(refused.code, Code.PERMISSION_DENIED);
        answers.add(
          `${refused.reason} ${refused.message} ${JSON.stringify([...refused.error.metadata.entries()].filter(([name]) => name !== REQUEST_ID_HEADER))}`,
        );
      }
    }
    assert.equal(answers.size, 1);
    assert.ok([...answers][0]?.startsWith(reason));
  }
});

test("a listing has every entry once, in the wanted order, over pages of any size (D13)", async () => {
  const user = await newUser();
  const names = Array.from({ length: 25 }, (_, i) => `f${String(i).padStart(2, "0")}`);
  await Promise.all(
    names.map((name, i) => user.call.createFile({ path: `/${name}`, data: Buffer.alloc(25 - i) })),
  );
  for (const [sort, wanted] of [
    [Sort.NAME, names],
    [Sort.NAME_DESC, names.toReversed()],
    [Sort.SIZE, names.toReversed()],
    [Sort.SIZE_DESC, names],
  ] as const) {
    for (const pageSize of [0, 1, 7, 25]) {
      const listed: string[] = [];
      let pageToken = "";
      do {
        const page = await user.call.listDir({ path: "/", pageSize, pageToken, sort });
        listed.push(...page.entries.map((entry) => entry.name));
        for (const entry of page.entries) assert.equal(entry.path, `/${entry.name}`);
        pageToken = page.nextPageToken;
      } while (pageToken !== "");
      assert.deepEqual(listed, wanted);
    }
  }
});

test("a rename keeps the inode, moves the sizes, and does with a taken name what it was told (D13)", async () => {
  const user = await newUser();
  await user.call.createDirectory({ path: "/a" });
  await user.call.createDirectory({ path: "/b" });
  const made = await user.call.createFile({ path: "/a/f", data: Buffer.from("12345") });
  const moved = await user.call.rename({ path: "/a/f", targetPath: "/b/g" });
  assert.deepEqual([moved.id, moved.path, moved.name], [made.id, "/b/g", "g"]);
  assert.deepEqual(
    [(await user.call.getAttr({ path: "/a" })).size, (await user.call.getAttr({ path: "/b" })).size],
    [0n, 5n],
  );
  await user.call.createFile({ path: "/b/h", data: Buffer.from("123") });
  assert.equal(await reasonOf(user.call.rename({ path: "/b/g", targetPath: "/b/h" })), "PATH_EXISTS");
  const free = await user.call.rename({ path: "/b/g", targetPath: "/b/h", onConflict: OnConflict.RENAME });
  assert.notEqual(free.name, "h");
  assert.equal(free.path, `/b/${free.name}`);
  const replaced = await user.call.rename({
    path: free.path,
    targetPath: "/b/h",
    onConflict: OnConflict.REPLACE,
  });
  assert.deepEqual([replaced.id, replaced.path], [made.id, "/b/h"]);
  assert.equal((await user.call.getQuota({})).usedBytes, 5n);
  assert.equal((await user.call.rename({ path: "/b/h", targetPath: "/b/h" })).etag, replaced.etag);
});

test("DeleteFile says what it freed, and works over quota (D14)", async () => {
  const user = await newUser();
  await user.call.createDirectory({ path: "/d" });
  for (let i = 0; i < 3; i++) await user.call.createFile({ path: `/d/${i}`, data: randomBytes(100) });
  const freed = await user.call.deleteFile({ path: "/d", recursive: true });
  assert.deepEqual([freed.freedBytes, freed.inodeCount], [300n, 4n]);
  assert.equal((await user.call.getQuota({})).usedBytes, 0n);
});

test("ReadFile and WriteFile work on ranges, and every change has another etag (D15)", async () => {
  const user = await newUser();
  const data = randomBytes(5_000_000);
  const { attr } = await user.upload(parts("/f", data, 4_000_000));
  const read = await user.call.readFile({ path: "/f", offset: 3_999_000n, length: 2_000 });
  assert.ok(Buffer.from(read.data).equals(data.subarray(3_999_000, 4_001_000)));
  assert.equal((await user.call.readFile({ path: "/f" })).data.length, 4_000_000);
  assert.equal((await user.call.readFile({ path: "/f", offset: 5_000_000n })).data.length, 0);
  const wholeFrom = async (offset: bigint, length: number): Promise<number> =>
    (await user.call.readFile({ path: "/f", offset, length, whole: true })).data.length;
  assert.deepEqual([await wholeFrom(4_999_000n, 1_000), await wholeFrom(4_998_999n, 1_000)], [1_000, 0]);
  const patch = randomBytes(3_000);
  const written = await user.call.writeFile({
    path: "/f",
    offset: 3_999_000n,
    data: patch,
    ifMatch: attr?.etag ?? "",
  });
  patch.copy(data, 3_999_000);
  assert.notEqual(written.etag, attr?.etag);
  assert.equal(written.crc32, crc32(data));
  const grown = await user.call.writeFile({ path: "/f", offset: 5_000_010n, data: Buffer.from("x") });
  assert.equal(grown.size, 5_000_011n);
  assert.deepEqual(
    [...(await user.call.readFile({ path: "/f", offset: 4_999_999n })).data.subarray(1)],
    [...Buffer.alloc(10), 120],
  );
});

test("writes at the same time to one file all count what they grew it by, to the byte (D16)", async () => {
  const user = await newUser();
  await user.call.createFile({ path: "/f" });
  await Promise.all(
    Array.from({ length: 20 }, (_, i) =>
      user.call.writeFile({ path: "/f", offset: BigInt(i * 100), data: randomBytes(100) }),
    ),
  );
  assert.equal((await user.call.getAttr({ path: "/f" })).size, 2_000n);
  assert.equal((await user.call.getQuota({})).usedBytes, 2_000n);
  assert.equal(node.node.service.ledger.promisedBytes, 0n);
});
