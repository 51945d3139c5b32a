// Tests of the command that resumes a transfer: a shell must parse it into the same words.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { commandLine } from "./transfer-messages.ts";

test("what needs no quotes has none, options that were not given are left out", () => {
  assert.equal(
    commandLine("put", ["photos", "alice@example.com:/in"], { r: true, update: false, ca: undefined }),
    "grove put -r photos alice@example.com:/in",
  );
  assert.equal(
    commandLine("get", ["/a"], { update: true, ca: "my ca" }),
    "grove get --update --ca 'my ca' /a",
  );
});

test("a shell reads odd words as they were", () => {
  const words = ["a b", "it's", "$HOME", "*", "", "new\nline", "-rf", "~", "#x"];
  const line = commandLine("put", words, {}).replace("grove put -- ", "printf '%s\\0' ");
  const read = execFileSync("sh", ["-c", line], { encoding: "utf8" });
  assert.deepEqual(read.split("\0").slice(0, -1), words);
});
