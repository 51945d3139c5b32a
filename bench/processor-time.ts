// Processor time of finished children and all their children, from the kernel's count.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { childrenOf } from "#testing/server-process.ts";
import { median } from "./measure.ts";

/** Clock ticks a second in /proc (USER_HZ): 100 on every Linux that Node runs on. */
const TICKS_PER_SECOND = 100;

/** The cost of one run of a command, averaged over many. */
export interface CommandCost {
  /** Median time from start to end. */
  readonly wallMs: number;
  /** Mean of user and system time of the whole process tree. */
  readonly processorMs: number;
}

/**
 * Runs a command `runs` times in sequence without its output. No other child of this process may end
 * meanwhile. Throws when a run does not end with exit code 0.
 */
export async function costOfCommand(
  command: readonly [string, ...string[]],
  options: { runs: number; env?: Readonly<Record<string, string>> },
): Promise<CommandCost> {
  const [file, ...args] = command;
  const wallMs: number[] = [];
  const before = endedChildrenMs("self");
  for (let run = 0; run < options.runs; run += 1) {
    const start = performance.now();
    const child = spawn(file, args, {
      stdio: ["ignore", "ignore", 2],
      env: { ...process.env, ...options.env },
    });
    const [code] = (await once(child, "exit")) as [number | null];
    wallMs.push(performance.now() - start);
    if (code !== 0) throw new Error(`${command.join(" ")} ended with ${code ?? "a signal"}`);
  }
  // The kernel keeps nanoseconds and shows ticks of 10 ms, so the sum over many runs is exact enough.
  return { wallMs: median(wallMs), processorMs: (endedChildrenMs("self") - before) / options.runs };
}

/** User and system time of a running process so far, all its threads included. */
export function processorMsOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return ((Number(fields[11]) + Number(fields[12])) * 1000) / TICKS_PER_SECOND;
}

/** Processor time in ms that a running process spends while `work` runs. */
export async function processorMsDuring(pid: number, work: () => Promise<unknown>): Promise<number> {
  const before = processorMsOf(pid);
  await work();
  return processorMsOf(pid) - before;
}

/** User and system time of a running process so far and of all that it has started. */
export function processorMsOfTree(pid: number): number {
  try {
    const below = childrenOf(pid).map(processorMsOfTree);
    return below.reduce((sum, ms) => sum + ms, processorMsOf(pid) + endedChildrenMs(pid));
  } catch (error) {
    // It has ended since its parent was looked at, which has its time now.
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return 0;
    throw error;
  }
}

/** User and system time of all children that have ended and been waited for (proc(5): cutime and cstime). */
function endedChildrenMs(pid: number | "self"): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return ((Number(fields[13]) + Number(fields[14])) * 1000) / TICKS_PER_SECOND;
}

/** The largest resident memory of a running process so far, in MB (10^6 bytes). */
export function peakMemoryMb(pid: number): number {
  const peak = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"));
  if (peak === null) throw new Error("the kernel does not say how much memory was used");
  return (Number(peak[1]) * 1024) / 1e6;
}
