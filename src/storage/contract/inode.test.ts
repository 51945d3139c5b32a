// Tests that the fast text form of inode ids and etags equals that of numbers.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { etagOf, inodeIdText } from "./inode.ts";

test("an id is its number in base 36, at every size", () => {
  for (const id of [
    0,
    35,
    36,
    2 ** 31 - 1,
    2 ** 31,
    2 ** 31 + 1,
    36 ** 6,
    36 ** 6 - 1,
    Number.MAX_SAFE_INTEGER,
  ]) {
    assert.equal(inodeIdText(id), id.toString(36));
  }
  fc.assert(
    fc.property(fc.maxSafeNat(), (id) => {
      assert.equal(inodeIdText(id), id.toString(36));
    }),
  );
});

test("an etag is the id and the version, and another with each version", () => {
  assert.equal(etagOf({ id: 36, version: 37 }), "10-11");
  assert.equal(etagOf({ id: 2 ** 40, version: 1 }), `${(2 ** 40).toString(36)}-1`);
});
