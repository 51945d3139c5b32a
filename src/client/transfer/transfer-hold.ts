// Holds a folder for one run of a command at a time, by a note beside the transfer's record.
import { link, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { ownMark, pidOfMark, stateOfMarked } from "#os/process-alive.ts";

/** Attempts when another process takes or releases the note meanwhile. */
const TRIES = 3;

/** The process that holds it, or the release of the hold. */
export type Hold = { readonly heldBy: number } | { readonly release: () => Promise<void> };

/**
 * Takes the note for this process, also from a dead one and from one of another machine: the same path may be
 * another folder there, and nobody could say when it ends. Where none can be written, the command runs without:
 * the next run cannot find this one then.
 */
export async function holdTransfer(path: string): Promise<Hold> {
  const note = `${ownMark()}\n`;
  const own = `${path}.${ownMark()}`;
  try {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    await writeFile(own, note, { mode: 0o600 });
    for (let tries = 0; tries < TRIES; tries++) {
      try {
        // Unlike writing it in place this never shows others half a note.
        await link(own, path);
        return { release: () => release(path, note) };
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "EEXIST") break;
      }
      const mark = (await noteAt(path)).trimEnd();
      // This process's own note is of an earlier command.
      if (stateOfMarked(mark) === "lives") return { heldBy: pidOfMark(mark) ?? 0 };
      await rm(path, { force: true });
    }
  } catch {
    // A full disk or an unwritable folder must not prevent the transfer.
  } finally {
    await rm(own, { force: true }).catch(() => undefined);
  }
  return { release: async () => {} };
}

/** Another machine may have taken the note meanwhile. */
async function release(path: string, note: string): Promise<void> {
  if ((await noteAt(path)) === note) await rm(path, { force: true });
}

function noteAt(path: string): Promise<string> {
  return readFile(path, "utf8").catch(() => "");
}
