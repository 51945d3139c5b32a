// Conditional requests over a tree in memory: what has another version than the client knows is not changed.
import assert from "node:assert/strict";
import { test } from "node:test";
import { serveTree } from "./litmus.fixture.ts";
import { MemoryTree } from "./memory-tree.fixture.ts";

const PROPERTIES =
  '<D:propertyupdate xmlns:D="DAV:"><D:set><D:prop><x xmlns="urn:x">1</x></D:prop></D:set></D:propertyupdate>';

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
