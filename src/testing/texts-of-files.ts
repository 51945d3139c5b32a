// The contents of all files below a folder of running servers, to search them for what must stand in none.
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";

/** A file and its bytes, one character each. */
export interface FileText {
  readonly path: string;
  readonly text: string;
}

/** Reads all files below a folder. Rejects where one cannot be read that is still there. */
export async function textsOfFiles(folder: string): Promise<FileText[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const texts = await Promise.all(paths.map((path) => readFile(path, "latin1").catch(whenGone)));
  return paths.flatMap((path, at) => {
    const text = texts[at];
    return text === undefined ? [] : [{ path, text }];
  });
}

/** A server may have renamed a file since it was listed: its text lies under the name that it has now. */
function whenGone(error: NodeJS.ErrnoException): undefined {
  if (error.code !== "ENOENT") throw error;
}
