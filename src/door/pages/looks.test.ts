// What a page may ask for in words: only its own words count.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Sort } from "#wire/proto/gen/grove/v1/common_pb.ts";
import { sortOf } from "./looks.ts";

test("a list is sorted by the words of the page, and by name for everything else", () => {
  assert.equal(sortOf("-changed"), Sort.MTIME_DESC);
  for (const word of ["name", "", "constructor", "__proto__", "toString"])
    assert.equal(sortOf(word), Sort.NAME, word);
});
