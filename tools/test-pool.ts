// Spreads test files over processes, and processes over lanes that run side by side.
import { dirname } from "node:path/posix";

/** The files of one process. */
export type TestTask = readonly string[];

/** More files in one process would start too late, and their failure cost too much. */
const MAX_SHARED_FILES = 12;

/**
 * Files that share a process lie in one wing, so that they import the same modules. Those beside the wings of a
 * folder are one more.
 */
function wingOf(path: string): string {
  return dirname(path).split("/").slice(0, 2).join("/");
}

/**
 * Tasks of the files in their start order: `longest` as listed, then shared processes, then all others. Files of
 * `shareable` that are not listed share processes within their wing, about equally many in each.
 */
export function planTasks(
  files: readonly string[],
  { longest, shareable }: { readonly longest: readonly string[]; readonly shareable: ReadonlySet<string> },
): TestTask[] {
  const listed = longest.filter((path) => files.includes(path));
  const rest = files.filter((path) => !listed.includes(path)).toSorted();
  const wings = Map.groupBy(
    rest.filter((path) => shareable.has(path)),
    wingOf,
  );
  const shared = [...wings.values()].flatMap(inEqualParts).toSorted((a, b) => b.length - a.length);
  const others = rest.filter((path) => !shareable.has(path));
  return [...listed.map((path) => [path]), ...shared, ...others.map((path) => [path])];
}

function inEqualParts(files: readonly string[]): TestTask[] {
  const parts = Math.ceil(files.length / MAX_SHARED_FILES);
  const size = Math.ceil(files.length / parts);
  return Array.from({ length: parts }, (_, at) => files.slice(at * size, (at + 1) * size));
}

/** Lanes that come and go while the others run. */
interface FurtherLanes {
  /** Tasks at once, those of the lasting lanes included. */
  readonly most: number;
  /** Looks at the machine for a while; resolves with whether one more task has room. */
  readonly hasRoom: () => Promise<boolean>;
}

/**
 * Runs tasks of several queues. A lane takes the first task of the queue whose index it is given, and of the
 * others once that is empty. Where there is room, one more task of the last queue runs beside them. Rejects with
 * the first error of a task.
 */
export async function runInLanes<T>(
  queues: readonly (readonly T[])[],
  lanes: readonly number[],
  runTask: (task: T) => Promise<void>,
  further?: FurtherLanes,
): Promise<void> {
  const waiting = queues.map((tasks) => [...tasks]);
  const next = (own: number): T | undefined => {
    const queue = [waiting[own], ...waiting].find((tasks) => tasks !== undefined && tasks.length > 0);
    return queue?.shift();
  };
  const count = { running: 0 };
  const run = async (task: T): Promise<void> => {
    count.running++;
    try {
      await runTask(task);
    } finally {
      count.running--;
    }
  };
  const inLane = async (own: number): Promise<void> => {
    for (let task = next(own); task !== undefined; task = next(own)) await run(task);
  };
  const beside = async ({ most, hasRoom }: FurtherLanes): Promise<void> => {
    const begun: Promise<void>[] = [];
    while (count.running > 0 && waiting.some((tasks) => tasks.length > 0)) {
      const task = (await hasRoom()) && count.running < most ? next(queues.length - 1) : undefined;
      if (task === undefined) continue;
      const ended = run(task);
      // Its error is that of the whole below, and no unhandled one until then.
      ended.catch(() => undefined);
      begun.push(ended);
    }
    await Promise.all(begun);
  };
  await Promise.all([...lanes.map(inLane), ...(further === undefined ? [] : [beside(further)])]);
}
