// How a MetaServer ends.
import assert from "node:assert/strict";
import { test } from "node:test";
import { startForTest } from "./meta-server.fixture.ts";

test("who stops it a second time waits for the same end: the store is closed then", async (t) => {
  const server = await startForTest(t);
  const ended: string[] = [];
  const first = server.stop().then(() => ended.push("first"));
  await server.stop();
  ended.push("second");
  await first;
  assert.deepEqual(ended, ["first", "second"]);
});
