// Makes one kill at an exact call of an operation or of a recovery, and checks the result.
import { rm } from "node:fs/promises";
import { outlineOf } from "#prove/calls/lay-out.ts";
import type { Scene } from "#prove/calls/scene.ts";
import { runSubject, type SubjectRun } from "#prove/calls/subject.ts";
import { type FollowedCall, kindOf, type TracePlan } from "#prove/calls/traced-process.ts";
import { type Allowed, problemsOf } from "#prove/calls/verify-store.ts";

/** Where a process is killed. */
export type Kill = NonNullable<TracePlan["kill"]>;

/** Result of a kill. */
export interface Outcome {
  /** The call in which the process was killed; undefined when it had ended before. */
  readonly killedIn: FollowedCall | undefined;
  /** The files before the next opening; see `outlineOf`. */
  readonly outline: string;
  readonly problems: readonly string[];
}

/** A data directory as a kill leaves it, and its allowed contents. */
export interface CrashState {
  /** Makes such a directory. */
  readonly layOut: (directory: string) => Promise<void>;
  readonly allowed: readonly Allowed[];
  /** The operation and the point of the kill, for messages. */
  readonly is: string;
}

/** A call in words, with names of chunks left out. */
export const wordsOf = (call: FollowedCall): string => `${call.name} ${kindOf(call)}`;

/** A point in words. */
export const wordsOfKill = ({ at, when }: Kill, call: FollowedCall | undefined): string =>
  `on ${when} of call ${at}${call === undefined ? "" : `, ${wordsOf(call)}`}`;

/** Both points of each of so many calls. */
export const killsOf = (calls: number): Kill[] =>
  Array.from({ length: calls }, (_, index) => index + 1).flatMap((at) => [
    { at, when: "entry" } as const,
    { at, when: "exit" } as const,
  ]);

/** Kills the scene's operation at a call. */
export async function killOperation(scene: Scene, kill: Kill, compileCache: string): Promise<Outcome> {
  const directory = await scene.copy();
  const operations = scene.operations.map(({ name }) => name);
  const plan = { directory, tells: true, kill };
  const run = await runSubject({ mode: "operate", operations, plan, compileCache });
  return finish(run, kill, { directory, allowed: scene.allowed(run.lines), is: operations.join(", ") });
}

/** Kills the recovery of a state at a call, in a new directory. */
export async function killRecovery(
  state: CrashState,
  kill: Kill,
  { directory, compileCache }: { readonly directory: string; readonly compileCache: string },
): Promise<Outcome> {
  await state.layOut(directory);
  const run = await runSubject({ mode: "open", operations: [], plan: { directory, kill }, compileCache });
  return finish(run, kill, { directory, allowed: state.allowed, is: `${state.is}, and its recovery` });
}

async function finish(
  run: SubjectRun,
  kill: Kill,
  left: { readonly directory: string; readonly allowed: readonly Allowed[]; readonly is: string },
): Promise<Outcome> {
  const { directory, allowed } = left;
  const killedIn = run.calls.find(({ killed }) => killed !== undefined);
  const is = `${left.is} killed ${wordsOfKill(kill, killedIn)}`;
  const outline = await outlineOf(directory);
  const problems = await problemsOf(directory, allowed);
  if (killedIn === undefined && run.end !== 0)
    problems.push(`it ended with ${String(run.end)}: ${run.stderr}`);
  if (run.isStuck) problems.push("it did not end");
  await rm(directory, { recursive: true, force: true });
  return { killedIn, outline, problems: problems.map((problem) => `${is}: ${problem}`) };
}
