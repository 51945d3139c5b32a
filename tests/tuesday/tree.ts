// Makes folders of random files, and compares them byte for byte after a transfer.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";

/** The number of files of a folder, and their bytes in all. */
export interface TreeSize {
  readonly files: number;
  readonly bytes: number;
}

const FOLDERS = 20;

/** Makes a folder of so many files and about so many bytes, small ones and a few large. */
export async function makeTree(folder: string, size: TreeSize): Promise<void> {
  const usual = Math.floor(size.bytes / size.files);
  // Each file is another part of the same random bytes: that is fast, and no two files are alike.
  const content = randomBytes(usual * 2 + size.files);
  for (let at = 0; at < FOLDERS; at++) await mkdir(join(folder, `d${at}`), { recursive: true });
  for (let at = 0; at < size.files; at++) {
    const path = join(folder, `d${at % FOLDERS}`, `file ${at}`);
    const bytes = at % 2 === 0 ? Math.floor(usual / 2) : Math.ceil(usual * 1.5);
    await writeFile(path, content.subarray(at, at + bytes));
  }
}

/** Asserts that two folders hold the same files with the same bytes; returns their number. */
export async function assertSame(one: string, other: string): Promise<number> {
  const [paths, others] = await Promise.all([filesOf(one), filesOf(other)]);
  assert.deepEqual(others, paths);
  for (const path of paths) {
    const [a, b] = await Promise.all([readFile(join(one, path)), readFile(join(other, path))]);
    assert.ok(a.equals(b), `${path} differs`);
  }
  return paths.length;
}

/** The files below a folder, as sorted relative paths. */
export async function filesOf(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .sort();
}

/** Writes one file of so many bytes, with its folder; returns its path. */
export async function makeFile(path: string, bytes: number): Promise<string> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, randomBytes(bytes));
  assert.equal((await stat(path)).size, bytes);
  return path;
}
