// PROPFIND over a tree in memory: which properties an answer has.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type ErrorCode, GroveError } from "#base/errors.ts";
import { serveTree } from "./litmus.fixture.ts";
import { MemoryTree } from "./memory-tree.fixture.ts";
import type { DeadProperty } from "./resource.ts";

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

/** A tree in which some are removed, or refused, between the listing and the look at their properties. */
class GoingTree extends MemoryTree {
  readonly refusals = new Map<string, ErrorCode>();

  override async properties(path: readonly string[]): Promise<readonly DeadProperty[]> {
    const code = this.refusals.get(path.join("/"));
    if (code !== undefined) throw new GroveError(code, "refused");
    return await super.properties(path);
  }
}

test("an entry that goes while its folder is listed is left out, and the others are told of", async (t) => {
  const tree = new GoingTree();
  await tree.makeCollection(["d"], []);
  for (const name of ["a", "b", "c"]) await tree.makeCollection(["d", name], []);
  const address = `${await serveTree(t, tree)}d/`;
  const find = async (depth: string) => {
    const body = '<D:propfind xmlns:D="DAV:"><D:prop><x xmlns="urn:x"/></D:prop></D:propfind>';
    const answer = await fetch(address, { method: "PROPFIND", headers: { depth }, body });
    const hrefs = (await answer.text()).matchAll(/<D:href>([^<]*)<\/D:href>/gu);
    return {
      status: answer.status,
      names: Array.from(hrefs, ([, href = ""]) => href.slice("/dav/d".length)),
    };
  };
  for (const code of ["NO_SUCH_PATH", "NOT_DIRECTORY", "NOT_SHARED"] as const) {
    for (const name of ["a", "b", "c"]) {
      tree.refusals.clear();
      tree.refusals.set(`d/${name}`, code);
      const others = ["/a/", "/b/", "/c/"].filter((other) => other !== `/${name}/`);
      assert.deepEqual(await find("1"), { status: 207, names: ["/", ...others] }, `${name} ${code}`);
    }
  }
  tree.refusals.set("d", "NO_SUCH_PATH");
  assert.equal((await find("0")).status, 404, "what is asked for itself");
  tree.refusals.clear();
  tree.refusals.set("d/a", "STORE_UNAVAILABLE");
  assert.equal((await find("1")).status, 503, "nobody knows");
});

test("depth infinity is refused at a folder only, and no Depth header means its entries as well", async (t) => {
  const tree = new MemoryTree();
  await tree.makeCollection(["d"], []);
  await tree.makeCollection(["d", "e"], []);
  const top = await serveTree(t, tree);
  await fetch(`${top}f`, { method: "PUT", body: "f" });
  const find = async (name: string, headers: Record<string, string>) => {
    const answer = await fetch(top + name, { method: "PROPFIND", headers });
    const text = await answer.text();
    return { status: answer.status, responses: text.split("<D:response>").length - 1, text };
  };
  const refused = await find("d/", { depth: "infinity" });
  assert.equal(refused.status, 403);
  assert.ok(refused.text.includes("<D:propfind-finite-depth/>"), refused.text);
  for (const headers of [{ depth: "infinity" }, {}] as Record<string, string>[]) {
    const { status, responses } = await find("f", headers);
    assert.deepEqual({ status, responses }, { status: 207, responses: 1 });
  }
  assert.equal((await find("d/", {})).responses, 2);
});
