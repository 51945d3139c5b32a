// Traces a process's calls on a directory, and kills it at an exact call or makes that call fail.
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const TRACER = fileURLToPath(new URL("tracer.py", import.meta.url));
/** Debian's own, since others on PATH may be scripts that look for one first. */
const DEBIAN_PYTHON = "/usr/bin/python3";
const PYTHON = existsSync(DEBIAN_PYTHON) ? DEBIAN_PYTHON : "python3";
/** File of the kernel that lists the actions of seccomp filters. */
const SECCOMP_ACTIONS = "/proc/sys/kernel/seccomp/actions_avail";
const CHUNK_NAME = /[0-9a-f]{32}/g;

/** One call on a file below the directory, in the order in which all threads began them. */
export interface FollowedCall {
  /** From 1. */
  readonly n: number;
  readonly tid: number;
  readonly name: string;
  /** Path below the directory; "(told)" for writes to standard output. */
  readonly path: string;
  readonly length?: number;
  /** Missing when the process ended in it. */
  readonly result?: number;
  /** The number of the last call begun before this one ended. */
  readonly end?: number;
  readonly killed?: "entry" | "exit";
  readonly injected?: number;
  readonly delayed?: boolean;
  readonly shortened?: number;
  /** The directory before the call was made, and after it. */
  readonly copies?: Readonly<Partial<Record<"entry" | "exit", CopyTaken>>>;
}

/** The directory at one point of the run, while every thread was stopped. */
export interface CopyTaken {
  /** See `layOut`. */
  readonly listing: string;
  /** Lines on the process's standard output by then. */
  readonly told: number;
}

/** The path of a call as a kind, the same for every chunk. */
export const kindOf = ({ path }: FollowedCall): string => kindOfPath(path) || "data directory";

/** A path below a data directory as a kind. */
export const kindOfPath = (path: string): string =>
  path.replace(CHUNK_NAME, "*").replace(/chunks\/[0-9a-f]{2}/g, "chunks/**");

/** How the process is traced and disturbed. */
export interface TracePlan {
  /** Absolute, without symbolic links. */
  readonly directory: string;
  /** Traces reads and closes as well, and every opening. */
  readonly withReads?: boolean;
  /** Traces the opening of directories for listings as well. */
  readonly withListings?: boolean;
  /** Counts writes to standard output, by which a subject acknowledges operations. */
  readonly tells?: boolean;
  readonly kill?: { readonly at: number; readonly when: "entry" | "exit" };
  /** A folder to which the directory is copied at every entry and exit of a call. */
  readonly copies?: string;
  readonly fault?: Fault & { readonly at: number; readonly forever: boolean; readonly times?: number };
}

/** How a call fails; `forever` means every later call of the same name as well, `times` at most. */
export type Fault = { readonly errno: number } | { readonly delayMs: number } | { readonly short: true };

/** Why this machine cannot trace processes; undefined when it can. */
export function lacksTracing(): string | undefined {
  if (process.platform !== "linux" || process.arch !== "x64")
    return "the tracer knows the system calls of Linux on x64 only";
  if (spawnSync(PYTHON, ["-c", "import ctypes"]).status !== 0) return "python3 is not installed";
  if (!existsSync(SECCOMP_ACTIONS) || !readFileSync(SECCOMP_ACTIONS, "utf8").includes("trace"))
    return "the kernel has no seccomp filters that trace";
  return undefined;
}

/**
 * Traces a process from now on. Resolves once every thread is traced; the result waits for its end and
 * returns its calls.
 */
export async function follow(child: ChildProcess, plan: TracePlan): Promise<() => Promise<FollowedCall[]>> {
  const tracer = spawn(PYTHON, ["-S", "-E", "-B", TRACER, String(child.pid), JSON.stringify(plan)], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  let stdout = "";
  let stderr = "";
  const attached = Promise.withResolvers<void>();
  tracer.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
    if (stdout.includes("\n")) attached.resolve();
  });
  tracer.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  const ended = once(tracer, "close").then(([code]) => {
    const error = new Error(`the tracer ended with ${String(code)}: ${stderr}`);
    attached.reject(error);
    if (code !== 0) throw error;
    const [, ...lines] = stdout.trimEnd().split("\n");
    return lines.map((line) => JSON.parse(line) as FollowedCall);
  });
  ended.catch(() => undefined);
  await attached.promise;
  return () => ended;
}
