// Tests the overview's sentence about the last poll, from a node's first missed one on.
import assert from "node:assert/strict";
import { test } from "node:test";
import { answeredText, calmTitle, isLate } from "./answers.ts";
import type { LiveNode } from "./live-node.ts";

const node = (name: string, fields: Partial<LiveNode> = {}): LiveNode =>
  ({
    name,
    status: "online",
    stale: false,
    last_seen: 1_000,
    disk_free_bytes: 2,
    reserve_bytes: 1,
    ...fields,
  }) as LiveNode;
const ok = [node("fs-1"), node("fs-3")];

test("a node that missed the last poll is late, and nothing says that all is well, before it is offline (spec 3.2)", () => {
  const late = node("fs-2", { stale: true });
  assert.equal(
    answeredText([...ok, late], 1_012),
    "2 of 3 nodes answered the last poll (fs-2 is late: its last answer is 12 s old)",
  );
  assert.equal(calmTitle([...ok, late]), "fs-2 is late");
  const other = node("fs-4", { stale: true });
  assert.match(answeredText([...ok, late, other], 1_012), /^2 of 4 .* \(fs-2 and fs-4 are late\)$/);
  assert.match(answeredText([...ok, late, other, late], 1_012), /\(fs-2, fs-4 and 1 more are late\)$/);
  assert.equal(calmTitle([late, other]), "2 nodes are late");
});

test("who is offline, or has not answered yet, is not late", () => {
  assert.equal(isLate(node("a", { stale: true, status: "offline" })), false);
  assert.equal(isLate(node("a", { stale: true, status: "offline", unknown: true })), false);
  assert.equal(isLate(node("a")), false);
  const away = node("fs-2", { stale: true, status: "offline" });
  assert.equal(answeredText([...ok, away], 0), "2 of 3 nodes answered the last poll");
  assert.equal(calmTitle([...ok, { ...away, unknown: true }]), "1 of 3 nodes has not answered yet");
});

test("nothing needs anybody only while all answer and take uploads", () => {
  assert.equal(answeredText(ok, 0), "All 2 nodes answered the last poll");
  assert.equal(answeredText([node("fs-1")], 0), "The node answered the last poll");
  assert.equal(calmTitle(ok), "Nothing needs you");
  assert.equal(calmTitle([]), "This cluster has no nodes yet");
  const full = node("fs-2", { disk_free_bytes: 1 });
  assert.equal(calmTitle([...ok, full]), "1 node refuses uploads");
  assert.equal(calmTitle([full, full]), "2 nodes refuse uploads");
});
