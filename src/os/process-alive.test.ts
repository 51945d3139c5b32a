// Tests of the mark that names a process beyond its number.
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { after, test } from "node:test";
import { markOf, ownMark, pidOfMark, startByPs, stateOfMarked } from "./process-alive.ts";

const WAITS = 'process.stdin.resume(); process.stdout.write("runs")';

const children: ChildProcess[] = [];
after(() => {
  for (const child of children) child.kill("SIGKILL");
});

async function startChild(): Promise<ChildProcess> {
  const child = spawn(process.execPath, ["-e", WAITS], { stdio: ["pipe", "pipe", "inherit"] });
  children.push(child);
  await once(child.stdout, "data");
  return child;
}

/** A mark with one of its four parts changed. */
function changed(mark: string, part: number, text: string): string {
  return mark
    .split("_")
    .map((old, at) => (at === part ? text : old))
    .join("_");
}

test("a marked process lives until it ends", async () => {
  const child = await startChild();
  const mark = markOf(child.pid ?? 0);
  assert.equal(stateOfMarked(mark), "lives");
  assert.equal(pidOfMark(mark), child.pid);
  child.kill("SIGKILL");
  await once(child, "exit");
  assert.equal(stateOfMarked(mark), "gone");
});

test("this process knows its own mark", () => {
  assert.equal(stateOfMarked(ownMark()), "own");
  assert.equal(pidOfMark(ownMark()), process.pid);
});

test("a living process is not taken for an earlier one of its number, nor for one from before the machine's start", async () => {
  const child = await startChild();
  const mark = markOf(child.pid ?? 0);
  assert.equal(stateOfMarked(changed(mark, 1, "1")), "gone");
  assert.equal(stateOfMarked(changed(mark, 2, "0123456789ab")), "gone");
});

test("of another machine's process nothing is known, whatever has its number here", async () => {
  const child = await startChild();
  assert.equal(stateOfMarked(changed(markOf(child.pid ?? 0), 3, "0123456789ab")), "elsewhere");
  assert.equal(stateOfMarked(changed(ownMark(), 3, "0123456789ab")), "elsewhere");
});

test("a text that is no mark names no process", () => {
  for (const text of ["", String(process.pid), `${process.pid} 1`, `${ownMark()}0`, `x${ownMark()}`]) {
    assert.equal(stateOfMarked(text), "gone", text);
    assert.equal(pidOfMark(text), undefined);
  }
});

test("where there is no /proc it is known when a process began, so that its number under another program holds nothing", async () => {
  assert.match(startByPs(process.pid) ?? "", /^\d{10}$/);
  const gone = spawn(process.execPath, ["-e", ""]);
  await once(gone, "exit");
  assert.equal(startByPs(gone.pid ?? 0), undefined);
});
