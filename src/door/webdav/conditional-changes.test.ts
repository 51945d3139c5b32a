// Conditional requests over a tree in memory: what has another version than the client knows is not changed.
import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { test } from "node:test";
import { serveTree } from "./litmus.fixture.ts";
import { MemoryTree } from "./memory-tree.fixture.ts";
import type { DavResource, WriteWish } from "./resource.ts";

const ANY: WriteWish = { size: undefined, ifMatch: undefined, mustBeNew: false, changedMs: 0 };

const PROPERTIES =
  '<D:propertyupdate xmlns:D="DAV:"><D:set><D:prop><x xmlns="urn:x">1</x></D:prop></D:set></D:propertyupdate>';

const LOCK =
  '<D:lockinfo xmlns:D="DAV:"><D:lockscope><D:exclusive/></D:lockscope><D:locktype><D:write/></D:locktype></D:lockinfo>';

test("a change whose If-Match, If-None-Match or If-Unmodified-Since does not hold is 412, and nothing is changed", async (t) => {
  const top = await serveTree(t, new MemoryTree());
  const ask = (method: string, name: string, headers: Record<string, string> = {}, body?: string) =>
    fetch(top + name, { method, headers: { ...headers }, ...(body === undefined ? {} : { body }) });
  const written = await ask("PUT", "a", {}, "old");
  const etag = written.headers.get("etag") ?? "";
  const changes: readonly (readonly [string, Record<string, string>, string?])[] = [
    ["PUT", {}, "new"],
    ["DELETE", {}],
    ["MOVE", { destination: `${top}b` }],
    ["COPY", { destination: `${top}b` }],
    ["PROPPATCH", {}, PROPERTIES],
    ["LOCK", {}, LOCK],
  ];
  const failing = [
    { "if-match": '"another"' },
    { "if-match": `W/${etag}` },
    { "if-none-match": "*" },
    { "if-none-match": etag },
    { "if-unmodified-since": "Sun, 06 Nov 1994 08:49:37 GMT" },
  ];
  for (const [method, headers, body] of changes) {
    for (const condition of failing) {
      const { status } = await ask(method, "a", { ...headers, ...condition }, body);
      assert.equal(status, 412, `${method} ${JSON.stringify(condition)}`);
    }
  }
  assert.equal((await ask("MKCOL", "c", { "if-match": "*" })).status, 412);
  assert.equal((await ask("LOCK", "c", { "if-match": "*" }, LOCK)).status, 412);
  assert.equal(
    (await ask("DELETE", "none", { "if-match": "*" })).status,
    404,
    "what it is without a condition",
  );
  assert.equal(await (await ask("GET", "a")).text(), "old");
  for (const name of ["b", "c"]) assert.equal((await ask("HEAD", name)).status, 404, name);
  assert.doesNotMatch(await (await ask("PROPFIND", "a", { depth: "0" })).text(), /urn:x/u);

  const holding = { "if-match": `"another", ${etag}`, "if-none-match": '"another"' };
  assert.equal((await ask("COPY", "a", { destination: `${top}b`, ...holding })).status, 201);
  assert.equal((await ask("MKCOL", "c", { "if-none-match": "*" })).status, 201);
  assert.equal((await ask("DELETE", "a", { ...holding, "if-unmodified-since": "0" })).status, 204);
});

/** A tree in which somebody else does something between the door's looks and its change. */
class SlippingTree extends MemoryTree {
  slip: () => Promise<unknown> = () => Promise.resolve();

  override async write(...order: Parameters<MemoryTree["write"]>): Promise<DavResource> {
    await this.slip();
    return super.write(...order);
  }

  override async makeCollection(...order: Parameters<MemoryTree["makeCollection"]>): Promise<void> {
    await this.slip();
    return super.makeCollection(...order);
  }

  override async remove(...order: Parameters<MemoryTree["remove"]>): Promise<void> {
    await this.slip();
    return super.remove(...order);
  }

  override async copy(...order: Parameters<MemoryTree["copy"]>): Promise<void> {
    await this.slip();
    return super.copy(...order);
  }

  override async move(...order: Parameters<MemoryTree["move"]>): Promise<void> {
    await this.slip();
    return super.move(...order);
  }
}

test("a change that slips in after the conditions were judged makes them fail, and is kept", async (t) => {
  const tree = new SlippingTree();
  const top = await serveTree(t, tree);
  const write = (name: string, text: string) =>
    MemoryTree.prototype.write.call(tree, [name], Readable.from([Buffer.from(text)]), ANY, []);
  const etagOf = async (name: string) => `"${(await tree.look([name]))?.etag}"`;
  for (const name of ["a", "b"]) await write(name, "old");
  const destination = `${top}b`;
  const conditions: readonly ((name: string) => Promise<Record<string, string>>)[] = [
    async (name) => ({ "if-match": await etagOf(name) }),
    async () => ({ "if-match": "*" }),
    async () => ({ "if-none-match": '"another"' }),
    async () => ({ "if-unmodified-since": new Date(Date.now() + 60_000).toUTCString() }),
    async (name) => ({ if: `([${await etagOf(name)}])` }),
    async (name) => ({ if: `<${top}${name}> (Not ["another"])` }),
  ];
  tree.slip = () => write("a", "new");
  for (const method of ["PUT", "DELETE", "MOVE", "COPY"]) {
    for (const condition of conditions) {
      const headers = { destination, ...(await condition("a")) };
      const body = method === "PUT" ? { body: "mine" } : {};
      const { status } = await fetch(`${top}a`, { method, headers, ...body });
      assert.equal(status, 412, `${method} ${JSON.stringify(headers)}`);
    }
  }
  assert.equal(await (await fetch(`${top}a`)).text(), "new");
  assert.equal(await (await fetch(destination)).text(), "old");

  tree.slip = () => write("b", "new");
  for (const method of ["MOVE", "COPY"]) {
    const headers = { destination, if: `<${destination}> ([${await etagOf("b")}])` };
    assert.equal((await fetch(`${top}a`, { method, headers })).status, 412, method);
  }
  tree.slip = () => write("c", "new");
  for (const method of ["MOVE", "COPY"]) {
    for (const header of [{ overwrite: "F" }, { if: `<${top}c> (Not ["another"])` }]) {
      const headers = { destination: `${top}c`, ...header };
      assert.equal((await fetch(`${top}a`, { method, headers })).status, 412, method);
      assert.equal(await (await fetch(`${top}c`)).text(), "new");
      await MemoryTree.prototype.remove.call(tree, ["c"], { tokens: [] });
    }
  }
});

test("of two who make one folder the second is told that it is there, with a condition too (RFC 4918, 9.3.1)", async (t) => {
  const tree = new SlippingTree();
  const top = await serveTree(t, tree);
  for (const headers of [{}, { "if-none-match": "*" }, { if: '(Not ["another"])' }]) {
    const name = `d${Object.keys(headers).join("")}`;
    tree.slip = () => MemoryTree.prototype.makeCollection.call(tree, [name], []);
    for (const whose of ["that slipped in", "that was there"]) {
      const { status } = await fetch(top + name, { method: "MKCOL", headers: { ...headers } });
      assert.equal(status, 405, `${JSON.stringify(headers)} ${whose}`);
    }
  }
});

test("a change between the looks for the If header and for the method makes the header fail", async (t) => {
  const tree = new MemoryTree();
  const top = await serveTree(t, tree);
  await fetch(`${top}a`, { method: "PUT", body: "old" });
  const etag = (await tree.look(["a"]))?.etag;
  const look = tree.look.bind(tree);
  tree.look = async (path, withLocks) => {
    const seen = await look(path, withLocks);
    // The If header is judged by the look that asks for locks.
    if (withLocks === true) await tree.write(["a"], Readable.from([Buffer.from("new")]), ANY, []);
    return seen;
  };
  const { status } = await fetch(`${top}a`, { method: "DELETE", headers: { if: `(["${etag}"])` } });
  assert.equal(status, 412);
});
