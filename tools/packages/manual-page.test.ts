// Tests that the manual page has every command, and that no line of it is taken for an instruction.
import assert from "node:assert/strict";
import { test } from "node:test";
import { manualPage } from "./manual-page.ts";

const TEXTS: Readonly<Record<string, string>> = {
  "--help": "Files:\n  ls   List a folder\n  put  Upload\n",
  "ls --help": "Usage: grove ls [options]\n.hidden files are shown\n'quoted' and back\\slash\n",
  "put --help": "Usage: grove put\n",
};
const help = async (...words: string[]): Promise<string> =>
  TEXTS[words.join(" ")] ?? assert.fail(words.join(" "));

test("each command of the help has a section", async () => {
  const page = await manualPage(help, "1.2.3");
  assert.match(page, /^\.TH GROVE 1 "" "Grove 1\.2\.3"/);
  assert.deepEqual(page.match(/^\.SS .*$/gm), ['.SS "grove ls"', '.SS "grove put"']);
});

test("text that looks like an instruction stays text", async () => {
  const page = await manualPage(help, "1");
  assert.match(page, /^\\&\.hidden files/m);
  assert.match(page, /^\\\(aqquoted\\\(aq and back\\eslash$/m);
});

test("a help without commands makes no page", async () => {
  await assert.rejects(
    manualPage(async () => "nothing", "1"),
    /lists no commands/,
  );
});
