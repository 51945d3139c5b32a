// Tests that the help names every command, and that suggestions are close to the typed word.
import assert from "node:assert/strict";
import { test } from "node:test";
import { stripVTControlCharacters } from "node:util";
import type { Command } from "commander";
import { COMMAND_GROUPS, COMMANDS } from "./commands.ts";
import { closestWord, helpText } from "./help.ts";

test("the help has one line of at most 80 columns for every command", () => {
  const lines = stripVTControlCharacters(helpText(COMMAND_GROUPS)).split("\n");
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

/** The output of `--help` of a parser, at 80 columns. */
function helpOf(parser: Command): string {
  let text = "";
  parser.configureOutput({ writeOut: (piece) => (text += piece), getOutHelpWidth: () => 80 });
  parser.outputHelp();
  return text;
}

/** Servers have more settings than a screen has lines. */
const LONG_HELP: readonly string[] = ["fileserver", "metaserver", "admin"];

for (const { name, load } of COMMANDS) {
  test(`grove ${name} --help says in one voice what it does, shows an example, and fits on a screen`, async () => {
    const parser = (await load()).command();
    const parsers = [
      parser,
      ...(name === "completion" ? [] : parser.commands.filter((child) => child.name() !== "help")),
    ];
    for (const one of parsers) {
      const called = one === parser ? name : `${name} ${one.name()}`;
      // "List a folder.", not "Lists a folder" or "A list of".
      assert.match(one.description(), /^[A-Z][a-z]*[^s] /, called);
      if (one === parser) assert.match(one.description(), /\.$/, called);
      const text = helpOf(one);
      if (one === parser) assert.match(text, new RegExp(`\\n {2,}(?:.*\\| )?grove ${name}\\b`), called);
      if (!LONG_HELP.includes(name))
        assert.ok(text.trimEnd().split("\n").length <= 40, `${called} has ${text.split("\n").length} lines`);
    }
  });
}
