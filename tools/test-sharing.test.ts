// Tests which test files may share a process.
import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { before, test } from "node:test";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { SharingRule } from "./test-sharing.ts";

const FILES: Readonly<Record<string, string>> = {
  "src/a/pure.test.ts": 'import { test } from "node:test"; import { a } from "./product.ts";',
  // What the product does, its own tests answer for.
  "src/a/product.ts": "process.title",
  "src/a/state.test.ts": "process.exitCode = 1",
  "src/a/variable.test.ts": 'process["env"]',
  "src/a/set.test.ts": 'process.env["TZ"] = "UTC"',
  "src/a/handed.test.ts": "Object.assign(process.env, { TZ: 'UTC' })",
  "src/a/told.test.ts":
    'if (process.env["TZ"] === undefined) process.kill(pid); spawn(process.execPath, { ...process.env });',
  "src/a/named.test.ts": 'import { process } from "./grove-process.ts"; process.isRunning();',
  "src/a/global.test.ts": "globalThis.fetch = other;",
  "src/a/timers.test.ts": "t.mock.timers.enable();",
  "src/a/rig.test.ts": "testShortForm(leases);",
  "src/a/child.test.ts": 'import { spawn } from "node:child_process";',
  "src/a/memory.test.ts": 'readFile("/proc/self/status")',
  "src/a/helped.test.ts": 'import { start } from "#b/helper.fixture.ts";',
  "src/b/helper.fixture.ts": 'import { run } from "./runner.fixture.ts";',
  "src/b/runner.fixture.ts": 'import type { B } from "./helper.fixture.ts"; await import("node:v8");',
  "src/a/circle.test.ts":
    'import { one } from "./one.fixture.ts"; const text = `from "./absent.fixture.ts"`;',
  "src/a/one.fixture.ts": 'import { two } from "./two.fixture.ts";',
  "src/a/two.fixture.ts": 'import { one } from "./one.fixture.ts";',
};
let rule: SharingRule;

before(async () => {
  const root = scratchFolder("grove-sharing-");
  for (const [path, text] of Object.entries(FILES)) {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), text);
  }
  rule = new SharingRule(root, { "#b/*": "./src/b/*" });
});

test("a test file that reaches for its whole process has it alone, as has one whose helper does", async () => {
  const reasons = {
    state: "src/a/state.test.ts: process.exitCode",
    set: "src/a/set.test.ts: process.env",
    handed: "src/a/handed.test.ts: process.env",
    variable: "src/a/variable.test.ts: process[",
    global: "src/a/global.test.ts: globalThis",
    timers: "src/a/timers.test.ts: mock.",
    rig: "src/a/rig.test.ts: testShortForm",
    memory: "src/a/memory.test.ts: /proc/self",
    helped: "src/b/runner.fixture.ts: node:v8",
  };
  for (const [name, reason] of Object.entries(reasons))
    assert.equal(await rule.reasonAlone(`src/a/${name}.test.ts`), reason);
});

test("a test file of nothing but calls shares one, also where it starts others or helpers import each other", async () => {
  for (const name of ["pure", "circle", "child", "told", "named"])
    assert.equal(await rule.reasonAlone(`src/a/${name}.test.ts`), undefined, name);
});
