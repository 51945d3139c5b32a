// Tests of the kernel's counts of processor time.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { type TestContext, test } from "node:test";
import { childrenOf } from "#testing/server-process.ts";
import { until } from "#testing/until.ts";
import { processorMsDuring, processorMsOf, processorMsOfTree } from "./processor-time.ts";

const COUNTED_MS = 50;
const COUNT = "i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done";

test("the time of a process and all that it has started counts those that run", async (t) => {
  const pid = await shell(t, "sh -c 'while :; do :; done' & wait");
  await until(() => processorMsOfTree(pid) >= COUNTED_MS);
  assert.ok(processorMsOf(pid) < COUNTED_MS);
});

test("the time of a process and all that it has started counts those that have ended", async (t) => {
  const pid = await shell(t, `sh -c '${COUNT}'; read line`);
  await until(() => childrenOf(pid).length === 0 && processorMsOfTree(pid) >= COUNTED_MS);
  assert.ok(processorMsOf(pid) < COUNTED_MS);
});

test("the time during work is what the process spends from its begin to its end", async (t) => {
  const pid = await shell(t, "while :; do :; done");
  await until(() => processorMsOf(pid) >= COUNTED_MS);
  const until50 = (): Promise<unknown> => {
    const before = processorMsOf(pid);
    return until(() => processorMsOf(pid) >= before + COUNTED_MS);
  };
  assert.ok((await processorMsDuring(pid, until50)) >= COUNTED_MS);
});

/** A shell with the script and its standard input open, ended with all that it has started. */
async function shell(t: TestContext, script: string): Promise<number> {
  const child = spawn("sh", ["-c", script], { stdio: ["pipe", "ignore", "inherit"], detached: true });
  await once(child, "spawn");
  const pid = child.pid ?? 0;
  t.after(async () => {
    const ended = once(child, "exit");
    process.kill(-pid, "SIGKILL");
    await ended;
  });
  return pid;
}
