// Runs long work in time slices, with other work of the event loop in between.
import { setImmediate as nextTurn } from "node:timers/promises";

/** Runs the work to its end, with pauses at its yields; one slice takes about `turnMs`. */
export async function inTimeSlices<Result>(work: Generator<void, Result>, turnMs: number): Promise<Result> {
  for (;;) {
    const endMs = performance.now() + turnMs;
    do {
      const step = work.next();
      if (step.done === true) return step.value;
    } while (performance.now() < endMs);
    await nextTurn();
  }
}
