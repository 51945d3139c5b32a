// Tests of which file of this machine an unfinished upload belongs to.
import assert from "node:assert/strict";
import { mkdirSync, statSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { diskOf } from "./local-disk.ts";
import { UploadMemory } from "./upload-memory.ts";

const top = scratchFolder("grove-upload-memory-");
const TARGET = { root: "", path: "/x" };
const EXACT = {
  path: "/mnt/x",
  sizeBytes: 9,
  mtimeMs: 5_000,
  mtimeNs: 5_000_000_001n,
  ctimeNs: 5_000_000_001n,
};
/** As on FAT, where a copy may have the times and the size of another version. */
const COARSE = { ...EXACT, mtimeNs: 4_000_000_000n, ctimeNs: 4_000_000_000n };

test("a disk is known again by its file system's id, else by its number", () => {
  const folder = join(top, "by-uuid");
  mkdirSync(folder);
  symlinkSync("/dev/zero", join(folder, "1234-ABCD"));
  symlinkSync("/dev/null", join(folder, "5678-EF01"));
  symlinkSync("/nowhere", join(folder, "gone"));
  const { rdev } = statSync("/dev/null", { bigint: true });
  assert.equal(diskOf(rdev, folder), "uuid-5678-EF01");
  assert.equal(diskOf(rdev + 1_000n, folder), `number-${rdev + 1_000n}`);
  assert.equal(diskOf(rdev, join(top, "none")), `number-${rdev}`);
});

test("an upload is not gone on with from a file of another disk at the same path", async () => {
  const memory = new UploadMemory(join(top, "memory"));
  const cases = [
    { source: EXACT, from: "uuid-a", to: "uuid-a", isFound: true },
    { source: EXACT, from: "uuid-a", to: "uuid-b", isFound: false },
    // The number is another one after a restart; the times say that it is the same file.
    { source: EXACT, from: "number-1", to: "number-2", isFound: true },
    { source: EXACT, from: "number-1", to: "uuid-a", isFound: true },
    { source: COARSE, from: "uuid-a", to: "uuid-a", isFound: true },
    { source: COARSE, from: "number-1", to: "number-1", isFound: true },
    { source: COARSE, from: "uuid-a", to: "uuid-b", isFound: false },
    { source: COARSE, from: "number-1", to: "number-2", isFound: false },
    { source: COARSE, from: "number-1", to: "uuid-a", isFound: false },
  ];
  for (const { source, from, to, isFound } of cases) {
    await memory.keep({ ...source, disk: from }, TARGET, "u1");
    const found = await memory.find({ ...source, disk: to }, TARGET);
    assert.equal(found, isFound ? "u1" : undefined, `${source.ctimeNs} from ${from} to ${to}`);
  }
});
