// Tests of what counts as the same file on both sides, at both sides of each condition.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { before, test } from "node:test";
import { crc32 } from "node:zlib";
import { SMALL_FILE_BYTES } from "#client/terminal/limits.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { BY_BOTH, BY_CHECKSUM, BY_TIME, type FileHere, type FileThere, isSame } from "./sameness.ts";

let folder = "";
let here: FileHere;
let there: FileThere;

before(() => {
  folder = scratchFolder("grove-same-");
  const path = join(folder, "file");
  writeFileSync(path, "content");
  here = { path, sizeBytes: 7, mtimeMs: 1_000, ctimeMs: 5_000 };
  there = { sizeBytes: 7, mtimeMs: 1_000, crc32: crc32("content") };
});

test("size and time: one byte or one millisecond makes another file, the content is not read", async () => {
  const other = { ...there, crc32: 1 };
  assert.equal(await isSame(here, other, BY_TIME), true);
  assert.equal(await isSame({ ...here, sizeBytes: 8 }, other, BY_TIME), false);
  assert.equal(await isSame({ ...here, mtimeMs: 1_001 }, other, BY_TIME), false);
});

test("size and content: the time is nothing, a bit is everything", async () => {
  assert.equal(await isSame({ ...here, mtimeMs: 2 }, there, BY_CHECKSUM), true);
  assert.equal(await isSame(here, { ...there, crc32: there.crc32 ^ 1 }, BY_CHECKSUM), false);
  assert.equal(await isSame({ ...here, mtimeMs: 2 }, there, BY_BOTH), false);
  assert.equal(await isSame(here, there, BY_BOTH), true);
});

test("a time that a disk with whole seconds has rounded is no other one where the content is the same", async () => {
  for (const mtimeMs of [1_001, 1_999, 2_999, 1]) {
    assert.equal(await isSame(here, { ...there, mtimeMs }, BY_TIME), true, String(mtimeMs));
    assert.equal(await isSame(here, { ...there, mtimeMs, crc32: 1 }, BY_TIME), false, String(mtimeMs));
  }
  assert.equal(await isSame(here, { ...there, mtimeMs: 3_000 }, BY_TIME), false);
  assert.equal(await isSame({ ...here, mtimeMs: 1_001 }, { ...there, mtimeMs: 1_002 }, BY_TIME), false);
});

test("only what has changed since a moment is read", async () => {
  const other = { ...there, crc32: 1 };
  const since = (checksumSinceMs: number): boolean | Promise<boolean> =>
    isSame(here, other, { ...BY_TIME, checksumSinceMs });
  assert.equal(await since(5_001), true);
  assert.equal(await since(5_000), false);
});

test("a file of more than one read has the checksum of all of it; one that cannot be read is not the same", async () => {
  for (const bytes of [0, SMALL_FILE_BYTES, SMALL_FILE_BYTES + 1, 2_500_000]) {
    const content = Buffer.alloc(bytes, "grove");
    const path = join(folder, String(bytes));
    writeFileSync(path, content);
    const file = { ...here, path, sizeBytes: bytes };
    assert.equal(
      await isSame(file, { ...there, sizeBytes: bytes, crc32: crc32(content) }, BY_CHECKSUM),
      true,
    );
    const longer = { ...file, sizeBytes: bytes + 1 };
    assert.equal(await isSame(longer, { ...there, sizeBytes: bytes + 1 }, BY_CHECKSUM), false);
  }
  const gone = { ...here, path: join(folder, "gone") };
  assert.equal(await isSame(gone, there, BY_CHECKSUM), false);
});
