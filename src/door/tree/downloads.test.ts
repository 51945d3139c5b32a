// How many bytes of a download are handed on at a time.
import assert from "node:assert/strict";
import { test } from "node:test";
import { handedOnAtOnce } from "./downloads.ts";

test("the first bytes of a download go as they come, those of a long one by the half mebibyte", () => {
  const sizes = [0, 524_288, 2_097_152, 4_194_304, 2 ** 40].map(handedOnAtOnce);
  assert.deepEqual(sizes, [65_536, 65_536, 262_144, 524_288, 524_288]);
});
