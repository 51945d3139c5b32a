// Runs a subject: the process, its tracer, its output and its calls.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { SubjectLine } from "./subject.fixture.ts";
import { type FollowedCall, follow, type TracePlan } from "./traced-process.ts";

const SUBJECT = fileURLToPath(new URL("subject.fixture.ts", import.meta.url));
const TAIL_CHARACTERS = 2_000;
/**
 * Longer than any operation with its delays, in ticks of this process: they stop while the whole machine
 * does.
 */
const LIMIT_TICKS = 120;
const TICK_MS = 500;

/** Result of a subject. */
export interface SubjectRun {
  readonly lines: readonly SubjectLine[];
  readonly calls: readonly FollowedCall[];
  /** Exit code, or the signal that ended it. */
  readonly end: number | NodeJS.Signals | null;
  readonly stderr: string;
  /** True when it did not end by itself and was killed. */
  readonly isStuck: boolean;
}

/** What a subject is asked to do. */
export interface SubjectSettings {
  /**
   * "open" traces the opening of the store, "operate" all after it, "recover" the opening of the stores of
   * these names below the directory.
   */
  readonly mode: "open" | "operate" | "recover";
  readonly operations: readonly string[];
  readonly plan: TracePlan;
  /** Folder of Node's compile cache. */
  readonly compileCache: string;
}

/** Starts a subject on the plan's directory and traces it to its end. */
export async function runSubject(settings: SubjectSettings): Promise<SubjectRun> {
  const { mode, operations, plan, compileCache } = settings;
  const env = {
    ...process.env,
    NODE_COMPILE_CACHE: compileCache,
    // Calls through io_uring would stay unseen.
    UV_USE_IO_URING: "0",
    UV_THREADPOOL_SIZE: "4",
  };
  const child = spawn(process.execPath, [SUBJECT, plan.directory, mode, ...operations], { env });
  const lines: SubjectLine[] = [];
  let rest = "";
  let stderr = "";
  const ready = Promise.withResolvers<void>();
  child.stdin.on("error", () => undefined);
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    const parts = (rest + text).split("\n");
    rest = parts.pop() ?? "";
    for (const part of parts) {
      const line = JSON.parse(part) as SubjectLine;
      lines.push(line);
      if (line.event === "ready") ready.resolve();
    }
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr = (stderr + text).slice(-TAIL_CHARACTERS);
  });
  const ended = once(child, "close").then(([code, signal]) => {
    ready.reject(new Error(`the subject ended before it was ready: ${stderr}`));
    return (code ?? signal) as SubjectRun["end"];
  });
  await ready.promise;
  const calls = await follow(child, plan);
  let isStuck = false;
  let ticks = 0;
  const late = setInterval(() => {
    if (++ticks < LIMIT_TICKS) return;
    isStuck = true;
    child.kill("SIGKILL");
  }, TICK_MS);
  child.stdin.write("\n");
  const [end, followed] = await Promise.all([ended, calls()]);
  clearInterval(late);
  return { lines, calls: followed, end, stderr, isStuck };
}
