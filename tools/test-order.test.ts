// Tests the list of the longest test files.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { LONGEST } from "./test-order.ts";

test("the list names files that there are, and each once", () => {
  assert.equal(new Set(LONGEST).size, LONGEST.length);
  for (const path of LONGEST)
    assert.ok(existsSync(fileURLToPath(new URL(`../${path}`, import.meta.url))), path);
});
