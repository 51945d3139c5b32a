// PUT of small files: a new one is made in one step, and everything else is what it is for large ones.
import assert from "node:assert/strict";
import { test } from "node:test";
import { serveTree } from "./litmus.fixture.ts";
import { MemoryTree } from "./memory-tree.fixture.ts";
import type { DavResource } from "./resource.ts";

/** A tree that counts what is asked of it. */
class CountingTree extends MemoryTree {
  looks = 0;

  override look(path: readonly string[], withLocks?: boolean): Promise<DavResource | undefined> {
    this.looks++;
    return super.look(path, withLocks);
  }
}

const LOCK =
  '<D:lockinfo xmlns:D="DAV:"><D:lockscope><D:exclusive/></D:lockscope><D:locktype><D:write/></D:locktype></D:lockinfo>';

test("a small new file is made without a look, and a larger or a conditional one after one", async (t) => {
  const tree = new CountingTree();
  const top = await serveTree(t, tree);
  const put = async (name: string, bytes: number, headers: Record<string, string> = {}): Promise<number> => {
    tree.looks = 0;
    const { status } = await fetch(top + name, { method: "PUT", headers, body: Buffer.alloc(bytes, name) });
    return status;
  };
  for (const bytes of [1, 65_536]) {
    assert.equal(await put(`a${bytes}`, bytes), 201);
    assert.equal(tree.looks, 0, `${bytes}`);
    assert.equal((await (await fetch(`${top}a${bytes}`)).bytes()).length, bytes);
  }
  assert.equal(await put("larger", 65_537), 201);
  assert.notEqual(tree.looks, 0);
  for (const [name, headers] of Object.entries({
    new: { "if-none-match": "*" },
    listed: { if: "(Not <urn:uuid:none>)" },
  })) {
    assert.equal(await put(name, 1, headers), 201, name);
    assert.notEqual(tree.looks, 0, name);
  }
});

test("a small file replaces another, and is refused where a large one is", async (t) => {
  const top = await serveTree(t, new MemoryTree());
  const put = async (name: string, body: string): Promise<number> =>
    (await fetch(top + name, { method: "PUT", body, headers: { "x-oc-mtime": "1700000000" } })).status;
  assert.equal(await put("a", "old"), 201);
  assert.equal(await put("a", "new"), 204);
  const answer = await fetch(`${top}a`);
  assert.equal(await answer.text(), "new");
  assert.equal(answer.headers.get("last-modified"), new Date(1_700_000_000_000).toUTCString());
  assert.equal(answer.headers.get("cache-control"), "private, no-cache");
  const kept = await fetch(`${top}a`, { headers: { "if-none-match": answer.headers.get("etag") ?? "" } });
  assert.deepEqual([kept.status, kept.headers.get("cache-control")], [304, "private, no-cache"]);
  assert.equal(await put("none/b", "new"), 409, "no folder");
  assert.equal(await put("a/b", "new"), 409, "a file where a folder should be");
  assert.equal((await fetch(`${top}folder`, { method: "MKCOL" })).status, 201);
  assert.equal(await put("folder", "new"), 405);
  assert.equal(await put("folder/", "new"), 405);
  assert.equal((await fetch(`${top}folder`, { method: "LOCK", body: LOCK })).status, 200);
  assert.equal(await put("folder/b", "new"), 423);
  assert.equal((await fetch(`${top}folder/b`)).status, 404);
});
