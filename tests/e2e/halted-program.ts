// Halts a program in the middle of its work, however late a look at that work comes.
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { until } from "#testing/until.ts";
import type { Program } from "./processes.ts";

/** Time in which a client does a small part of its work: a twentieth of what it has taken so far. */
const SLICE_MS = { shortest: 30, longest: 900 };

/**
 * Lets a program run by slices until a condition holds, and leaves it standing: a fast program would do the rest
 * during a slow look. SIGCONT lets it go on. Rejects where it ends before.
 */
export async function haltOnce(program: Program, isSo: () => Promise<boolean>): Promise<void> {
  const { child } = program;
  const begunAtMs = performance.now();
  await until(async () => {
    assert.equal(child.exitCode, null, `it ended too early: ${program.output()}`);
    child.kill("SIGCONT");
    const usualMs = (performance.now() - begunAtMs) / 20;
    await sleep(Math.min(Math.max(usualMs, SLICE_MS.shortest), SLICE_MS.longest));
    child.kill("SIGSTOP");
    return isSo();
  }, "a program in the middle of its work");
}
