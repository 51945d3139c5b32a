// Tests of what a scrape hears of roots that have moved away.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Usage } from "#storage/contract/inode.ts";
import { RootUsage } from "./root-usage.ts";

const NONE: Usage = {
  liveBytes: 0,
  trashBytes: 0,
  stagingBytes: 0,
  fileCount: 0,
  liveInodes: 0,
  trashInodes: 0,
};

test("a root that has moved away is counted no more, and all others are told anew", () => {
  const usage = new RootUsage([]);
  for (const owner of ["a@x", "b@x", "c@x"]) usage.record(owner, NONE);
  usage.takeChanged();
  usage.forget("nobody@x");
  assert.equal(usage.takeLost(), false);
  usage.forget("b@x");
  assert.equal(usage.count, 2);
  assert.equal(usage.of("b@x"), undefined);
  assert.deepEqual([...usage.takeChanged()], ["a@x", "c@x"]);
  assert.equal(usage.takeLost(), true);
  assert.equal(usage.takeLost(), false);
});
