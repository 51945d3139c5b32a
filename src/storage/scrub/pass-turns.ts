// A pass of a background job over what lies on other machines: in turns of this thread, at a bounded rate.
import type { Clock } from "#base/clock.ts";
import { errorText, type Logger } from "#base/log.ts";
import { pause } from "#base/waiting.ts";
import type { PassName } from "#storage/contract/pass-types.ts";
import type { PassRun, TellPass } from "./background-pass.ts";
import { Pacer } from "./pacer.ts";
import type { PassStep } from "./pass-thread.ts";

/** Pause after a step that failed: the database or the store may be away. */
export const PASS_RETRY_MS = 10_000;

/** The work of a pass in turns. */
export interface PassTurns<Pass, Found> {
  readonly name: PassName;
  /** Units of the steps' costs. */
  readonly perSecond: number;
  /** The rest of a pass from its place. It may throw, and is begun again from there. */
  readonly steps: (from: Pass) => AsyncIterable<PassStep<Pass, Found>>;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Begins a pass. */
export function beginInTurns<Pass, Found>(
  work: PassTurns<Pass, Found>,
  from: Pass,
  tell: TellPass<Pass, Found>,
): PassRun {
  const { name, clock, logger } = work;
  const stopping = new AbortController();
  const pacer = new Pacer(work.perSecond);
  let pass = from;
  const goOn = async (): Promise<"ended" | "stopped"> => {
    while (!stopping.signal.aborted) {
      try {
        for await (const step of work.steps(pass)) {
          // Before its mark is kept the place is not passed: the next process would not look there again.
          if (step.found !== undefined) await tell({ kind: "found", found: step.found });
          ({ pass } = step);
          void tell({ kind: "progress", pass });
          const waitMs = pacer.waitMs(step.cost, clock.steadyMs());
          if (waitMs > 0) await pause(clock, waitMs, stopping.signal);
          if (stopping.signal.aborted) return "stopped";
        }
        return "ended";
      } catch (error) {
        if (stopping.signal.aborted) break;
        logger.warn(`storage.${name}_waits`, { error: errorText(error) });
        await pause(clock, PASS_RETRY_MS, stopping.signal);
      }
    }
    return "stopped";
  };
  const ended = goOn().then((kind) => void tell({ kind, pass }));
  return { ended, stop: () => stopping.abort(), leave: () => undefined };
}
