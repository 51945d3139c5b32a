// Tests the test files against the rule of waits, and the rule against planted sleeps.
import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { brokenSleepRules, isTestCode, longSleeps } from "./sleep-rules.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url)).replace(/\/$/, "");
const IMPORT = 'import { setTimeout as delay } from "node:timers/promises";';

test("no test sleeps for a second or more", async () => {
  assert.deepEqual(await brokenSleepRules(ROOT), []);
});

test("an exception that is no longer needed fails", async () => {
  const root = scratchFolder("grove-sleeps-");
  await mkdir(join(root, "tests"));
  await writeFile(join(root, "tests/screenshots.ts"), `${IMPORT}\nawait delay(2_000);\n`);
  await writeFile(join(root, "tests/nothing.ts"), `${IMPORT}\nawait delay(2);\n`);
  const broken = await brokenSleepRules(root, { "tests/screenshots.ts": "a", "tests/nothing.ts": "b" });
  assert.deepEqual(broken, ["tests/nothing.ts is excepted, and does not sleep"]);
});

for (const planted of [
  "await delay(1_000);",
  "await delay(1_500, undefined, { signal });",
  "const WAIT_MS = 2 * 600; await delay(WAIT_MS);",
  "await delay(30 * 1_000 - 500);",
  "import { LEASE_MS } from './limits.ts'; await delay(LEASE_MS);",
  "await new Promise((resolve) => setTimeout(resolve, 2_000));",
  "await page.waitForTimeout(12_000);",
]) {
  test(`the rule notices ${planted}`, () => {
    assert.deepEqual(
      longSleeps("tests/a.test.ts", `${IMPORT}\n${planted}\n`).map(({ line }) => line),
      [2],
    );
  });
}

test("short sleeps, guards, bounds of something else and moved clocks pass", () => {
  const text = `${IMPORT}
    await delay(999);
    for (let tries = 0; tries < 1_000 && !isSo(); tries++) await delay(10);
    const guard = setTimeout(() => child.kill("SIGKILL"), 20_000);
    await Promise.race([ended, delay(5_000)]);
    const late = delay(60_000, undefined, { ref: false });
    const stuck = delay(60_000).then(() => "stuck");
    clock.sleep(50_000);
    await waitFor(ms);
    await delay(ms);
  `;
  assert.deepEqual(longSleeps("tests/a.test.ts", text), []);
});

test("tests, fixtures, what they share and all of tests/ are judged, the product and the rigs are not", () => {
  const paths = ["src/a/b.test.ts", "src/a/b.fixture.ts", "src/testing/x.ts", "tests/e2e/y.ts"];
  assert.ok(paths.every(isTestCode));
  assert.deepEqual(
    ["src/a/b.ts", "prove/quota/rig.ts", "prove/a/b.fixture.ts", "tools/test.ts"].filter(isTestCode),
    [],
  );
});
