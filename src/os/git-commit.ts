// The commit of this program, from the build's file or from the clone that it runs from.
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const COMMIT = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/;
/** References that are followed from one to the next. */
const LINKS_MAX = 5;

/** The commit in hexadecimal; null outside a clone when the build recorded none. Never throws. */
export function gitCommit(): string | null {
  const here = fileURLToPath(new URL(".", import.meta.url));
  // src/os or dist/os: the program's folder is two above, and the build writes its file into dist.
  return readCommitFile(join(here, "..", "git-commit")) ?? commitOfClone(resolve(here, "..", ".."));
}

/**
 * The commit that a clone or worktree has checked out; null for other folders. Reads files, starts no git.
 */
export function commitOfClone(folder: string): string | null {
  const marker = join(folder, ".git");
  const link = /^gitdir: (.+)$/.exec(readText(marker) ?? "");
  const gitFolder = link?.[1] === undefined ? marker : resolve(folder, link[1]);
  // A worktree keeps its references in the folder that it shares with its clone.
  const shared = readText(join(gitFolder, "commondir"));
  const folders = shared === undefined ? [gitFolder] : [gitFolder, resolve(gitFolder, shared)];
  let text = readText(join(gitFolder, "HEAD"));
  for (let links = 0; text !== undefined && links < LINKS_MAX; links++) {
    if (COMMIT.test(text)) return text;
    const name = /^ref: (refs\/[\w./-]+)$/.exec(text)?.[1];
    if (name === undefined || name.includes("..")) return null;
    text = reference(folders, name);
  }
  return null;
}

function reference(folders: readonly string[], name: string): string | undefined {
  for (const folder of folders) {
    const loose = readText(join(folder, name));
    if (loose !== undefined) return loose;
  }
  for (const folder of folders) {
    for (const line of (readText(join(folder, "packed-refs")) ?? "").split("\n")) {
      if (line.endsWith(` ${name}`)) return line.slice(0, line.indexOf(" "));
    }
  }
  return undefined;
}

function readCommitFile(path: string): string | null {
  const text = readText(path);
  return text !== undefined && COMMIT.test(text) ? text : null;
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8").trim();
  } catch {
    return undefined;
  }
}
