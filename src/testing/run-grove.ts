// Runs a program to its end, as tests of commands do: what it is given, its exit code, and all that it said.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

/** The program's entry, for Node. */
export const GROVE_ENTRY: string = fileURLToPath(new URL("../bin/grove.ts", import.meta.url));

/** How a program ended. */
export interface Outcome {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** What a program is started with beside its words. */
export interface RunOptions {
  /** What it reads; default nothing. */
  readonly input?: string;
  /** Default this process's. */
  readonly env?: NodeJS.ProcessEnv;
}

/** Runs any program. */
export async function runProgram(
  program: string,
  words: readonly string[],
  { input = "", env = process.env }: RunOptions = {},
): Promise<Outcome> {
  const child = spawn(program, words, { stdio: ["pipe", "pipe", "pipe"], env });
  let [out, err] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    out += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    err += text;
  });
  // One that ends without having read what it was given.
  child.stdin.on("error", () => undefined);
  child.stdin.end(input);
  const [code] = (await once(child, "close")) as [number | null];
  return { code, out, err };
}

/** Runs `grove` with words. */
export function runGrove(words: readonly string[], options?: RunOptions): Promise<Outcome> {
  return runProgram(process.execPath, [GROVE_ENTRY, ...words], options);
}
