// The limit between late and offline, from both sides.
import assert from "node:assert/strict";
import { test } from "node:test";
import { isOfflineAfter } from "./node-offline.ts";

test("a server is offline when it has been silent for more than 30 s, and not at exactly 30 s (spec 3.2, T5)", () => {
  assert.equal(isOfflineAfter(30_000), false);
  assert.equal(isOfflineAfter(30_001), true);
});
