// Tests the places of downloads with large buffers.
import assert from "node:assert/strict";
import { test } from "node:test";
import { LARGE_READS_AT_ONCE, LARGE_READS_PER_USER, LargeReads } from "./large-reads.ts";

test("a user has some of the places, others the rest, and a place given back is free again", () => {
  const reads = new LargeReads();
  const ada = Array.from({ length: LARGE_READS_PER_USER }, () => reads.take("ada"));
  assert.ok(ada.every((give) => give !== undefined));
  assert.equal(reads.take("ada"), undefined);
  for (let taken = LARGE_READS_PER_USER; taken < LARGE_READS_AT_ONCE; taken++) {
    assert.notEqual(reads.take(`user-${taken}`), undefined);
  }
  assert.equal(reads.take("eve"), undefined);
  ada[0]?.();
  assert.notEqual(reads.take("eve"), undefined);
  ada[1]?.();
  assert.notEqual(reads.take("ada"), undefined);
  assert.equal(reads.take("ada"), undefined);
});
