// What is no file, pipe or terminal on standard input is never taken for empty.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { closeSync, openSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { temporaryDirectory } from "#testing/temporary-folder.ts";

const READER = `
  import { standardInput } from ${JSON.stringify(new URL("./standard-input.ts", import.meta.url).href)};
  let bytes = 0;
  try {
    for await (const piece of standardInput()) bytes += piece.length;
    console.log(bytes);
  } catch (error) {
    console.log(error.code);
  }
`;

/** What a process says of a path on its standard input: how many bytes came, or the error's code. */
function read(path: string): string {
  const descriptor = openSync(path, "r");
  try {
    const words = ["--input-type=module", "--eval", READER];
    return spawnSync(process.execPath, words, { stdio: [descriptor, "pipe", "inherit"] })
      .stdout.toString()
      .trim();
  } finally {
    closeSync(descriptor);
  }
}

test("a folder on standard input is an error, and a file comes whole", (t) => {
  const folder = temporaryDirectory(t);
  const file = join(folder, "file");
  writeFileSync(file, "abc");
  assert.equal(read(folder), "EISDIR");
  assert.equal(read(file), "3");
  assert.equal(read("/dev/null"), "0");
});
