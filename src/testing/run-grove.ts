// Runs a program to its end with given input, and collects its exit code and output.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { GROVE_ENTRY } from "./grove-program.ts";

/** The result of a program. */
export interface Outcome {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** Options besides the program's arguments. */
export interface RunOptions {
  /** Standard input; default none. */
  readonly input?: string;
  /** Default this process's environment. */
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
  // A program may end without having read its input.
  child.stdin.on("error", () => undefined);
  child.stdin.end(input);
  const [code] = (await once(child, "close")) as [number | null];
  return { code, out, err };
}

/** Runs `grove` with arguments. */
export function runGrove(words: readonly string[], options?: RunOptions): Promise<Outcome> {
  return runProgram(process.execPath, [GROVE_ENTRY, ...words], options);
}
