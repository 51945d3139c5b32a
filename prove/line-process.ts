// Runs a part of a rig as a process that prints lines of JSON and ends when its input does.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import type { Campaign } from "./campaign.ts";
import { endsWithUs } from "./ends-with-us.ts";

/** Time in which a process that is asked to end may finish its work. */
const END_WAIT_MS = 15_000;
const LOOK_INTERVAL_MS = 200;
const ERRORS_KEPT_CHARACTERS = 2_000;

/** The process to start. */
export interface LinePart<Line> {
  /** Its name in errors. */
  readonly name: string;
  readonly command: readonly [program: string, ...words: string[]];
  readonly env?: NodeJS.ProcessEnv;
  /** Receives a line; false asks the process to end. */
  readonly take: (line: Line) => boolean;
}

/**
 * Runs it to its end, at the latest when the campaign is over, together with all processes that it has
 * started. Rejects with its output when it fails.
 */
export function runLinePart<Line>(
  campaign: Campaign,
  { name, command: [program, ...words], env = process.env, take }: LinePart<Line>,
): Promise<void> {
  const child = spawn(program, words, { stdio: ["pipe", "pipe", "pipe"], detached: true, env });
  const killAll = endsWithUs(child, { isGroup: true });
  let errors = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    errors = (errors + text).slice(-ERRORS_KEPT_CHARACTERS);
  });
  child.stdin.on("error", () => undefined);
  let late: NodeJS.Timeout | undefined;
  const stop = (): void => {
    if (late !== undefined) return;
    late = setTimeout(killAll, END_WAIT_MS);
    child.stdin.end();
  };
  const clock = setInterval(() => campaign.isOver() && stop(), LOOK_INTERVAL_MS);
  createInterface({ input: child.stdout }).on("line", (text) => {
    if (!take(JSON.parse(text) as Line)) stop();
  });
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => {
      clearInterval(clock);
      clearTimeout(late);
      killAll();
      if (code === 0 || late !== undefined) resolve();
      else reject(new Error(`${name} ended with ${code ?? "a signal"}: ${errors}`));
    });
  });
}
