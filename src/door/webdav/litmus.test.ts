// Runs litmus against WebDAV's methods over a tree in memory.
import { test } from "node:test";
import { passLitmus, serveTree, WITH_LITMUS } from "./litmus.fixture.ts";
import { MemoryTree } from "./memory-tree.fixture.ts";

test("all 104 tests of litmus pass", WITH_LITMUS, async (t) => {
  await passLitmus(await serveTree(t, new MemoryTree()));
});
