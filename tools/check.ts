// Runs every `check:…` script of package.json, two at a time; prints a line each, and the output of failures.
import { spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { styleText } from "node:util";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const AT_ONCE = 2;

interface Outcome {
  readonly passed: boolean;
  readonly seconds: number;
  readonly output: string;
}

/** Runs a line of package.json as npm does: by the shell, with node_modules/.bin first in PATH. */
async function runScript(line: string): Promise<Outcome> {
  const started = performance.now();
  const child = spawn(line, {
    cwd: ROOT,
    shell: true,
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, PATH: `${ROOT}node_modules/.bin:${process.env["PATH"]}` },
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
  }
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once("error", reject).once("close", resolve);
  });
  return { passed: code === 0, seconds: (performance.now() - started) / 1_000, output };
}

const manifest = JSON.parse(await readFile(`${ROOT}package.json`, "utf8")) as {
  scripts: Record<string, string>;
};
const waiting = Object.entries(manifest.scripts).filter(([name]) => name.startsWith("check:"));
const failed: string[] = [];

async function work(): Promise<void> {
  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
    const [name, line] = next;
    const { passed, seconds, output } = await runScript(line);
    const mark = passed ? styleText("green", "✔") : styleText("red", "✖");
    console.log(`${mark} ${name.slice("check:".length).padEnd(12)} ${seconds.toFixed(1)} s  ${line}`);
    if (passed) continue;
    failed.push(name);
    console.log(output);
  }
}

await Promise.all(Array.from({ length: AT_ONCE }, work));
if (failed.length > 0) {
  console.log(
    `Failed: ${failed.join(", ")}. Each runs alone with 'npm run NAME'; 'npm run fix' puts the format right.`,
  );
  process.exitCode = 1;
}
