// Rebuilds folders from copies that were taken while their process was stopped, and returns their outlines.
import { chmod, copyFile, link, mkdir, readdir, readFile, stat, utimes } from "node:fs/promises";
import { join } from "node:path";
import { kindOfPath } from "./traced-process.ts";

const MODE_OF_A_FOLDER = 0o700;

/** An entry of the listing that copies.py writes. */
interface Entry {
  readonly path: string;
  readonly mode: number;
  /** Seconds. */
  readonly mtime: number;
  /** Missing for a folder. */
  readonly size?: number;
  readonly content?: string;
  /** The path of an earlier entry that is the same file (a hard link). */
  readonly sameAs?: string;
}

/** Makes a directory as it was when the copy was taken; `copies` is the folder of the run's copies. */
export async function layOut(copies: string, listing: string, to: string): Promise<void> {
  const entries = await entriesOf(copies, listing);
  await mkdir(to, { mode: MODE_OF_A_FOLDER });
  for (const { path, mode, mtime, content, sameAs } of entries) {
    const at = join(to, path);
    if (sameAs !== undefined) await link(join(to, sameAs), at);
    else if (content === undefined) await mkdir(at);
    else await copyFile(join(copies, content), at);
    await chmod(at, mode);
    await utimes(at, mtime, mtime);
  }
}

/**
 * Returns the files of a copy by kind and size, which are the same for two runs stopped at the same point.
 */
export async function outlineOfCopy(copies: string, listing: string): Promise<string> {
  const entries = await entriesOf(copies, listing);
  return outline(entries.flatMap(({ path, size }) => (size === undefined ? [] : [{ path, size }])));
}

/** The same for a directory. */
export async function outlineOf(directory: string): Promise<string> {
  const found = await readdir(directory, { recursive: true, withFileTypes: true });
  const paths = found.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const files = paths.map(async (at) => ({
    path: at.slice(directory.length + 1),
    size: (await stat(at)).size,
  }));
  return outline(await Promise.all(files));
}

const outline = (files: readonly { path: string; size: number }[]): string =>
  files
    .map(({ path, size }) => `${kindOfPath(path)} ${size}`)
    .sort()
    .join("\n");

const entriesOf = async (copies: string, listing: string): Promise<readonly Entry[]> =>
  JSON.parse(await readFile(join(copies, listing), "utf8")) as readonly Entry[];
