// Tests of chunk file names: validity, directory, and the order in which directories are filled.
import assert from "node:assert/strict";
import { test } from "node:test";
import { CHUNK_DIRECTORIES, chunkPath, directoryOfChunk, isChunkName, nextDirectory } from "./chunk-names.ts";

const NAME = "a7".repeat(16);

test("a chunk's name is 32 lower-case hexadecimal digits, and nothing else is", () => {
  assert.equal(isChunkName(NAME), true);
  for (const other of [
    NAME.slice(1),
    `${NAME}0`,
    NAME.toUpperCase(),
    `${NAME.slice(1)}g`,
    `../${NAME}`,
    "",
  ]) {
    assert.equal(isChunkName(other), false, other);
  }
});

test("a chunk lies in the directory that its name begins with", () => {
  assert.equal(directoryOfChunk(NAME), "a7");
  assert.equal(chunkPath("/data", NAME), `/data/chunks/a7/${NAME}`);
});

test("the directories 00 to ff are used in a round, beginning with 00", () => {
  assert.deepEqual(
    [CHUNK_DIRECTORIES.length, CHUNK_DIRECTORIES[0], CHUNK_DIRECTORIES.at(-1)],
    [256, "00", "ff"],
  );
  assert.equal(nextDirectory(undefined), "00");
  assert.equal(nextDirectory("00"), "01");
  assert.equal(nextDirectory("0f"), "10");
  assert.equal(nextDirectory("ff"), "00");
});
