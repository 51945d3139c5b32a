// Whether a process runs, by its number or by a mark that no later process and no other machine has.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";

/** A process's number, when it began, and short hashes of the machine's start and of the machine. */
const MARK = /^(\d{1,10})_(\d{0,20})_([0-9a-f]{12})_([0-9a-f]{12})$/;
/** How long `ps` may take. */
const PS_TIMEOUT_MS = 5_000;

/** What is known of a marked process; "elsewhere" is another machine, or a container that cannot be seen into. */
export type MarkedState = "own" | "lives" | "gone" | "elsewhere";

/** True while a process of this machine runs, also one of another user. */
export function isProcessAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

let own: string | undefined;

/** The mark of this process: letters, digits and `_`, for names of files too. */
export function ownMark(): string {
  own ??= markOf(process.pid);
  return own;
}

/** The mark of a process of this machine. */
export function markOf(pid: number): string {
  const { machine, start } = hereNow();
  return `${pid}_${startOf(pid) ?? ""}_${start}_${machine}`;
}

/** The number in a mark; undefined for a text that is none. */
export function pidOfMark(mark: string): number | undefined {
  const pid = MARK.exec(mark)?.[1];
  return pid === undefined ? undefined : Number(pid);
}

/** What became of a process; "gone" for a text that is no mark. */
export function stateOfMarked(mark: string): MarkedState {
  const [, pid, began, start, machine] = MARK.exec(mark) ?? [];
  if (pid === undefined) return "gone";
  if (mark === ownMark()) return "own";
  const here = hereNow();
  if (machine !== here.machine) return "elsewhere";
  if (start !== here.start || !isProcessAlive(Number(pid))) return "gone";
  const now = startOf(Number(pid));
  // Of a process that hides its beginning no more is known than that it runs.
  return now === undefined || began === "" || now === began ? "lives" : "gone";
}

let here: { readonly machine: string; readonly start: string } | undefined;

/**
 * Copies of a machine may share its id, so its name counts too. The numbers of processes are those of one
 * container.
 */
function hereNow(): { readonly machine: string; readonly start: string } {
  here ??= {
    machine: hash([hostname(), read("/etc/machine-id"), readLink("/proc/self/ns/pid")]),
    start: hash([read("/proc/sys/kernel/random/boot_id")]),
  };
  return here;
}

/** When a process began: in ticks since boot, or in unix seconds without /proc; undefined where unknown. */
function startOf(pid: number): string | undefined {
  const stat = read(`/proc/${pid}/stat`);
  if (stat === "") return process.platform === "linux" ? undefined : startByPs(pid);
  // After the name, which may hold blanks and parentheses.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  // One that has ended and is not yet waited for holds nothing.
  return fields[0] === "Z" || fields[0] === "X" ? "0" : fields[19];
}

/** When a process began as `ps` tells it, in unix seconds; undefined for one that is gone. */
export function startByPs(pid: number): string | undefined {
  const env = { ...process.env, LC_ALL: "C", TZ: "UTC" };
  try {
    const text = execFileSync("ps", ["-o", "lstart=", "-p", String(pid)], {
      env,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
      timeout: PS_TIMEOUT_MS,
    });
    const startedMs = Date.parse(`${text.trim()} UTC`);
    return Number.isNaN(startedMs) ? undefined : String(startedMs / 1_000);
  } catch {
    return undefined;
  }
}

function hash(parts: readonly string[]): string {
  return createHash("sha256").update(parts.join("\0")).digest("hex").slice(0, 12);
}

function read(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return "";
  }
}

function readLink(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return "";
  }
}
