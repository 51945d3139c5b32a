// Tests by a real process's system calls that each acknowledgement comes after all its flushes (A-01 to
//
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { temporaryDirectory } from "#testing/temporary-folder.ts";
import { CrashManifest, startLoad } from "./crash-manifest.fixture.ts";
import { openTestStorage } from "./store.fixture.ts";

const hasStrace = spawnSync("strace", ["-V"]).status === 0;
const needsStrace = hasStrace ? {} : { skip: "strace is not installed" };

/** A successful system call, in the order of ends. */
interface Call {
  readonly name: string;
  readonly text: string;
  /** Path of its descriptor, or of the file that it opened. */
  readonly path: string;
}

/** Joins the halves of calls that other threads' calls interrupted, and keeps successful ones. */
function callsOf(trace: string): Call[] {
  const begun = new Map<string, string>();
  const calls: Call[] = [];
  for (const line of trace.split("\n")) {
    const [, thread = "", rest = ""] = /^(\d+)\s+(.*)$/.exec(line) ?? [];
    const unfinished = /^(.*) <unfinished \.\.\.>$/.exec(rest);
    if (unfinished !== null) {
      begun.set(thread, unfinished[1] ?? "");
      continue;
    }
    const resumed = /^<\.\.\. \w+ resumed>(.*)$/.exec(rest);
    const text = resumed === null ? rest : (begun.get(thread) ?? "") + (resumed[1] ?? "");
    if (/= -1 /.test(text)) continue;
    const name = /^\w+/.exec(text)?.[0] ?? "";
    const opened = /= \d+<([^>]+)>$/.exec(text)?.[1];
    const used = /^\w+\(\d+<([^>]+)>/.exec(text)?.[1];
    calls.push({ name, text, path: opened ?? used ?? "" });
  }
  return calls;
}

/**
 * What a power cut would take after an acknowledgement: unflushed chunk files, their directories and the log.
 */
function unflushed(step: readonly Call[]): string[] {
  const problems: string[] = [];
  const lastLogFlush = step.findLastIndex(({ name, path }) => name === "fsync" && path.endsWith(".db-wal"));
  if (lastLogFlush < 0) problems.push("the log was not flushed");
  const before = step.slice(0, Math.max(0, lastLogFlush));
  for (const [index, { name, text, path }] of before.entries()) {
    if (name !== "openat" || !text.includes("O_EXCL") || !path.includes("/chunks/")) continue;
    const after = before.slice(index);
    const lastWrite = after.findLastIndex((call) => call.name.startsWith("pwrite") && call.path === path);
    const isFlushed = after.slice(lastWrite).some((call) => call.name.endsWith("sync") && call.path === path);
    if (!isFlushed) problems.push(`${path} was not flushed`);
    const directory = path.slice(0, path.lastIndexOf("/"));
    const isEntryFlushed = after.some((call) => call.name === "fsync" && call.path === directory);
    if (!isEntryFlushed) problems.push(`${directory} was not flushed`);
  }
  return problems;
}

test(
  "chunk files, their directories and the log are flushed, in this order, before each acknowledgement",
  needsStrace,
  async (context) => {
    const directory = temporaryDirectory(context);
    await (await openTestStorage(directory)).close();
    const trace = join(temporaryDirectory(context), "trace");
    const strace = [
      "-y",
      "-s",
      "200",
      "-o",
      trace,
      "-e",
      "trace=openat,pwritev,pwrite64,fsync,fdatasync,write",
    ];
    // Delays flushes: one that the server does not await would come too late.
    strace.push("-e", "inject=fdatasync:delay_enter=50ms");
    const manifest = new CrashManifest();
    await startLoad(directory, manifest, { mode: "once", firstNumber: 2, strace, poolThreads: 4 }).exited;
    const calls = callsOf(readFileSync(trace, "utf8"));
    let begin = 0;
    let steps = 0;
    for (const [index, { name, text }] of calls.entries()) {
      if (name !== "write" || !text.includes("event")) continue;
      if (text.includes('\\"begin\\"')) begin = index;
      if (!text.includes('\\"done\\"') || text.includes('\\"failure\\"')) continue;
      assert.deepEqual(unflushed(calls.slice(begin, index)), [], text);
      steps++;
    }
    assert.equal(steps, manifest.acknowledged - 1);
    assert.ok(steps > 10);
    assert.ok(calls.some(({ path }) => path.includes("/chunks/")));
  },
);
