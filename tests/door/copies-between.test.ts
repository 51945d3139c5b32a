// Tests copies from one person's root over what another shares: as far as an upload there may go.
import assert from "node:assert/strict";
import { test } from "node:test";
import { isGroveError } from "#base/errors.ts";
import { INLINE_FILE_MAX_BYTES } from "#base/limits.ts";
import { pulled } from "#door/tree/downloads.ts";
import type { DavTree, PropertyChange, WriteWish } from "#door/webdav/resource.ts";
import { startTreeNode } from "./tree.fixture.ts";

const ALICE = "alice@example.com";
const BOB = "bob@example.com";
const ANY: WriteWish = { size: undefined, ifMatch: undefined, mustBeNew: false, changedMs: 0 };

async function put(tree: DavTree, path: readonly string[], text: string): Promise<void> {
  const body = async function* (): AsyncGenerator<Uint8Array> {
    yield Buffer.from(text);
  };
  await tree.write(path, body(), ANY, []);
}

async function get(tree: DavTree, path: readonly string[]): Promise<string> {
  const { etag, size } = (await tree.look(path)) ?? assert.fail(`nothing is at ${path.join("/")}`);
  let text = "";
  for await (const part of pulled((take) => tree.read(path, etag, { start: 0, end: size }, take)))
    text += String(part);
  return text;
}

const property = (name: string): PropertyChange => ({
  kind: "set",
  property: { namespace: "urn:x", name, xml: `<${name} xmlns="urn:x">1</${name}>` },
});

const codeOf = (call: Promise<unknown>): Promise<string> =>
  call.then(
    () => "none",
    (error: unknown) => (isGroveError(error) ? error.code : String(error)),
  );

test("who is shared a folder copies an own file over one in it, and no folder, since only its owner removes", async (t) => {
  const { node, tree } = await startTreeNode(t);
  const owner = await node.signIn(ALICE);
  for (const path of ["/team", "/team/folder"]) await owner.call.createDirectory({ path });
  await owner.call.createFile({ path: "/team/f", data: Buffer.from("old") });
  await owner.call.share({ path: "/team", user: BOB });
  const alice = tree(ALICE);
  await alice.changeProperties(["team", "f"], [property("former")], []);
  const bob = tree(BOB, [{ owner: ALICE, path: "/team" }]);
  const team = ["Shared with me", ALICE, "team"];
  const over = { to: [...team, "f"], mayReplace: true };
  await bob.makeCollection(["d"], []);
  for (const text of ["new", "larger".repeat(INLINE_FILE_MAX_BYTES / 4)]) {
    await put(bob, ["mine"], text);
    await bob.changeProperties(["mine"], [property("own")], []);
    await bob.copy(["mine"], over, true, { tokens: [] });
    assert.equal(await get(alice, ["team", "f"]), text);
    const names = (await alice.properties(["team", "f"])).map(({ name }) => name);
    assert.deepEqual(names, ["own"], "those of the source, as after a removal (RFC 4918, section 9.8.4)");
  }
  const { etag = "" } = (await bob.look(over.to)) ?? {};
  const stale = { ...over, ifMatch: `${etag}0` };
  assert.equal(await codeOf(bob.copy(["mine"], stale, true, { tokens: [] })), "ETAG_MISMATCH");
  const toFolder = { to: [...team, "folder"], mayReplace: true };
  for (const [source, target] of [
    ["mine", toFolder],
    ["d", toFolder],
    ["d", over],
  ] as const) {
    assert.equal(await codeOf(bob.copy([source], target, true, { tokens: [] })), "NOT_OWNER", source);
  }
  const wish = { scope: "exclusive", isDeep: false, owner: "", seconds: 60 } as const;
  await alice.lock(["team", "f"], wish, []);
  assert.equal(await codeOf(bob.copy(["mine"], over, true, { tokens: [] })), "LOCKED");
});

test("a folder that does not fit when it is copied from another's root leaves nothing, and no half of it", async (t) => {
  const { node, tree } = await startTreeNode(t, { env: { SVC_ADMIN_EMAIL: "administrator@example.com" } });
  const owner = await node.signIn(ALICE);
  await owner.call.createDirectory({ path: "/team" });
  for (const path of ["/team/1", "/team/2"]) {
    await owner.call.createFile({ path, data: Buffer.alloc(INLINE_FILE_MAX_BYTES) });
  }
  await owner.call.share({ path: "/team", user: BOB });
  await node.signIn(BOB);
  const administrator = await node.signIn("administrator@example.com");
  const bob = tree(BOB, [{ owner: ALICE, path: "/team" }]);
  const copy = (): Promise<void> => {
    const target = { to: ["mine"], mayReplace: true };
    return bob.copy(["Shared with me", ALICE, "team"], target, true, { tokens: [] });
  };
  for (const [files, refusal, names, used] of [
    [1, "QUOTA_EXCEEDED", ["Shared with me"], 0],
    [2, "none", ["mine", "Shared with me"], 2 * INLINE_FILE_MAX_BYTES],
  ] as const) {
    const quotaBytes = BigInt(files * INLINE_FILE_MAX_BYTES + 100);
    await administrator.call.setQuota({ username: BOB, quotaBytes });
    assert.equal(await codeOf(copy()), refusal);
    const there: (string | undefined)[] = [];
    for await (const page of bob.list([])) there.push(...page.map(({ path }) => path.at(-1)));
    assert.deepEqual(there, names);
    assert.equal((await bob.quota([]))?.used, used);
  }
});

test("a sharee's folder that does not fit into another's quota is refused before any of it is there", async (t) => {
  const { node, tree } = await startTreeNode(t, { env: { SVC_ADMIN_EMAIL: "administrator@example.com" } });
  const owner = await node.signIn(ALICE);
  await owner.call.createDirectory({ path: "/team" });
  await owner.call.share({ path: "/team", user: BOB });
  const sharee = await node.signIn(BOB);
  await sharee.call.createDirectory({ path: "/d" });
  for (const path of ["/d/1", "/d/2"]) {
    await sharee.call.createFile({ path, data: Buffer.alloc(INLINE_FILE_MAX_BYTES) });
  }
  const administrator = await node.signIn("administrator@example.com");
  const bob = tree(BOB, [{ owner: ALICE, path: "/team" }]);
  const team = ["Shared with me", ALICE, "team"];
  const copy = (): Promise<void> =>
    bob.copy(["d"], { to: [...team, "d"], mayReplace: true }, true, { tokens: [] });
  for (const [files, refusal, isThere] of [
    [1, "QUOTA_EXCEEDED", false],
    [2, "none", true],
  ] as const) {
    const quotaBytes = BigInt(files * INLINE_FILE_MAX_BYTES + 100);
    await administrator.call.setQuota({ username: ALICE, quotaBytes });
    assert.equal(await codeOf(copy()), refusal);
    assert.equal((await bob.look([...team, "d"])) !== undefined, isThere);
  }
});
