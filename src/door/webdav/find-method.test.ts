// PROPFIND over a tree in memory: which properties an answer has.
import assert from "node:assert/strict";
import { test } from "node:test";
import { serveTree } from "./litmus.fixture.ts";
import { MemoryTree } from "./memory-tree.fixture.ts";

test("a stored property under a live name is told by no kind of PROPFIND, and others are", async (t) => {
  const tree = new MemoryTree();
  await tree.makeCollection(["a"], []);
  const stored = [
    {
      namespace: "DAV:",
      name: "resourcetype",
      xml: '<D:resourcetype xmlns:D="DAV:">forged</D:resourcetype>',
    },
    { namespace: "urn:x", name: "colour", xml: '<colour xmlns="urn:x">green</colour>' },
  ];
  await tree.changeProperties(
    ["a"],
    stored.map((property) => ({ kind: "set", property })),
    [],
  );
  const address = `${await serveTree(t, tree)}a/`;
  for (const wish of [
    "<D:allprop/>",
    "<D:propname/>",
    "<D:prop><D:resourcetype/><colour xmlns='urn:x'/></D:prop>",
  ]) {
    const body = `<D:propfind xmlns:D="DAV:">${wish}</D:propfind>`;
    const answer = await fetch(address, { method: "PROPFIND", headers: { depth: "0" }, body });
    const text = await answer.text();
    assert.equal(text.match(/<D:resourcetype\b/gu)?.length, 1, text);
    assert.ok(!text.includes("forged") && text.includes("colour"), text);
  }
});
