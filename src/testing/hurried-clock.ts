// For tests of what only comes after a while: the machine's clocks, with timers that come sooner than asked for.
import { type Clock, systemClock } from "#base/clock.ts";

/** Both clocks tell the true time; each timer comes after a part of its delay. `times` is above 1. */
export function hurriedClock(times: number): Clock {
  return {
    ...systemClock,
    after: (delayMs, callback) => systemClock.after(delayMs / times, callback),
    every: (intervalMs, callback) => systemClock.every(intervalMs / times, callback),
  };
}
