// The machine's clocks with shortened timers, for tests of delayed work.
import { type Clock, systemClock } from "#base/clock.ts";

/** Both clocks show the true time; each timer fires after a part of its delay. `times` is above 1. */
export function hurriedClock(times: number): Clock {
  return {
    ...systemClock,
    after: (delayMs, callback) => systemClock.after(delayMs / times, callback),
    every: (intervalMs, callback) => systemClock.every(intervalMs / times, callback),
  };
}
