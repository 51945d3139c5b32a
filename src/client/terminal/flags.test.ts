// Tests of which words of a command line become flags of two dashes, and which stay as typed.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Command } from "commander";
import fc from "fast-check";
import { withDoubleDashes } from "./flags.ts";

function sample(): Command {
  const command = new Command("sample")
    .option("--data <dir>")
    .option("--ssh-key <file>")
    .option("--history-limit <n>")
    .option("--reserve <bytes>")
    .option("--mock")
    .option("--no-browser")
    .option("-l, --long")
    .option("-r, --recursive")
    .option("-p, --parallel <n>");
  command.command("child").option("--keep-days <n>");
  return command;
}

const rewrite = (...words: string[]): string[] => withDoubleDashes(words, sample());

test("the specification's flags of one dash become the parser's (design, Processes)", () => {
  assert.deepEqual(rewrite("-data", "d"), ["--data", "d"]);
  assert.deepEqual(rewrite("-ssh_key=k_1", "-mock"), ["--ssh-key=k_1", "--mock"]);
  assert.deepEqual(rewrite("-history_limit", "5"), ["--history-limit", "5"]);
  assert.deepEqual(rewrite("--history_limit", "5"), ["--history-limit", "5"]);
  assert.deepEqual(rewrite("child", "-keep_days", "3"), ["child", "--keep-days", "3"]);
  assert.deepEqual(rewrite("-no_browser", "-help"), ["--no-browser", "--help"]);
});

test("single letters, their groups, numbers and plain words stay", () => {
  for (const word of ["-l", "-lr", "-p8", "-5", "-10", "-", "a_b", "a-data", "./-data", "", "-h"]) {
    assert.deepEqual(rewrite(word), [word]);
  }
});

test("everything after -- stays, and so does the word that a flag takes", () => {
  assert.deepEqual(rewrite("-mock", "--", "-data", "--ssh_key"), ["--mock", "--", "-data", "--ssh_key"]);
  assert.deepEqual(rewrite("-data", "-mock", "-mock"), ["--data", "-mock", "--mock"]);
  assert.deepEqual(rewrite("-p", "-data", "-data", "--", "-mock"), ["-p", "-data", "--data", "--", "--mock"]);
  assert.deepEqual(rewrite("-data=x", "-mock"), ["--data=x", "--mock"]);
});

test("an unknown flag gets its second dash too, so that the parser can suggest the one that was meant", () => {
  assert.deepEqual(rewrite("-daat", "d"), ["--daat", "d"]);
});

test("a value keeps every character, and rewriting twice changes nothing more", () => {
  fc.assert(
    fc.property(fc.string(), (value) => {
      assert.deepEqual(rewrite(`-data=${value}`), [`--data=${value}`]);
      assert.deepEqual(rewrite("-data", value), ["--data", value]);
      assert.deepEqual(rewrite("--", value), ["--", value]);
    }),
  );
  fc.assert(
    fc.property(fc.array(fc.stringMatching(/^-{0,2}[a-z_=]{0,8}$/)), (words) => {
      const once = withDoubleDashes(words, sample());
      assert.equal(once.length, words.length);
      assert.deepEqual(withDoubleDashes(once, sample()), once);
    }),
  );
});
