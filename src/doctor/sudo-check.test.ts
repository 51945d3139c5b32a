// Tests of parsing sudo's listing; tests/packaging.test.ts has sudo itself make one.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ACTION_COMMANDS, sudoFinding } from "./sudo-check.ts";

const HEAD = "User svc may run the following commands on n1:\n";
const escaped = ACTION_COMMANDS.map((line) => line.replaceAll(/[:=]/g, String.raw`\$&`));

test("all lines without a password are well; one that lacks, or asks for one, is named (D20)", () => {
  assert.equal(sudoFinding(`${HEAD}    (root) NOPASSWD: ${escaped.join(", ")}\n`).state, "ok");
  const [first = "", ...others] = escaped;
  for (const listing of [
    `    (root) NOPASSWD: ${others.join(", ")}\n`,
    `    (root) PASSWD: ${first}, NOPASSWD: ${others.join(", ")}\n`,
    `    (root) NOPASSWD: ${others.join(", ")}, PASSWD: ${first}\n`,
    `    (ALL : ALL) ALL\n    (root) NOPASSWD: ${others.join(", ")}\n`,
    `    (grove) NOPASSWD: ${first}\n    (root) NOPASSWD: ${others.join(", ")}\n`,
    `    (root) NOPASSWD: ${first} --now, ${others.join(", ")}\n`,
  ]) {
    const { state, what } = sudoFinding(HEAD + listing);
    assert.equal(state, "failed", listing);
    assert.equal(what, `not allowed without a password: ${first}`);
  }
  assert.equal(sudoFinding("").state, "failed");
});

test("a user who may run everything is warned of (E-08)", () => {
  for (const who of ["root", "ALL", "ALL : ALL"]) {
    assert.equal(sudoFinding(`${HEAD}    (${who}) NOPASSWD: ALL\n`).state, "warning");
  }
  assert.equal(sudoFinding(`${HEAD}    (ALL : ALL) ALL\n`).state, "failed");
});
