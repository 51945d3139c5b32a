// The states that kills would leave at every point of one run: the process is stopped, and its files copied.
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { layOut, outlineOfCopy } from "#prove/calls/lay-out.ts";
import type { Scene } from "#prove/calls/scene.ts";
import type { SubjectLine } from "#prove/calls/subject.fixture.ts";
import { runSubject } from "#prove/calls/subject.ts";
import type { FollowedCall } from "#prove/calls/traced-process.ts";
import { type Allowed, problemsOf } from "#prove/calls/verify-store.ts";
import { type CrashState, type Kill, killsOf, wordsOf, wordsOfKill } from "./points.ts";

/**
 * One state and all points of a run at which a kill leaves it: the same files, and the same acknowledgements.
 */
export interface FrozenState extends CrashState {
  readonly points: readonly FrozenPoint[];
  /** See `outlineOf`. */
  readonly outline: () => Promise<string>;
}

interface FrozenPoint {
  readonly kill: Kill;
  readonly call: FollowedCall;
}

/** The states of the scene's undisturbed run, for a scene that was made with copies. */
export function statesOfOperation(scene: Scene, copies: string): FrozenState[] {
  const { calls, lines } = scene.reference;
  const first = lines.findIndex(({ event }) => event === "ready") + 1;
  const is = scene.operations.map(({ name }) => name).join(", ");
  return statesOf({ calls, copies, is, allowedAfter: (told) => scene.allowed(lines.slice(0, first + told)) });
}

/**
 * Recovers a state once more, and returns the states of that run; `folder` must be missing and may be removed
 * with them.
 */
export async function statesOfRecovery(
  state: CrashState,
  { folder, compileCache }: { readonly folder: string; readonly compileCache: string },
): Promise<FrozenState[]> {
  const directory = join(folder, "recovered");
  const copies = join(folder, "copies");
  await mkdir(folder);
  await state.layOut(directory);
  const plan = { directory, copies };
  const { calls, end, stderr } = await runSubject({ mode: "open", operations: [], plan, compileCache });
  if (end !== 0) throw new Error(`the recovery of ${state.is} ended with ${String(end)}: ${stderr}`);
  return statesOf({ calls, copies, is: `${state.is}, and its recovery`, allowedAfter: () => state.allowed });
}

function statesOf(run: {
  readonly calls: readonly FollowedCall[];
  readonly copies: string;
  readonly is: string;
  readonly allowedAfter: (told: number) => readonly Allowed[];
}): FrozenState[] {
  const { calls, copies } = run;
  const points = new Map<string, FrozenPoint[]>();
  const states: FrozenState[] = [];
  for (const kill of killsOf(calls.length)) {
    const call = calls[kill.at - 1] as FollowedCall;
    const taken = call.copies?.[kill.when];
    // It has no exit when the process ended in it.
    if (taken === undefined) continue;
    const { listing, told } = taken;
    const allowed = run.allowedAfter(told);
    const key = `${listing} ${JSON.stringify(allowed.map(({ states: of }) => of.map(({ is }) => is)))}`;
    const same = points.get(key);
    if (same !== undefined) {
      same.push({ kill, call });
      continue;
    }
    const own = [{ kill, call }];
    points.set(key, own);
    states.push({
      points: own,
      allowed,
      is: `${run.is} held still ${wordsOfKill(kill, call)}`,
      layOut: (directory) => layOut(copies, listing, directory),
      outline: () => outlineOfCopy(copies, listing),
    });
  }
  return states;
}

/** Returns everything wrong with a state, opened in a new directory that is removed at the end. */
export async function problemsOfState(state: FrozenState, directory: string): Promise<string[]> {
  await state.layOut(directory);
  const problems = await problemsOf(directory, state.allowed);
  await rm(directory, { recursive: true, force: true });
  return problems.map((problem) => `${state.is}: ${problem}`);
}

/** Recovers states one after the other in one process, and returns each recovery's calls, in words. */
export async function recoveriesOf(
  states: readonly CrashState[],
  { folder, compileCache }: { readonly folder: string; readonly compileCache: string },
): Promise<string[][]> {
  await mkdir(folder);
  const names = states.map((_, index) => `state-${index}`);
  for (const [index, state] of states.entries()) await state.layOut(join(folder, names[index] as string));
  const plan = { directory: folder, tells: true };
  const { calls, lines, end, stderr } = await runSubject({
    mode: "recover",
    operations: names,
    plan,
    compileCache,
  });
  await rm(folder, { recursive: true, force: true });
  if (end !== 0) throw new Error(`recoveries ended with ${String(end)}: ${stderr}`);
  const recoveries = new Map(names.map((name) => [name, [] as string[]]));
  const told = lines.slice(lines.findIndex(({ event }) => event === "ready") + 1).values();
  let now: SubjectLine | undefined;
  for (const call of calls) {
    if (call.path === "(told)") now = told.next().value;
    else if (now?.event === "begin" && now.operation !== undefined)
      recoveries.get(now.operation)?.push(wordsOf({ ...call, path: below(call.path, now.operation) }));
  }
  return names.map((name) => recoveries.get(name) ?? []);
}

/** A path, or two of them, below a folder that both are in. */
const below = (path: string, folder: string): string =>
  path
    .split(" -> ")
    .map((each) => (each === folder ? "" : each.slice(folder.length + 1)))
    .join(" -> ");
