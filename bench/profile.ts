// The largest parts of the CPU profiles that a process and its worker threads have left in a folder.
import { readdir, readFile } from "node:fs/promises";
import { basename, join } from "node:path";

/** The part of V8's CPU profile that is read here. */
interface Profile {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: { readonly functionName: string; readonly url: string };
  }[];
  /** Microseconds of the machine's monotonic clock. */
  readonly startTime: number;
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

const WAITING: ReadonlySet<string> = new Set(["(idle)", "(root)"]);

/** A time in microseconds of the machine's monotonic clock, which all its processes share. */
export interface Span {
  readonly fromUs: number;
  readonly toUs: number;
}

/** Runs the work and returns its time. */
export async function spanOf(work: () => Promise<unknown>): Promise<Span> {
  const now = (): number => Number(process.hrtime.bigint() / 1_000n);
  const fromUs = now();
  await work();
  return { fromUs, toUs: now() };
}

/**
 * The functions with the most time of their own in the span, such as "writev 12 %". Shares are of all threads'
 * time without waiting. V8 names what is no JavaScript "(program)", such as the kernel's and HTTP/2's work.
 */
export async function largestParts(folder: string, count: number, span: Span): Promise<string> {
  const names = (await readdir(folder)).filter((name) => name.endsWith(".cpuprofile"));
  const profiles = await Promise.all(
    names.map(async (name) => JSON.parse(await readFile(join(folder, name), "utf8")) as Profile),
  );
  const times = new Map<string, number>();
  for (const profile of profiles) addTimes(profile, span, times);
  const all = [...times.values()].reduce((sum, time) => sum + time, 0);
  if (all === 0) throw new Error("the profile has no samples");
  return [...times]
    .toSorted(([, a], [, b]) => b - a)
    .slice(0, count)
    .map(([name, time]) => `${name} ${((time / all) * 100).toFixed(1)} %`)
    .join(", ");
}

function addTimes(profile: Profile, { fromUs, toUs }: Span, times: Map<string, number>): void {
  const { nodes, samples, timeDeltas } = profile;
  let timeUs = profile.startTime;
  const names = new Map(nodes.map(({ id, callFrame }) => [id, nameOf(callFrame)]));
  samples.forEach((id, at) => {
    const name = names.get(id) ?? "(unknown)";
    const deltaUs = timeDeltas[at] ?? 0;
    timeUs += deltaUs;
    if (WAITING.has(name) || timeUs < fromUs || timeUs > toUs) return;
    times.set(name, (times.get(name) ?? 0) + Math.max(0, deltaUs));
  });
}

function nameOf({ functionName, url }: Profile["nodes"][number]["callFrame"]): string {
  const name = functionName === "" ? "anonymous" : functionName;
  return url === "" ? name : `${name} (${basename(url)})`;
}
