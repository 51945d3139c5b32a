// Replacing files: content, permissions, the previous generation, and the folder after a failure.
import assert from "node:assert/strict";
import { chmod, mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { before, test } from "node:test";
import { isGroveError } from "#base/errors.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { previousGeneration, removeLeftovers, writeFileAtomic } from "./atomic-file.ts";
import { readPrivateFile, removePrivateFile, writePrivateFile } from "./private-file.ts";

let folder = "";
before(async () => {
  folder = scratchFolder("os-atomic-");
});

test("a file is made with mode 0600 whatever the mask, and nothing else is left (A-10)", async () => {
  const path = join(folder, "made", "config.json");
  await mkdir(join(folder, "made"));
  const mask = process.umask(0o777);
  try {
    await writeFileAtomic(path, "{}");
  } finally {
    process.umask(mask);
  }
  assert.equal((await stat(path)).mode & 0o777, 0o600);
  assert.deepEqual(await readdir(join(folder, "made")), ["config.json"]);
});

test("the old content is replaced as a whole, and kept as the previous generation when asked (A-10)", async () => {
  const path = join(folder, "kept.json");
  await writeFileAtomic(path, "first", { keepPrevious: true });
  await assert.rejects(stat(previousGeneration(path)), { code: "ENOENT" });
  await writeFileAtomic(path, "second, and longer", { keepPrevious: true });
  await writeFileAtomic(path, "3", { keepPrevious: true });
  assert.equal(await readFile(path, "utf8"), "3");
  assert.equal(await readFile(previousGeneration(path), "utf8"), "second, and longer");
});

test("a write that fails leaves the old content and no temporary file (A-10)", async () => {
  const path = join(folder, "target", "is-a-folder");
  await mkdir(path, { recursive: true });
  await assert.rejects(writeFileAtomic(path, "x"), { code: "EISDIR" });
  assert.deepEqual(await readdir(join(folder, "target")), ["is-a-folder"]);
  await assert.rejects(writeFileAtomic(join(folder, "no", "such", "folder"), "x"), { code: "ENOENT" });
});

test("parallel writes of one file leave one whole content (A-10)", async () => {
  const path = join(folder, "raced");
  const contents = Array.from({ length: 20 }, (_, at) => `${at}`.repeat(50_000));
  await Promise.all(contents.map((content) => writeFileAtomic(path, content)));
  assert.ok(contents.includes(await readFile(path, "utf8")));
});

test("leftovers of a crash are removed, and other files are not", async () => {
  const place = join(folder, "leftovers");
  await mkdir(place);
  const names = [
    ".book.json.0123456789abcdef.tmp",
    ".book.json.tmp",
    ".other.json.0123456789abcdef.tmp",
    "book.json",
  ];
  for (const name of names) await writeFile(join(place, name), "");
  await removeLeftovers(join(place, "book.json"));
  assert.deepEqual((await readdir(place)).sort(), names.slice(1).sort());
});

test("a private file is read back, and refused once others may read it", async () => {
  const path = join(folder, "new", "folder", "session.json");
  assert.equal(await readPrivateFile(path), undefined);
  await writePrivateFile(path, "secret");
  assert.equal((await stat(join(folder, "new", "folder"))).mode & 0o777, 0o700);
  assert.equal(await readPrivateFile(path), "secret");
  for (const mode of [0o640, 0o604, 0o620]) {
    await chmod(path, mode);
    await assert.rejects(readPrivateFile(path), (error) => isGroveError(error, "BAD_ARGUMENT"));
  }
  await removePrivateFile(path);
  await removePrivateFile(path);
  assert.equal(await readPrivateFile(path), undefined);
});
