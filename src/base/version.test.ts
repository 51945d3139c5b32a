// Versions that work together (D18): the same and neighbours, and no others.
import assert from "node:assert/strict";
import { test } from "node:test";
import { VERSION, worksWith } from "./version.ts";

test("versions work together when they are the same or one minor version apart, whoever is newer (D18)", () => {
  assert.ok(worksWith(VERSION, VERSION));
  for (const [one, other] of [
    ["1.4.0", "1.4.9"],
    ["1.4.0", "1.5.0"],
    ["1.4.0", "1.3.7"],
    ["0.1.0", "0.2.0-beta.1"],
    ["1.4.0", ""],
    ["1.4.0", "built by hand"],
  ] as const) {
    assert.ok(worksWith(one, other) && worksWith(other, one), `${one} ${other}`);
  }
  for (const [one, other] of [
    ["1.4.0", "1.6.0"],
    ["1.4.0", "2.4.0"],
    ["0.1.0", "0.3.0"],
    ["1.0.0", "0.9.0"],
  ] as const) {
    assert.ok(!worksWith(one, other) && !worksWith(other, one), `${one} ${other}`);
  }
});
