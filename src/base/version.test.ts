// Versions that work together (D18): the same and neighbours, and no others.
import assert from "node:assert/strict";
import { test } from "node:test";
import { VERSION, versionProblem, worksWith } from "./version.ts";

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

test("a refusal names both versions, and has the older program upgraded, whoever says it (D18)", () => {
  const told = (client: string, server: string): string | undefined =>
    versionProblem({ name: "the client", version: client }, { name: "this FileServer", version: server });
  const apart = "and versions work together that are at most one minor version apart";
  assert.equal(
    told("1.2.0", "1.5.3"),
    `this FileServer has version 1.5.3 and the client 1.2.0, ${apart}: upgrade the client to 1.4 or newer`,
  );
  assert.equal(
    told("2.0.0", "1.9.0"),
    `the client has version 2.0.0 and this FileServer 1.9.0, ${apart}: upgrade this FileServer to 2.0 or newer`,
  );
  assert.equal(told("1.4.0", "1.5.3"), undefined);
  assert.equal(told("", "1.5.3"), undefined);
  assert.doesNotMatch(told(`1.0.0\u001b[31m${"x".repeat(99)}`, "1.5.0") ?? "", /\u001b|x{50}/);
});
