// Tests the bundled program of test runs: it does what the sources do, and the same sources are bundled once.
import assert from "node:assert/strict";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { GROVE_ENTRY } from "#testing/grove-program.ts";
import { runProgram } from "#testing/run-grove.ts";
import { bundleProgram, withoutLastingLoads } from "./test-program.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

test("the bundle says what the sources say, and is made once", async () => {
  const folder = await bundleProgram(ROOT);
  const launcher = join(folder, "grove");
  const made = statSync(launcher).mtimeMs;
  for (const words of [["--version"], ["--help"], ["fileserver", "--help"], ["ls", "-nonsense"]]) {
    const [bundled, fromSources] = await Promise.all([
      runProgram(launcher, words),
      runProgram(join(ROOT, "grove"), words),
    ]);
    assert.deepEqual(bundled, fromSources, words.join(" "));
  }
  const [bundled, fromSources] = [folder, ROOT].map((home) => readFileSync(join(home, "grove"), "utf8"));
  assert.equal(bundled, withoutLastingLoads(fromSources ?? ""));
  // Rigs start it as users do.
  assert.equal(readFileSync(join(folder, "grove-of-users"), "utf8"), fromSources);
  assert.equal(await bundleProgram(ROOT), folder);
  assert.equal(statSync(launcher).mtimeMs, made);
});

test("a run of many files starts the bundle", () => {
  const bundle = process.env["GROVE_TEST_PROGRAM"];
  assert.equal(
    GROVE_ENTRY,
    bundle === undefined ? join(ROOT, "src/bin/grove.ts") : join(bundle, "dist/bin/grove.js"),
  );
});
