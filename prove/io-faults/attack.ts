// Makes one fault in one process, and checks that nothing acknowledged is lost and no flush is tried again.
import { rm } from "node:fs/promises";
import { runSubject, type SubjectRun } from "#prove/calls/subject.ts";
import type { FollowedCall } from "#prove/calls/traced-process.ts";
import { type Allowed, problemsOf } from "#prove/calls/verify-store.ts";
import { checkStorage } from "#storage/check/check-storage.ts";
import { type FaultPoint, isFlush, wordsOf } from "./faults.ts";

/** Refusals that leave open whether the change was made: the next start shows. */
const UNKNOWN: ReadonlySet<string> = new Set(["STORAGE_FAILED"]);
/** Files whose flush acknowledgements depend on. */
const STORED = /^(?:chunks\/|inodes\.db)/;

/** Result of a fault. */
export interface FaultOutcome {
  /** False when the call did not occur this time. */
  readonly isMade: boolean;
  readonly isRefused: boolean;
  /** A file was reported as damaged, because its bytes could not be read. */
  readonly isCondemned: boolean;
  readonly problems: readonly string[];
}

/** Makes the fault, and then opens the store without it. */
export async function attackFault(point: FaultPoint, compileCache: string): Promise<FaultOutcome> {
  const { scene, mode, call, fault, forever } = point;
  const directory = await (mode === "open" ? scene.copyOfLeft() : scene.copy());
  const operations = mode === "open" ? [] : scene.operations.map(({ name }) => name);
  const isOpening = mode === "open";
  const follow = { directory, withReads: true, withListings: isOpening, tells: !isOpening };
  const plan = { ...follow, fault: { ...fault, at: call.n, forever } };
  const run = await runSubject({ mode, operations, plan, compileCache });
  const hit = run.calls.filter(
    ({ injected, delayed, shortened }) =>
      injected !== undefined || delayed === true || shortened !== undefined,
  );
  const allowed = allowedAfter(point, run);
  const isCondemned = run.lines.some(({ text }) => text === "CORRUPT") && hit.some(isRead);
  if (isCondemned) checkStorage(directory, { repair: true, deep: true });
  const problems = [...wrongEnd(run), ...wrongFlushes(run, hit), ...(await problemsOf(directory, allowed))];
  await rm(directory, { recursive: true, force: true });
  const words = run.lines.map(({ event, operation = "", text = "" }) =>
    `${event} ${operation} ${text}`.trim(),
  );
  const told = words.join(", ");
  return {
    isMade: hit.length > 0,
    isCondemned,
    isRefused: run.lines.some(({ event }) => event === "failed"),
    problems: problems.map((problem) => `${wordsOf(point)}: ${problem} (it said: ${told})`),
  };
}

/** True for a read of stored bytes, with the calls that lead to it. */
const isRead = ({ name, path }: FollowedCall): boolean =>
  path.startsWith("chunks/") && (name.startsWith("pread") || name.startsWith("read") || name === "openat");

function allowedAfter({ scene, mode }: FaultPoint, run: SubjectRun): Allowed[] {
  // A store opened after a crash has everything acknowledged before, even if the opening failed.
  return mode === "open" ? scene.allowed(scene.reference.lines) : scene.allowed(run.lines, UNKNOWN);
}

/** A process that meets a fault goes on, or gives the reason. */
function wrongEnd(run: SubjectRun): string[] {
  if (run.isStuck) return ["the process did not end"];
  if (run.end !== 0 || run.lines.at(-1)?.event !== "end")
    return [`the process ended with ${String(run.end)}: ${run.stderr}`];
  return [];
}

/**
 * A failed flush is final: it is reported, nothing is acknowledged after it, and the file is not flushed
 * again.
 */
function wrongFlushes(run: SubjectRun, hit: readonly FollowedCall[]): string[] {
  const failed = hit.find((call) => call.injected !== undefined && isFlush(call) && STORED.test(call.path));
  if (failed === undefined) return [];
  const problems: string[] = [];
  const again = run.calls.filter((call) => call.n > failed.n && call.path === failed.path && isFlush(call));
  // Flushes already under way on other threads did not know of the failure.
  const late = again.filter((call) => call.n > (failed.end ?? failed.n));
  if (late.length > 0) problems.push(`${failed.path} was flushed again after its flush had failed`);
  const opened = run.lines.findIndex(({ event }) => event === "open");
  const told = run.lines.findIndex(({ event }) => event === "failure");
  if (told >= 0) {
    const later = run.lines.slice(told).filter(({ event }) => event === "done" || event === "failed");
    const wrong = later.find(({ event, operation }) => event === "done" && operation !== "set-quota");
    if (wrong !== undefined)
      problems.push(`${wrong.operation ?? ""} was acknowledged after a flush had failed`);
  } else if (opened >= 0) problems.push("a flush failed and nobody was told");
  else if (!run.lines.some(({ event }) => event === "failed"))
    problems.push("a flush failed and the store was opened");
  return problems;
}
