// Stopping on signals, watched from outside on real processes.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const FIXTURE = fileURLToPath(new URL("run.fixture.ts", import.meta.url));

interface Ending {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly lines: string[];
}

async function runFixture(how: string, signals: readonly NodeJS.Signals[]): Promise<Ending> {
  const child = spawn(process.execPath, [FIXTURE, how], { stdio: ["ignore", "pipe", "ignore"] });
  const guard = setTimeout(() => child.kill("SIGKILL"), 20_000);
  let text = "";
  let sent = 0;
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
    text += chunk;
    const heard = text.split("\n").filter((line) => line === "started" || line === "stopping").length;
    while (sent < Math.min(heard, signals.length)) child.kill(signals[sent++]);
  });
  const [code, signal] = (await once(child, "close")) as [number | null, NodeJS.Signals | null];
  clearTimeout(guard);
  return { code, signal, lines: text.trim().split("\n") };
}

for (const signal of ["SIGINT", "SIGTERM"] as const) {
  test(`${signal} stops gracefully and the process ends with 0 (G-01)`, { timeout: 30_000 }, async () => {
    const ending = await runFixture("stop", [signal]);
    assert.deepEqual(ending, {
      code: 0,
      signal: null,
      lines: ["started", "stopping", "stopped", "after"],
    });
  });
}

test("a stop beyond the grace time ends by SIGKILL, and so do handles left open (trap 20)", {
  timeout: 30_000,
}, async () => {
  const hung = await runFixture("hangs", ["SIGTERM"]);
  assert.equal(hung.signal, "SIGKILL");
  assert.deepEqual(hung.lines, ["started", "stopping", "stop_timeout"]);
  const leaked = await runFixture("leaks", ["SIGTERM"]);
  assert.equal(leaked.signal, "SIGKILL");
  assert.deepEqual(leaked.lines, ["started", "stopping", "stopped", "after", "stop_timeout"]);
});

test("a second signal ends a hung stop at once", { timeout: 30_000 }, async () => {
  const ending = await runFixture("hangs", ["SIGINT", "SIGINT"]);
  assert.equal(ending.signal, "SIGKILL");
  assert.deepEqual(ending.lines, ["started", "stopping"]);
});

test("failures of start, run and stop end with 1, an end by itself with 0", { timeout: 30_000 }, async () => {
  assert.equal((await runFixture("bad start", [])).code, 1);
  assert.equal((await runFixture("ends badly", [])).code, 1);
  assert.equal((await runFixture("bad stop", ["SIGTERM"])).code, 1);
  assert.equal((await runFixture("ends", [])).code, 0);
});
