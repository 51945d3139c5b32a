// Spreads test files over processes, and processes over lanes that run side by side.

/** The files of one process. */
export type TestTask = readonly string[];

/** More files in one process would start too late, and their failure cost too much. */
const MAX_SHARED_FILES = 12;

/** Files that share a process lie in one wing, so that they import the same modules. */
function wingOf(path: string): string {
  return path.split("/").slice(0, 2).join("/");
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

/**
 * Runs tasks of several queues. A lane takes the first task of the queue whose index it is given, and of the
 * others once that is empty. Rejects with the first error of a task.
 */
export async function runInLanes<T>(
  queues: readonly (readonly T[])[],
  lanes: readonly number[],
  runTask: (task: T) => Promise<void>,
): Promise<void> {
  const waiting = queues.map((tasks) => [...tasks]);
  const next = (own: number): T | undefined => {
    const queue = [waiting[own], ...waiting].find((tasks) => tasks !== undefined && tasks.length > 0);
    return queue?.shift();
  };
  await Promise.all(
    lanes.map(async (own) => {
      for (let task = next(own); task !== undefined; task = next(own)) await runTask(task);
    }),
  );
}
