// Tests the product against the rule of two clocks, and the rule against planted uses.
import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { CLOCK_EXCEPTIONS } from "./clock-exceptions.ts";
import { brokenClockRules, clockSites, isJudged } from "./clock-rules.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url)).replace(/\/$/, "");

test("the product takes time and chance from its ports, and no exception is left over", async () => {
  assert.deepEqual(await brokenClockRules(ROOT), []);
});

test("every exception has a reason of a sentence", () => {
  for (const [path, { why }] of Object.entries(CLOCK_EXCEPTIONS)) assert.match(why, /^[A-Z].{15,}\.$/, path);
});

const PLANTED: readonly (readonly [text: string, use: string])[] = [
  ["setTimeout(f, 5);", "timer"],
  ["const wait = setInterval;", "timer"],
  ["const deps = { setTimeout };", "timer"],
  ["globalThis.setTimeout(f, 5);", "timer"],
  ['import { setTimeout as sleep } from "node:timers/promises";', "timer"],
  ['import timers from "node:timers/promises";', "timer"],
  ['const { setTimeout: wait } = await import("node:timers/promises");', "timer"],
  ["fetch(url, { signal: AbortSignal.timeout(5) });", "timer"],
  ["const now = Date.now();", "wall"],
  ["const now = Date['now']();", "wall"],
  ["const read = Date.now;", "wall"],
  ["const text = new Date().toISOString();", "wall"],
  ["const text = Date();", "wall"],
  ["const startMs = performance.now();", "steady"],
  ["const startMs = globalThis.performance.now();", "steady"],
  ["const startNs = process.hrtime.bigint();", "steady"],
  ["const seconds = process.uptime();", "steady"],
  ["const delayMs = 100 * Math.random();", "chance"],
  ["const deps = { random: Math.random };", "chance"],
];

for (const [text, use] of PLANTED) {
  test(`the rule notices ${text}`, () => {
    const sites = clockSites("src/base/a.ts", `\n${text}\n`);
    assert.deepEqual(new Set(sites.map((site) => site.use)), new Set([use]));
    assert.ok(sites.every((site) => site.line === 2));
  });
}

test("what only looks like a timer or a clock passes", () => {
  const text = `
    import { setImmediate as turnEnd } from "node:timers/promises";
    import type { Timeout } from "node:timers";
    let timer: ReturnType<typeof setTimeout> | undefined;
    socket.setTimeout(5, end);
    clearTimeout(timer);
    const day = new Date(clock.wallMs());
    const parsed = Date.parse(text);
    const port = { setTimeout: 5, now: 3 };
    clock.now();
    Math.round(4.5);
  `;
  assert.deepEqual(clockSites("src/base/a.ts", text), []);
});

test("ports, tests, fixtures and tools are not judged, the product is", () => {
  const judged = [
    "src/base/clock.ts",
    "src/a/b.test.ts",
    "src/a/b.fixture.ts",
    "src/testing/x.ts",
    "tools/x.ts",
  ];
  assert.deepEqual(judged.filter(isJudged), []);
  assert.ok(isJudged("src/base/until-text.ts"));
});

test("a planted use in a file fails, one that is excepted passes, and an exception too many fails", async () => {
  const root = await mkdtemp(join(tmpdir(), "grove-clocks-"));
  try {
    await mkdir(join(root, "src/base"), { recursive: true });
    await writeFile(join(root, "src/base/a.ts"), "// A.\nexport const now = Date.now();\n");
    const why = "It is the only one.";
    assert.deepEqual(await brokenClockRules(root, {}), ["src/base/a.ts:2 Date.now (wall)"]);
    assert.deepEqual(await brokenClockRules(root, { "src/base/a.ts": { uses: ["wall"], why } }), []);
    assert.deepEqual(await brokenClockRules(root, { "src/base/a.ts": { uses: ["wall", "timer"], why } }), [
      "src/base/a.ts timer is excepted, and not used",
    ]);
  } finally {
    await rm(root, { recursive: true });
  }
});
