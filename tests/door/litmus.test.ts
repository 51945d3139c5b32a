// Runs litmus over a FileServer in this process.
import { test } from "node:test";
import { passLitmus, serveTree, WITH_LITMUS } from "#door/webdav/litmus.fixture.ts";
import { startTreeNode } from "./tree.fixture.ts";

test("all 104 tests of litmus pass over a FileServer", WITH_LITMUS, async (t) => {
  const { tree } = await startTreeNode(t);
  await passLitmus(await serveTree(t, tree("alice@example.com")));
});
