// Long work in short turns: between them the event loop does what else there is to do.
import { setImmediate as nextTurn } from "node:timers/promises";

/** Runs the work to its end, which pauses wherever it yields; a turn takes `turnMs` and what lies between two yields. */
export async function inTurns<Result>(work: Generator<void, Result>, turnMs: number): Promise<Result> {
  for (;;) {
    const endMs = performance.now() + turnMs;
    do {
      const step = work.next();
      if (step.done === true) return step.value;
    } while (performance.now() < endMs);
    await nextTurn();
  }
}
