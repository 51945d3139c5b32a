// Tests of files that root makes in a service's folder: they are the service's.
import assert from "node:assert/strict";
import { chownSync, statSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { temporaryDirectory } from "#testing/temporary-folder.ts";
import { OwnedFolder } from "./folder-owner.ts";

const AS_ROOT = { skip: process.getuid?.() === 0 ? false : "needs root" };

test(
  "a folder that root makes with its first file, and each file in it, is the service's alone",
  AS_ROOT,
  async (t) => {
    const service = temporaryDirectory(t);
    chownSync(service, 64_242, 64_243);
    const path = join(service, "inside");
    const folder = new OwnedFolder(path, /^[ab]$/);
    assert.deepEqual(await folder.names(), []);
    await folder.create("a", "1");
    await folder.replace("b", "1");
    await folder.replace("b", "2");
    await folder.create("foreign", "1");
    await assert.rejects(folder.create("a", "2"), { code: "EEXIST" });
    assert.deepEqual((await folder.names()).toSorted(), ["a", "b"]);
    for (const made of [path, folder.pathOf("a"), folder.pathOf("b")]) {
      const { uid, gid, mode } = statSync(made);
      assert.deepEqual([uid, gid, mode & 0o077], [64_242, 64_243, 0], made);
    }
    await folder.remove("a");
    await folder.remove("a");
    assert.deepEqual(await folder.names(), ["b"]);
  },
);
