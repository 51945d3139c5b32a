// Brings a machine to its planned files: writes what is missing, and replaces nothing without consent.
import { mkdir, readdir, readFile } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { GroveError } from "#base/errors.ts";
import { writeFileAtomic } from "#os/atomic-file.ts";
import type { PlannedFile } from "./plan.ts";
import { checksum, type SetupRecord } from "./record.ts";

/** How a planned file stands to what is there. */
export interface FileState {
  readonly file: PlannedFile;
  /**
   * "new": nothing is there. "same": it is as planned. "changed": an earlier run wrote what is there.
   * "edited": somebody has changed it since, or made it.
   */
  readonly state: "new" | "same" | "changed" | "edited";
}

/** The extension of what a replaced file becomes; a later one has a number behind it. */
const BEFORE = ".before-init";

/** Compares planned files with those that are there. */
export async function compare(
  files: readonly PlannedFile[],
  record: SetupRecord | undefined,
): Promise<FileState[]> {
  return Promise.all(
    files.map(async (file): Promise<FileState> => {
      const present = await readFile(file.path, "utf8").catch((error: unknown) => {
        if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
        throw error;
      });
      if (present === undefined) return { file, state: "new" };
      if (present === file.text) return { file, state: "same" };
      return { file, state: record?.files[file.path] === checksum(present) ? "changed" : "edited" };
    }),
  );
}

/** Asks whether a file may be replaced; `why` says what is there. */
export type Consent = (path: string, why: string) => Promise<boolean>;

/** Throws BAD_ARGUMENT before anything is written, where a file may not be replaced. */
export async function requireConsent(states: readonly FileState[], consent: Consent): Promise<void> {
  for (const { file, state } of states) {
    if (state === "new" || state === "same") continue;
    const why =
      state === "changed"
        ? "as the answers before made it"
        : "changed by hand, or not written by 'grove init'";
    if (await consent(file.path, why)) continue;
    throw new GroveError(
      "BAD_ARGUMENT",
      `${file.path} is there (${why}), and is not replaced without consent: nothing was written. ` +
        `Add -replace to have it replaced; the present one is kept as ${await keptPath(file.path)}`,
    );
  }
}

/** Writes what is not there as planned; returns the commands that undo it. */
export async function write(states: readonly FileState[]): Promise<string[]> {
  const undo: string[] = [];
  for (const { file, state } of states) {
    if (state === "same") continue;
    await mkdir(dirname(file.path), { recursive: true, mode: 0o755 });
    if (state === "new") undo.push(`rm ${file.path}`);
    else {
      const kept = await keptPath(file.path);
      await writeFileAtomic(kept, await readFile(file.path), { mode: file.mode });
      undo.push(`mv ${kept} ${file.path}`);
    }
    await writeFileAtomic(file.path, file.text, { mode: file.mode });
  }
  return undo;
}

/** The next free name for a replaced file: what an earlier run has kept is never written over. */
async function keptPath(path: string): Promise<string> {
  const start = `${basename(path)}${BEFORE}`;
  const kept = (await readdir(dirname(path))).filter((name) => name.startsWith(start));
  if (kept.length === 0) return `${path}${BEFORE}`;
  const numbers = kept.map((name) => Number(/^-(\d{1,9})$/.exec(name.slice(start.length))?.[1] ?? 1));
  return `${path}${BEFORE}-${Math.max(...numbers) + 1}`;
}

/** The checksums of planned files, for the record. */
export function checksums(files: readonly PlannedFile[]): Record<string, string> {
  return Object.fromEntries(files.map(({ path, text }) => [path, checksum(text)]));
}
