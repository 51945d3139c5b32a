// Keeps two runs of one command from filling one folder at once: a note beside the transfer's record says which process moves it now.
import { execFile } from "node:child_process";
import { link, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { isProcessAlive } from "#client/signin/process-lock.ts";

/** Looks again when another process has just taken or left it. */
const TRIES = 3;

/** What became of it: the process that holds it, or how to let it go. */
export type Hold = { readonly heldBy: number } | { readonly release: () => Promise<void> };

/**
 * Takes the note for this process; that of a process that is gone is taken over. Where no note can be written the command runs without: the next
 * run then knows nothing of this one either.
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
    // A disk that is full, or a folder that is not ours, keeps nobody from moving files.
  } finally {
    await rm(own, { force: true }).catch(() => undefined);
  }
  return { release: async () => {} };
}

/** The process that a note names, while it runs; undefined for one that is gone, and for this one, whose note an earlier command left. */
async function holderOf(path: string): Promise<number | undefined> {
  const text = await readFile(path, "utf8").catch(() => "");
  const [, pid, start] = /^(\d{1,10}) (\d*)\n$/.exec(text) ?? [];
  const holder = Number(pid ?? 0);
  if (holder === 0 || holder === process.pid || !isProcessAlive(holder)) return undefined;
  // Another process may have got the number since.
  return (await startOf(holder)) === start ? holder : undefined;
}

/** When a process began: in ticks since the machine did, or by `ps` where the system has no /proc; empty where nobody knows. */
async function startOf(pid: number): Promise<string> {
  const stat = await readFile(`/proc/${pid}/stat`, "latin1").catch(() => "");
  if (stat === "" && process.platform !== "linux") return startByPs(pid);
  // Behind the name, which may hold blanks and parentheses, it is the twentieth.
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
