// One kill at an exact call of an operation or of a recovery, and what is found afterwards.
import { rm } from "node:fs/promises";
import type { Scene } from "#prove/calls/scene.ts";
import { runSubject, type SubjectRun } from "#prove/calls/subject.ts";
import { type FollowedCall, kindOf, type TracePlan } from "#prove/calls/traced-process.ts";
import { type Allowed, copyDirectory, problemsOf } from "#prove/calls/verify-store.ts";

/** Where a process is killed. */
export type Kill = NonNullable<TracePlan["kill"]>;

/** What a kill came to. */
export interface Outcome {
  /** The call in which the process was killed; undefined when it had ended before. */
  readonly killedIn: FollowedCall | undefined;
  readonly problems: readonly string[];
}

/** A data directory as a kill left it, and what may be found in it. */
export interface CrashState {
  readonly directory: string;
  readonly allowed: readonly Allowed[];
  /** Which operation was killed where, for messages. */
  readonly is: string;
}

/** A call in words, with names of chunks left out. */
export const wordsOf = (call: FollowedCall): string => `${call.name} ${kindOf(call)}`;

/** Kills the scene's operation at a call. `keep` is given the state before anybody opens it. */
export async function killOperation(
  scene: Scene,
  kill: Kill,
  compileCache: string,
  keep: (state: CrashState, killedIn: FollowedCall) => Promise<void>,
): Promise<Outcome> {
  const directory = await scene.copy();
  const names = scene.operations.map(({ name }) => name);
  const plan = { directory, tells: true, kill };
  const run = await runSubject({ mode: "operate", operations: names, plan, compileCache });
  const allowed = scene.allowed(run.lines);
  const killedIn = run.calls.find(({ killed }) => killed !== undefined);
  const is = `${names.join(", ")} killed ${wordsOfKill(kill, killedIn)}`;
  if (killedIn !== undefined) await keep({ directory, allowed, is }, killedIn);
  return finish(directory, run, killedIn, allowed, is);
}

/** Kills a recovery at a call; the state itself stays. */
export async function killRecovery(state: CrashState, kill: Kill, compileCache: string): Promise<Outcome> {
  const directory = `${state.directory}-${kill.at}-${kill.when}`;
  await copyDirectory(state.directory, directory);
  const plan = { directory, kill };
  const run = await runSubject({ mode: "open", operations: [], plan, compileCache });
  const killedIn = run.calls.find(({ killed }) => killed !== undefined);
  const is = `${state.is}, and its recovery ${wordsOfKill(kill, killedIn)}`;
  return finish(directory, run, killedIn, state.allowed, is);
}

async function finish(
  directory: string,
  run: SubjectRun,
  killedIn: FollowedCall | undefined,
  allowed: readonly Allowed[],
  is: string,
): Promise<Outcome> {
  const problems = await problemsOf(directory, allowed);
  if (killedIn === undefined && run.end !== 0)
    problems.push(`it ended with ${String(run.end)}: ${run.stderr}`);
  if (run.isStuck) problems.push("it did not end");
  await rm(directory, { recursive: true, force: true });
  return { killedIn, problems: problems.map((problem) => `${is}: ${problem}`) };
}

function wordsOfKill({ at, when }: Kill, call: FollowedCall | undefined): string {
  return `on ${when} of call ${at}${call === undefined ? "" : `, ${wordsOf(call)}`}`;
}
