// Holds a folder for one run of a command at a time, by a note beside the transfer's record.
import { execFile } from "node:child_process";
import { link, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { isProcessAlive } from "#os/process-alive.ts";

/** Attempts when another process takes or releases the note meanwhile. */
const TRIES = 3;

/** The process that holds it, or the release of the hold. */
export type Hold = { readonly heldBy: number } | { readonly release: () => Promise<void> };

/**
 * Takes the note for this process, also from a dead one. Where none can be written, the command runs without:
 * the next run cannot find this one then.
 */
export async function holdTransfer(path: string): Promise<Hold> {
  const own = `${path}.${process.pid}`;
  try {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    await writeFile(own, `${process.pid} ${await startOf(process.pid)}\n`, { mode: 0o600 });
    for (let tries = 0; tries < TRIES; tries++) {
      try {
        // Unlike writing it in place this never shows others half a note.
        await link(own, path);
        return { release: () => rm(path, { force: true }) };
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "EEXIST") break;
      }
      const holder = await holderOf(path);
      if (holder !== undefined) return { heldBy: holder };
      await rm(path, { force: true });
    }
  } catch {
    // A full disk or an unwritable folder must not prevent the transfer.
  } finally {
    await rm(own, { force: true }).catch(() => undefined);
  }
  return { release: async () => {} };
}

/** The live process that a note names; undefined for a dead one, and for this one's earlier commands. */
async function holderOf(path: string): Promise<number | undefined> {
  const text = await readFile(path, "utf8").catch(() => "");
  const [, pid, start] = /^(\d{1,10}) (\d*)\n$/.exec(text) ?? [];
  const holder = Number(pid ?? 0);
  if (holder === 0 || holder === process.pid || !isProcessAlive(holder)) return undefined;
  // Another process may have got the number since.
  return (await startOf(holder)) === start ? holder : undefined;
}

/** When a process began: in ticks since boot, or by `ps` on systems without /proc; empty where unknown. */
async function startOf(pid: number): Promise<string> {
  const stat = await readFile(`/proc/${pid}/stat`, "latin1").catch(() => "");
  if (stat === "" && process.platform !== "linux") return startByPs(pid);
  // After the name, which may hold blanks and parentheses, it is the twentieth field.
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? "";
}

/** When a process began as `ps` tells it, in unix seconds; empty for one that is gone. */
export function startByPs(pid: number): Promise<string> {
  const env = { ...process.env, LC_ALL: "C", TZ: "UTC" };
  return new Promise((resolve) => {
    execFile("ps", ["-o", "lstart=", "-p", String(pid)], { env }, (_error, text) => {
      const startedMs = Date.parse(`${text.trim()} UTC`);
      resolve(Number.isNaN(startedMs) ? "" : String(startedMs / 1_000));
    });
  });
}
