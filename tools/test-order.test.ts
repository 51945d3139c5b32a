// Tests the start order of test files.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { LONGEST, longestFirst } from "./test-order.ts";

test("the longest start first, the others by name, and each once", () => {
  const [first = "", second = ""] = LONGEST;
  assert.deepEqual(longestFirst(["z.test.ts", second, "a.test.ts", first]), [
    first,
    second,
    "a.test.ts",
    "z.test.ts",
  ]);
});

test("the list names files that there are", () => {
  for (const path of LONGEST)
    assert.ok(existsSync(fileURLToPath(new URL(`../${path}`, import.meta.url))), path);
});
