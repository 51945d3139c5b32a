// The other half of child.ts: runs tasks inside a program, one at a time, until its channel closes.
import { keepBuffersYoung } from "#base/heap-settings.ts";
import type { Json } from "./child.ts";

// The same setting for every side as in Grove's own programs.
keepBuffersYoung();

/** The tasks of a program, by name. */
export type Tasks = Readonly<Record<string, (input: Json) => Promise<Json> | Json>>;

/** Answers tasks until the channel closes, then runs `close` and lets the process end. */
export function serveTasks(tasks: Tasks, close: () => Promise<void> | void): void {
  process.on("message", (message) => {
    const { id, task, input } = message as { id: number; task: string; input: Json };
    void answer(tasks, task, input).then((outcome) => {
      // A killed benchmark waits for no answer.
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
