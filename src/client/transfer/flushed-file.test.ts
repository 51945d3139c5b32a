// Tests of what reaches the disk before a download takes the name of a file that is there.
import assert from "node:assert/strict";
import fs, { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { join } from "node:path";
import { mock, test } from "node:test";
import { scratchFolder } from "#testing/scratch-folder.ts";

type Flushed = (error: NodeJS.ErrnoException | null) => void;

/** What was asked of the disk: a flush with the file's size, and a rename. */
const asked: string[] = [];
let failure: NodeJS.ErrnoException | null = null;

const { renameSync } = fs;
mock.method(fs, "fsync", (descriptor: number, done: Flushed) => {
  asked.push(`flush of ${fs.fstatSync(descriptor).size}`);
  done(failure);
});
mock.method(fs, "renameSync", (from: string, to: string) => {
  asked.push("rename");
  renameSync(from, to);
});
syncBuiltinESMExports();
const { LocalFileWriter, writeSmallFile } = await import("./local-file.ts");

const top = scratchFolder("grove-flushed-");
let folders = 0;

/** A folder of its own, with a file if it is to be replaced. */
function target(old?: string): string {
  const folder = join(top, String(++folders));
  mkdirSync(folder);
  if (old !== undefined) writeFileSync(join(folder, "file"), old);
  asked.length = 0;
  failure = null;
  return folder;
}

/** Both ways in which a download writes a file. */
const WAYS: Readonly<Record<string, (folder: string, data: Buffer) => Promise<void>>> = {
  "a small file": (folder, data) => writeSmallFile(folder, "file", data, 1_000),
  "a large file": async (folder, data) => {
    const writer = await LocalFileWriter.create(folder, "file");
    await writer.write(data);
    await writer.finish(1_000);
  },
};

for (const [what, write] of Object.entries(WAYS)) {
  test(`${what} that replaces another one lies on the disk before it takes the name, so that a power cut leaves the old or the new`, async () => {
    const folder = target("old");
    await write(folder, Buffer.from("newer"));
    assert.deepEqual(asked, ["flush of 5", "rename"]);
    assert.equal(readFileSync(join(folder, "file"), "utf8"), "newer");
  });

  test(`${what} with a new name waits for no disk`, async () => {
    const folder = target();
    await write(folder, Buffer.from("newer"));
    assert.deepEqual(asked, ["rename"]);
  });

  test(`${what} that cannot be flushed replaces nothing, unless its disk knows no flush`, async () => {
    const folder = target("old");
    failure = Object.assign(new Error("flush"), { code: "EIO", syscall: "fsync" });
    await assert.rejects(write(folder, Buffer.from("newer")), { code: "LOCAL_FILE" });
    assert.equal(readFileSync(join(folder, "file"), "utf8"), "old");
    failure = Object.assign(new Error("flush"), { code: "EINVAL", syscall: "fsync" });
    await write(folder, Buffer.from("newer"));
    assert.equal(readFileSync(join(folder, "file"), "utf8"), "newer");
  });
}

test("the part of a large file whose flush failed is fetched anew, since the next flush could succeed without its bytes", async () => {
  const folder = target("old");
  failure = Object.assign(new Error("flush"), { code: "EIO", syscall: "fsync" });
  const writer = await LocalFileWriter.goOn(folder, "file", join(folder, "part"));
  await writer?.write(Buffer.from("newer"));
  await assert.rejects(writer?.finish(1_000) ?? Promise.resolve());
  await writer?.leave();
  assert.deepEqual(readdirSync(folder), ["file"]);
});
