// Shows that the help names every command, and that suggestions are near and never wild.
import assert from "node:assert/strict";
import { test } from "node:test";
import { stripVTControlCharacters } from "node:util";
import { COMMANDS } from "./commands.ts";
import { closestWord, helpText } from "./help.ts";

test("the help has one line of at most 80 columns for every command", () => {
  const lines = stripVTControlCharacters(helpText()).split("\n");
  for (const { name, summary } of COMMANDS) {
    const line = lines.find((candidate) => candidate.startsWith(`  ${name} `));
    assert.ok(line !== undefined && line.endsWith(summary), name);
    assert.ok(line.length <= 80, line);
    assert.match(summary, /^[A-Z].*[^.]$/);
  }
});

test("no two commands share a name", () => {
  assert.equal(new Set(COMMANDS.map(({ name }) => name)).size, COMMANDS.length);
});

test("a suggestion is at most two slips away, fewer for short words", () => {
  const names = COMMANDS.map(({ name }) => name);
  const meant = (word: string): string | undefined => closestWord(word, names);
  assert.equal(meant("lss"), "ls");
  assert.equal(meant("sl"), "ls");
  assert.equal(meant("fileservr"), "fileserver");
  assert.equal(meant("qouta"), "quota");
  assert.equal(meant("mkdri"), "mkdir");
  for (const word of ["xyzzy", "x", "", "frobnicate", "ab"]) assert.equal(meant(word), undefined, word);
});
