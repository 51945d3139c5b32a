// The largest parts of the CPU profiles that a process and its worker threads have left in a folder.
import { readdir, readFile } from "node:fs/promises";
import { basename, join } from "node:path";

/** The part of V8's CPU profile that is read here. */
interface Profile {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: { readonly functionName: string; readonly url: string };
  }[];
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

const WAITING: ReadonlySet<string> = new Set(["(idle)", "(root)"]);

/**
 * The functions with the most time of their own, such as "writev 12 %". Shares are of all threads' time
 * without waiting. V8 names what is no JavaScript "(program)", such as the kernel's and HTTP/2's work.
 */
export async function largestParts(folder: string, count: number): Promise<string> {
  const names = (await readdir(folder)).filter((name) => name.endsWith(".cpuprofile"));
  const profiles = await Promise.all(
    names.map(async (name) => JSON.parse(await readFile(join(folder, name), "utf8")) as Profile),
  );
  const times = new Map<string, number>();
  for (const profile of profiles) addTimes(profile, times);
  const all = [...times.values()].reduce((sum, time) => sum + time, 0);
  if (all === 0) throw new Error("the profile has no samples");
  return [...times]
    .toSorted(([, a], [, b]) => b - a)
    .slice(0, count)
    .map(([name, time]) => `${name} ${((time / all) * 100).toFixed(1)} %`)
    .join(", ");
}

function addTimes({ nodes, samples, timeDeltas }: Profile, times: Map<string, number>): void {
  const names = new Map(nodes.map(({ id, callFrame }) => [id, nameOf(callFrame)]));
  samples.forEach((id, at) => {
    const name = names.get(id) ?? "(unknown)";
    if (!WAITING.has(name)) times.set(name, (times.get(name) ?? 0) + Math.max(0, timeDeltas[at] ?? 0));
  });
}

function nameOf({ functionName, url }: Profile["nodes"][number]["callFrame"]): string {
  const name = functionName === "" ? "anonymous" : functionName;
  return url === "" ? name : `${name} (${basename(url)})`;
}
