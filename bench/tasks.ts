// The other half of child.ts: answers tasks inside a program, one at a time, until the benchmark lets go of it.
import { keepBuffersYoung } from "#base/heap-settings.ts";
import type { Json } from "./child.ts";

// The same for every side as in Grove's own programs: no side has it better.
keepBuffersYoung();

/** What a program can do, by the task's name. */
export type Tasks = Readonly<Record<string, (input: Json) => Promise<Json> | Json>>;

/** Answers tasks until the channel closes, then runs `close` and lets the process end. */
export function serveTasks(tasks: Tasks, close: () => Promise<void> | void): void {
  process.on("message", (message) => {
    const { id, task, input } = message as { id: number; task: string; input: Json };
    void answer(tasks, task, input).then((outcome) => {
      // Nobody waits any more when the benchmark was killed.
      if (process.connected) process.send?.({ id, ...outcome });
    });
  });
  process.on("disconnect", () => {
    void Promise.resolve(close());
  });
}

async function answer(tasks: Tasks, task: string, input: Json): Promise<{ result?: Json; error?: string }> {
  try {
    const run = tasks[task];
    if (run === undefined) throw new Error(`there is no task ${task}`);
    return { result: await run(input) };
  } catch (error) {
    return { error: error instanceof Error ? (error.stack ?? error.message) : String(error) };
  }
}
