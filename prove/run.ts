// `npm run prove`: runs rigs and planted bugs, and prints the seed, one line of JSON, and the caught bugs.
import { parseArgs } from "node:util";
import { Campaign } from "./campaign.ts";
import { inLanes } from "./lanes.ts";
import { plantedBugs } from "./planted-bugs.ts";
import { type Catch, tryBug } from "./planted-tree.ts";
import type { Rig } from "./rig.ts";
import { rigs } from "./rigs.ts";

const DEFAULT_MINUTES = 10;
const SHORT_MINUTES = 2;
const SEEDS = 2 ** 31;
const EXIT_BROKEN = 1;
const EXIT_USAGE = 2;
const EXIT_CANNOT = 3;
const EXIT_INTERRUPTED = 130;

class Interruption extends Error {}
/** Rejects on a signal that ends the process. */
const interrupted = Promise.withResolvers<never>();

interface Choices {
  readonly names: readonly string[];
  readonly minutes: number;
  readonly seed: number;
  readonly goal: number | undefined;
  readonly isShort: boolean;
  /** Whether the first violation ends a run. */
  readonly endsAtFirst: boolean;
  readonly isJson: boolean;
  readonly isPlanted: boolean;
}

function usage(): string {
  const width = Math.max(0, ...rigs.map((rig) => rig.name.length));
  const lines = rigs.map((rig) => `  ${rig.name.padEnd(width)}  ${rig.figure.padEnd(3)}  ${rig.proves}`);
  return `usage: npm run prove -- NAME… [--minutes N] [--seed S] [--goal N] [--short] [--no-planted] [--end-at-first] [--json]
       npm run prove -- planted [RIG…]   every planted bug against the rigs that must catch it
       npm run prove -- all              every rig, one after the other

Rigs:
${lines.join("\n")}

  --minutes N   how long a rig may go on (default ${DEFAULT_MINUTES}); its planted bugs come after that and take their own time
  --seed S      repeats an attack; without it a new one is drawn and printed
  --goal N      another number of attacks than the rig's own
  --short       the form that runs in npm test
  --no-planted  leaves out the planted bugs that show what the rig can see
  --end-at-first  ends a run at its first violation
  --json        nothing on stdout but one line of JSON for each rig

Exit code 0 when every goal was reached without a violation and every planted bug caught, 1 when not, ${EXIT_CANNOT} when all that could
be tried was well and the machine lacks what some rig needs.
Ctrl-C ends everything that a rig has started, and is no result.
`;
}

function readChoices(argv: readonly string[]): Choices {
  const { values, positionals } = parseArgs({
    args: [...argv],
    allowPositionals: true,
    options: {
      minutes: { type: "string" },
      seed: { type: "string" },
      goal: { type: "string" },
      short: { type: "boolean", default: false },
      "no-planted": { type: "boolean", default: false },
      json: { type: "boolean", default: false },
      "end-at-first": { type: "boolean", default: false },
    },
  });
  const seed = number(values.seed, "--seed") ?? Math.floor(Math.random() * SEEDS);
  const minutes = number(values.minutes, "--minutes") ?? (values.short ? SHORT_MINUTES : DEFAULT_MINUTES);
  const goal = number(values.goal, "--goal");
  return {
    names: positionals,
    minutes,
    seed,
    goal,
    isShort: values.short,
    endsAtFirst: values["end-at-first"],
    isJson: values.json,
    isPlanted: !values["no-planted"],
  };
}

function number(text: string | undefined, flag: string): number | undefined {
  if (text === undefined) return undefined;
  const value = Number(text);
  if (text.trim() === "" || !Number.isFinite(value) || value < 0) throw new Error(`${flag} takes a number`);
  return value;
}

function chosen(names: readonly string[]): readonly Rig[] {
  if (names.length === 1 && names[0] === "all") return rigs;
  return names.map((name) => {
    const rig = rigs.find((each) => each.name === name);
    if (rig === undefined) throw new Error(`no such rig: ${name}`);
    return rig;
  });
}

async function tryPlanted(only: readonly Rig[], seed: number, firstRigOnly: boolean): Promise<Catch[]> {
  const catches: Catch[] = [];
  for (const bug of plantedBugs) {
    for (const name of firstRigOnly ? bug.rigs.slice(0, 1) : bug.rigs) {
      const rig = only.find((each) => each.name === name);
      if (rig === undefined) continue;
      const outcome = await Promise.race([tryBug(bug, rig, seed), interrupted.promise]);
      const word = outcome.outcome === "missed" ? "MISSED" : outcome.outcome;
      process.stderr.write(`${word} ${bug.name} by ${name}: ${outcome.why}\n`);
      catches.push(outcome);
    }
  }
  return catches;
}

const bugsThat = (catches: readonly Catch[], outcome: Catch["outcome"]): readonly Catch[] =>
  catches.filter((each) => each.outcome === outcome);

function sensitivity(catches: readonly Catch[]): string {
  const caught = bugsThat(catches, "caught").map(({ bug }) => bug);
  const missed = bugsThat(catches, "missed").map(({ bug }) => bug);
  const unable = bugsThat(catches, "could not run").map(({ bug, rig, why }) => `${bug} by ${rig} (${why})`);
  const tried = catches.length - unable.length;
  const parts = [`caught ${caught.length} of ${tried} planted bugs: ${caught.join(", ")}`];
  if (missed.length > 0) parts.push(`MISSED ${missed.join(", ")}`);
  if (unable.length > 0) parts.push(`could not run ${unable.join(", ")}`);
  return `sensitivity: ${parts.join("; ")}`;
}

/** A miss is worse than a bug that this machine cannot try. */
function exitOf(catches: readonly Catch[]): number {
  if (bugsThat(catches, "missed").length > 0) return EXIT_BROKEN;
  return bugsThat(catches, "could not run").length > 0 ? EXIT_CANNOT : 0;
}

async function runRig(rig: Rig, choices: Choices): Promise<number> {
  const say = (line: string): unknown =>
    (choices.isJson ? process.stderr : process.stdout).write(`${line}\n`);
  const lacking = rig.lacks?.();
  if (lacking !== undefined) {
    say(`${rig.name} cannot run here: ${lacking}`);
    return EXIT_CANNOT;
  }
  say(`${rig.name} (${rig.figure}): ${rig.proves}\nseed ${choices.seed}`);
  const result = await Campaign.run(choices.isShort ? rig : inLanes(rig), {
    seed: choices.seed,
    goal: choices.goal ?? (choices.isShort ? rig.shortGoal : rig.goal),
    timeMs: choices.minutes * 60_000,
    ...(choices.endsAtFirst ? { violationsMax: 1 } : {}),
    interrupted: interrupted.promise,
    onProgress: (line) => process.stderr.write(`${line}\n`),
  });
  process.stdout.write(`${JSON.stringify(result)}\n`);
  if (!choices.isPlanted) return result.reached ? 0 : EXIT_BROKEN;
  const catches = await tryPlanted([rig], choices.seed, true);
  say(sensitivity(catches));
  return result.reached ? exitOf(catches) : EXIT_BROKEN;
}

async function runPlanted(asked: readonly Rig[], choices: Choices): Promise<number> {
  process.stdout.write(`seed ${choices.seed}\n`);
  const catches = await tryPlanted(asked, choices.seed, false);
  process.stdout.write(`${JSON.stringify({ planted: catches })}\n${sensitivity(catches)}\n`);
  const namesOf = (some: readonly Catch[]): Set<string> => new Set(some.map(({ bug }) => bug));
  const caught = namesOf(bugsThat(catches, "caught"));
  const tried = namesOf(catches.filter(({ outcome }) => outcome !== "could not run"));
  const untried = namesOf(catches).size - tried.size;
  const rest = untried === 0 ? "" : `; ${untried} could not be tried on this machine`;
  process.stdout.write(`${caught.size} of ${tried.size} planted bugs caught by the rigs together${rest}\n`);
  return exitOf(catches);
}

async function main(): Promise<number> {
  let choices: Choices;
  let asked: readonly Rig[];
  let isPlanted: boolean;
  try {
    choices = readChoices(process.argv.slice(2));
    const [first, ...rest] = choices.names;
    if (first === undefined) {
      process.stdout.write(usage());
      return 0;
    }
    isPlanted = first === "planted";
    asked = isPlanted && rest.length === 0 ? rigs : chosen(isPlanted ? rest : choices.names);
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n\n${usage()}`);
    return EXIT_USAGE;
  }
  if (isPlanted) return runPlanted(asked, choices);
  let worst = 0;
  for (const rig of asked) worst = Math.max(worst, await runRig(rig, choices));
  return worst;
}

interrupted.promise.catch(() => undefined);
for (const signal of ["SIGINT", "SIGTERM"] as const)
  process.once(signal, () =>
    interrupted.reject(new Interruption(`${signal}: what was begun has been ended`)),
  );
try {
  // All that a rig has made is ended by now; a handle that it forgot must not hold the process.
  process.exit(await main());
} catch (error) {
  if (!(error instanceof Interruption)) throw error;
  process.stderr.write(`${error.message}\n`);
  // The rig itself may still wait for what is gone.
  process.exit(EXIT_INTERRUPTED);
}
