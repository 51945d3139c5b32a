// Runs the Connect conformance suite against the room, as server and client, without known failures.
import assert from "node:assert/strict";
import { execFile, execFileSync } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const MODULE = "connectrpc.com/conformance/cmd/connectconformance@v1.0.5";
const here = dirname(fileURLToPath(import.meta.url));
const cache = join(here, "..", "..", ".cache", "conformance-1.0.5");

/** The runner, built by Go into our cache the first time; undefined without Go or network. */
const findRunner = (): string | undefined => {
  const given = process.env["CONNECTCONFORMANCE"];
  if (given !== undefined) return given;
  const runner = join(cache, "connectconformance");
  if (existsSync(runner)) return runner;
  try {
    mkdirSync(cache, { recursive: true });
    execFileSync("go", ["install", MODULE], {
      env: { ...process.env, GOBIN: cache },
      stdio: "ignore",
      timeout: 480_000,
    });
    return runner;
  } catch {
    return undefined;
  }
};

const runner = findRunner();
const skip = runner === undefined ? `needs Go to build ${MODULE}` : false;

const run = (mode: "server" | "client"): Promise<{ failed: boolean; output: string }> =>
  new Promise((resolve) => {
    const program = [process.execPath, join(here, `${mode}.ts`)];
    const args = ["--conf", join(here, "config.yaml"), "--mode", mode, "--", ...program];
    execFile(
      runner as string,
      args,
      { timeout: 300_000, maxBuffer: 64 * 1_048_576 },
      (error, stdout, stderr) => resolve({ failed: error !== null, output: `${stdout}\n${stderr}` }),
    );
  });

for (const [mode, cases] of [
  ["server", 566],
  ["client", 634],
] as const) {
  test(`the conformance suite passes in ${mode} mode, all ${cases} cases`, {
    skip,
    timeout: 330_000,
  }, async () => {
    const { failed, output } = await run(mode);
    assert.equal(failed, false, output.slice(-8_000));
    assert.match(output, new RegExp(`^${cases} passed, 0 failed$`, "m"));
  });
}
