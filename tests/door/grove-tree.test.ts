// Tests a door's tree over a real FileServer: bodies, conditions, quota, shares, locks.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { isGroveError } from "#base/errors.ts";
import { pulled } from "#door/tree/downloads.ts";
import type { ChangeTerms, DavResource, DavTree, WriteWish } from "#door/webdav/resource.ts";
import { until } from "#testing/until.ts";
import { startTreeNode } from "./tree.fixture.ts";

const ALICE = "alice@example.com";
const BOB = "bob@example.com";
const FREELY: ChangeTerms = { tokens: [] };
const ANY: WriteWish = { size: undefined, ifMatch: undefined, mustBeNew: false, changedMs: 0 };

async function* bodyOf(...parts: Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* parts;
}

const put = (tree: DavTree, path: readonly string[], data: Uint8Array, wish: Partial<WriteWish> = {}) =>
  tree.write(path, bodyOf(data), { ...ANY, ...wish }, []);

const read = (tree: DavTree, path: readonly string[], etag: string, start: number, end: number) =>
  pulled((take) => tree.read(path, etag, { start, end }, take));

async function bytesOf(stream: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  for await (const part of stream) parts.push(part);
  return Buffer.concat(parts);
}

async function namesIn(tree: DavTree, path: readonly string[]): Promise<string[]> {
  const names: string[] = [];
  for await (const page of tree.list(path)) {
    for (const { path: at, isCollection } of page) names.push(`${at.at(-1)}${isCollection ? "/" : ""}`);
  }
  return names;
}

async function seen(tree: DavTree, path: readonly string[]): Promise<DavResource> {
  return (await tree.look(path, true)) ?? assert.fail(`nothing is at ${path.join("/")}`);
}

const codeOf = async (call: Promise<unknown>): Promise<string> => {
  try {
    await call;
  } catch (error) {
    if (isGroveError(error)) return error.code;
    if (error instanceof Error && "status" in error) return String(error.status);
    throw error;
  }
  return "none";
};

test("bodies of known and unknown size arrive whole, with their time, and are read by ranges", async (t) => {
  const tree = (await startTreeNode(t)).tree(ALICE);
  for (const size of [0, 1, 65_536, 65_537, 262_144, 1_000_003]) {
    const data = randomBytes(size);
    for (const wish of [{ size }, {}, { changedMs: 1_700_000_000_123 }]) {
      const written = await put(tree, ["f"], data, wish);
      assert.equal(written.size, size);
      if (wish.changedMs !== undefined) assert.equal(written.changedMs, wish.changedMs);
      const { etag } = await seen(tree, ["f"]);
      assert.deepEqual(await bytesOf(read(tree, ["f"], etag, 0, size)), data);
      if (size > 10)
        assert.deepEqual(await bytesOf(read(tree, ["f"], etag, 3, size - 4)), data.subarray(3, size - 4));
    }
  }
  const { etag } = await seen(tree, ["f"]);
  await put(tree, ["f"], Buffer.from("new"));
  assert.equal(await codeOf(bytesOf(read(tree, ["f"], etag, 0, 10))), "ETAG_MISMATCH");
});

test("conditions hold: a version that is no more, and a name that is taken, are refused", async (t) => {
  const tree = (await startTreeNode(t)).tree(ALICE);
  const first = await put(tree, ["f"], Buffer.from("1"), { size: 1, mustBeNew: true });
  assert.equal(await codeOf(put(tree, ["f"], Buffer.from("2"), { size: 1, mustBeNew: true })), "PATH_EXISTS");
  const second = await put(tree, ["f"], Buffer.from("2"), { size: 1, ifMatch: first.etag });
  assert.equal(
    await codeOf(put(tree, ["f"], Buffer.from("3"), { size: 1, ifMatch: first.etag })),
    "ETAG_MISMATCH",
  );
  assert.equal((await seen(tree, ["f"])).etag, second.etag);
});

test("a body over the quota is refused before its first byte; one that breaks off leaves the old file", async (t) => {
  const { node, tree } = await startTreeNode(t, {
    env: { SVC_ADMIN_EMAIL: "administrator@example.com" },
  });
  const alice = tree(ALICE);
  await put(alice, ["f"], Buffer.from("old"));
  const administrator = await node.signIn("administrator@example.com");
  await administrator.call.setQuota({ username: ALICE, quotaBytes: 1_000_000n });
  let taken = 0;
  async function* body(): AsyncGenerator<Uint8Array> {
    taken++;
    yield await Promise.resolve(randomBytes(1_000_000));
  }
  const large = { ...ANY, size: 1_000_000 };
  assert.equal(await codeOf(alice.write(["f"], body(), large, [])), "QUOTA_EXCEEDED");
  assert.equal(taken, 0);
  assert.equal(await codeOf(alice.write(["f"], body(), ANY, [])), "QUOTA_EXCEEDED");
  assert.equal(taken, 1);
  async function* broken(): AsyncGenerator<Uint8Array> {
    yield await Promise.resolve(randomBytes(400_000));
    throw new Error("the client has gone");
  }
  await assert.rejects(alice.write(["f"], broken(), ANY, []), /the client has gone/u);
  const { etag } = await seen(alice, ["f"]);
  assert.equal(String(await bytesOf(read(alice, ["f"], etag, 0, 3))), "old");
  await until(async () => {
    const { used = -1, available = -1 } = (await alice.quota([])) ?? {};
    return used === 3 && available === 999_997;
  });
});

test("folders are listed whole, moved, copied and removed into the trash", async (t) => {
  const { node, tree } = await startTreeNode(t);
  const alice = tree(ALICE);
  await alice.makeCollection(["d"], []);
  for (let index = 0; index < 3; index++) await put(alice, ["d", `f${index}`], Buffer.from(`${index}`));
  await alice.copy(["d"], { to: ["c"], mayReplace: false }, true, FREELY);
  await alice.copy(["d"], { to: ["shallow"], mayReplace: false }, false, FREELY);
  assert.deepEqual(await namesIn(alice, []), ["c/", "d/", "shallow/"]);
  assert.deepEqual(await namesIn(alice, ["c"]), ["f0", "f1", "f2"]);
  assert.deepEqual(await namesIn(alice, ["shallow"]), []);
  await alice.move(["d", "f0"], { to: ["d", "f1"], mayReplace: true }, FREELY);
  assert.deepEqual(await namesIn(alice, ["d"]), ["f1", "f2"]);
  // A folder in the way goes to the trash, so that a slip can be undone.
  await alice.move(["d"], { to: ["c"], mayReplace: true }, FREELY);
  await alice.remove(["shallow"], FREELY);
  assert.deepEqual(await namesIn(alice, []), ["c/"]);
  const { items } = await (await node.signIn(ALICE)).call.showTrash({});
  assert.deepEqual(items.map(({ originalPath }) => originalPath).toSorted(), ["/c", "/shallow"]);
});

test("a change that slips in between a look and a removal, move or copy is not lost (RFC 9110, 13.2)", async (t) => {
  const { node, tree } = await startTreeNode(t);
  const other = await node.signIn(ALICE);
  let slip = async (): Promise<unknown> => undefined;
  const alice = tree(ALICE, [], async () => void (await slip()));
  for (const name of ["a", "b"]) await put(alice, [name], Buffer.from(name), { size: 1 });
  const tokens: readonly string[] = [];
  const change = (path: string) => () => other.call.writeFile({ path, data: Buffer.from("new") });
  const held = async (name: string): Promise<ChangeTerms> => ({
    tokens,
    ifMatch: (await seen(alice, [name])).etag,
  });

  slip = change("/a");
  const target = { to: ["c"], mayReplace: true };
  assert.equal(await codeOf(alice.remove(["a"], await held("a"))), "ETAG_MISMATCH");
  assert.equal(await codeOf(alice.move(["a"], target, await held("a"))), "ETAG_MISMATCH");
  assert.equal(await codeOf(alice.copy(["a"], target, true, await held("a"))), "ETAG_MISMATCH");
  slip = change("/b");
  const replaced = async () => ({ to: ["b"], mayReplace: true, ifMatch: (await seen(alice, ["b"])).etag });
  assert.equal(await codeOf(alice.move(["a"], await replaced(), FREELY)), "ETAG_MISMATCH");
  assert.equal(await codeOf(alice.copy(["a"], await replaced(), true, FREELY)), "ETAG_MISMATCH");
  await other.call.createDirectory({ path: "/d" });
  assert.equal(await codeOf(alice.copy(["d"], await replaced(), true, FREELY)), "ETAG_MISMATCH");
  assert.deepEqual(await namesIn(alice, []), ["a", "b", "d/"]);

  // A folder that was to make way is there as before.
  await other.call.createFile({ path: "/d/kept", data: Buffer.from("kept") });
  for (const put of ["move", "copy"] as const) {
    slip = change("/a");
    const [over, terms] = [{ to: ["d"], mayReplace: true }, await held("a")];
    const failing = put === "move" ? alice.move(["a"], over, terms) : alice.copy(["a"], over, true, terms);
    assert.equal(await codeOf(failing), "ETAG_MISMATCH");
    assert.deepEqual(await namesIn(alice, ["d"]), ["kept"]);
  }

  // Overwrite: F, and something comes there meanwhile.
  const unused = { to: ["c"], mayReplace: false };
  slip = () => other.call.createFile({ path: "/c", data: Buffer.from("mine") }).catch(() => undefined);
  assert.equal(await codeOf(alice.move(["a"], unused, FREELY)), "PATH_EXISTS");
  assert.equal(await codeOf(alice.copy(["a"], unused, true, FREELY)), "PATH_EXISTS");
  assert.equal(String((await other.call.readFile({ path: "/c" })).data), "mine");

  slip = async () => undefined;
  const taken = { to: ["c"], mayReplace: true, ifMatch: (await seen(alice, ["c"])).etag };
  await alice.move(["a"], taken, await held("a"));
  await alice.remove(["c"], await held("c"));
  assert.deepEqual(await namesIn(alice, []), ["b", "d/"]);
});

test("a copy or move that fails leaves the folder that it was to replace as it is, with its shares, and nothing beside", async (t) => {
  const { node, tree } = await startTreeNode(t, {
    env: { SVC_ADMIN_EMAIL: "administrator@example.com" },
  });
  let slip = async (): Promise<unknown> => undefined;
  const alice = tree(ALICE, [], async () => void (await slip()));
  const owner = await node.signIn(ALICE);
  for (const path of ["/team", "/large"]) await owner.call.createDirectory({ path });
  await put(alice, ["large", "f"], randomBytes(600_000));
  await owner.call.share({ path: "/team", user: BOB });
  const administrator = await node.signIn("administrator@example.com");
  const setQuota = (quotaBytes: bigint) => administrator.call.setQuota({ username: ALICE, quotaBytes });
  const over = { to: ["team"], mayReplace: true };
  const assertKept = async (): Promise<void> => {
    assert.deepEqual(await namesIn(alice, []), ["large/", "team/"]);
    const { shares } = await owner.call.listShares({ path: "/" });
    assert.deepEqual(
      shares.map(({ path, user }) => `${path} ${user}`),
      [`/team ${BOB}`],
    );
  };
  await setQuota(1_000_000n);
  assert.equal(await codeOf(alice.copy(["large"], over, true, FREELY)), "QUOTA_EXCEEDED");
  await assertKept();
  await setQuota(10_000_000n);
  // What is there has another version by the last step, the only one that is not made twice.
  for (const act of ["move", "copy", "shallow copy"] as const) {
    let changes = 0;
    const { etag: ifMatch } = await seen(alice, ["team"]);
    slip = async () => (++changes === 1 ? owner.call.createDirectory({ path: `/team/${act}` }) : undefined);
    const target = { ...over, ifMatch };
    const failing =
      act === "move"
        ? alice.move(["large"], target, FREELY)
        : alice.copy(["large"], target, act === "copy", FREELY);
    assert.equal(await codeOf(failing), "ETAG_MISMATCH", act);
    slip = async () => undefined;
    await assertKept();
  }
  await alice.copy(["large"], over, true, FREELY);
  assert.deepEqual(await namesIn(alice, ["team"]), ["f"]);
  await alice.copy(["large"], over, false, FREELY);
  assert.deepEqual(await namesIn(alice, ["team"]), []);
  assert.deepEqual(await namesIn(alice, []), ["large/", "team/"]);
});

test("what replaces a folder that was taken out of a share is taken out as well, by a copy and by a move", async (t) => {
  const { node, tree } = await startTreeNode(t);
  const [owner, sharee] = [await node.signIn(ALICE), await node.signIn(BOB)];
  for (const path of ["/team", "/team/own", "/new"]) await owner.call.createDirectory({ path });
  await owner.call.share({ path: "/team", user: BOB });
  await owner.call.unshare({ path: "/team/own", user: BOB });
  const alice = tree(ALICE);
  const over = { to: ["team", "own"], mayReplace: true };
  const look = { root: ALICE, path: "/team/own" };
  for (const put of [
    () => alice.copy(["new"], over, true, FREELY),
    () => alice.copy(["new"], over, false, FREELY),
    () => alice.move(["new"], over, FREELY),
  ]) {
    await put();
    await assert.rejects(sharee.call.getAttr(look), /permission denied/);
  }
});

test("what others share lies in one folder, by owner, and is copied into one's own root", async (t) => {
  const { node, tree } = await startTreeNode(t);
  const owner = await node.signIn(ALICE);
  await owner.call.createDirectory({ path: "/work" });
  await owner.call.createDirectory({ path: "/work/team" });
  await owner.call.createDirectory({ path: "/work/team/in" });
  await owner.call.createFile({ path: "/work/team/in/f", data: Buffer.from("text") });
  await owner.call.createFile({ path: "/work/secret", data: Buffer.from("text") });
  await owner.call.share({ path: "/work/team", user: BOB });
  const bob = tree(BOB, [{ owner: ALICE, path: "/work/team" }]);
  const folder = "Shared with me";
  assert.deepEqual(await namesIn(bob, []), [`${folder}/`]);
  assert.deepEqual(await namesIn(bob, [folder]), [`${ALICE}/`]);
  assert.deepEqual(await namesIn(bob, [folder, ALICE]), ["work/"]);
  assert.deepEqual(await namesIn(bob, [folder, ALICE, "work"]), ["team/"]);
  const team = [folder, ALICE, "work", "team"];
  assert.deepEqual(await namesIn(bob, team), ["in/"]);
  assert.equal(await bob.look([folder, ALICE, "work", "secret"]), undefined);
  assert.equal(await bob.look([folder, "carol@example.com"]), undefined);
  assert.equal(await codeOf(bob.makeCollection([folder, ALICE, "work", "new"], [])), "403");

  await bob.copy([...team, "in"], { to: ["mine"], mayReplace: false }, true, FREELY);
  const { etag } = await seen(bob, ["mine", "f"]);
  assert.equal(String(await bytesOf(read(bob, ["mine", "f"], etag, 0, 4))), "text");
  assert.equal((await bob.quota([]))?.used, 4);
  assert.equal(await codeOf(bob.move([...team, "in"], { to: ["moved"], mayReplace: false }, FREELY)), "403");

  const { lock } = await bob.lock(
    [...team, "in", "f"],
    { scope: "exclusive", isDeep: false, owner: "Bob", seconds: 60 },
    [],
  );
  assert.deepEqual(lock.root, [...team, "in", "f"]);
  assert.equal((await seen(bob, lock.root)).locks[0]?.token, lock.token);
  // A folder of that name of one's own keeps its name.
  await (await node.signIn(BOB)).call.createDirectory({ path: `/${folder}` });
  assert.deepEqual(await namesIn(bob, []), [`${folder}/`, "mine/", `${folder} (2)/`]);
  assert.deepEqual(await namesIn(bob, [`${folder} (2)`]), [`${ALICE}/`]);
});

test("what groups have lies in a folder of its own, by group, beside what others share", async (t) => {
  const { node, tree } = await startTreeNode(t);
  const owner = await node.signIn(ALICE);
  await owner.call.createDirectory({ path: "/plans" });
  await owner.call.share({ path: "/", user: BOB });
  const bob = tree(BOB, [
    { owner: ALICE, path: "/", project: "atlas" },
    { owner: ALICE, path: "/plans" },
  ]);
  assert.deepEqual(await namesIn(bob, []), ["Projects/", "Shared with me/"]);
  assert.deepEqual(await namesIn(bob, ["Projects"]), ["atlas/"]);
  assert.deepEqual(await namesIn(bob, ["Projects", "atlas"]), ["plans/"]);
  assert.deepEqual(await namesIn(bob, ["Shared with me"]), [`${ALICE}/`]);
  assert.equal(await bob.look(["Projects", ALICE]), undefined);
  assert.equal(await bob.look(["Shared with me", "atlas"]), undefined);
  await put(bob, ["Projects", "atlas", "plans", "f"], Buffer.from("text"));
  assert.equal((await bob.quota(["Projects", "atlas"]))?.used, 4);
  assert.equal((await bob.quota([]))?.used, 0);
  assert.equal(await codeOf(bob.makeCollection(["Projects", "new"], [])), "403");
  // A folder of that name of one's own keeps its name.
  await bob.makeCollection(["Projects (2)"], []);
  await (await node.signIn(BOB)).call.createDirectory({ path: "/Projects" });
  assert.deepEqual(await namesIn(bob, []), [
    "Projects/",
    "Projects (2)/",
    "Projects (3)/",
    "Shared with me/",
  ]);
  assert.deepEqual(await namesIn(bob, ["Projects (3)"]), ["atlas/"]);
});

test("locks are seen in a listing, hold against others, and pass by their token", async (t) => {
  const { node, tree } = await startTreeNode(t);
  const alice = tree(ALICE);
  await alice.makeCollection(["d"], []);
  const wish = { scope: "exclusive", isDeep: false, owner: "Alice", seconds: 60 } as const;
  const { lock, hasMadeFile } = await alice.lock(["d", "f"], wish, []);
  assert.equal(hasMadeFile, true);
  for await (const page of alice.list(["d"]))
    assert.deepEqual(
      page.map(({ locks }) => locks.map(({ token }) => token)),
      [[lock.token]],
    );
  assert.equal(await codeOf(put(alice, ["d", "f"], Buffer.from("x"))), "LOCKED");
  const cli = await node.signIn(ALICE);
  await assert.rejects(cli.call.writeFile({ path: "/d/f", data: Buffer.from("x") }), /locked by/u);
  await alice.write(["d", "f"], bodyOf(Buffer.from("x")), ANY, ["urn:other", "b a d,", lock.token]);
  assert.equal((await alice.refreshLock(["d", "f"], lock.token, 30)).secondsLeft, 30);
  await alice.unlock(["d", "f"], lock.token);
  assert.equal(await codeOf(alice.unlock(["d", "f"], lock.token)), "NO_SUCH_LOCK");
  await put(alice, ["d", "f"], Buffer.from("y"));
});

test("a lock that is refused leaves no file where nothing was", async (t) => {
  const { tree } = await startTreeNode(t);
  const alice = tree(ALICE);
  const lock = (...path: string[]) =>
    alice.lock(path, { scope: "exclusive", isDeep: false, owner: "x".repeat(1_001), seconds: 60 }, []);
  assert.equal(await codeOf(lock("f")), "BAD_ARGUMENT");
  assert.equal(await codeOf(lock("none", "f")), "BAD_ARGUMENT");
  assert.deepEqual(await namesIn(alice, []), []);
});

test("a reader that leaves in the middle of a file ends the download", async (t) => {
  const { tree } = await startTreeNode(t);
  const alice = tree(ALICE);
  const size = 20_000_000;
  const { etag } = await put(alice, ["f"], randomBytes(size));
  for await (const part of read(alice, ["f"], etag, 0, size)) {
    assert.ok(part.length > 0);
    break;
  }
  // Its stream is free again: as many as a user may have are read one after another.
  for (let count = 0; count < 40; count++) {
    for await (const part of read(alice, ["f"], etag, 0, size)) if (part.length > 0) break;
  }
});

test("XML that would end the answer around it is refused by the FileServer, without a door too", async (t) => {
  const tree = (await startTreeNode(t)).tree(ALICE);
  await put(tree, ["f"], Buffer.from("1"));
  const named = (name: string, xml: string) =>
    ({ kind: "set", property: { namespace: "urn:x", name, xml } }) as const;
  const good = '<good xmlns="urn:x">a &amp; b</good>';
  await tree.changeProperties(["f"], [named("good", good)], []);
  const bad = [named("bad", '</D:prop><D:evil/><bad xmlns="urn:x"/>')];
  assert.equal(await codeOf(tree.changeProperties(["f"], bad, [])), "BAD_ARGUMENT");
  assert.deepEqual(
    (await tree.properties(["f"])).map(({ xml }) => xml),
    [good],
  );
  const lock = (owner: string) =>
    tree.lock(["f"], { scope: "exclusive", isDeep: false, owner, seconds: 60 }, []);
  assert.equal(await codeOf(lock("</D:owner><D:evil/>")), "BAD_ARGUMENT");
  await lock("<b>a &amp; b</b>");
  assert.equal((await seen(tree, ["f"])).locks[0]?.owner, '<b xmlns="">a &amp; b</b>');
});
