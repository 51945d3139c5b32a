// Bounds the wait for what a client's stream begins with: one that says nothing holds a place for nothing.
import { setImmediate as turnEnd } from "node:timers/promises";
import type { Clock } from "#base/clock.ts";
import { Code, StatusError } from "./status.ts";

/** The wait for a message; `what` says in a refusal what was to come. */
export interface FirstMessageLimit {
  readonly clock: Clock;
  readonly timeoutMs: number;
  readonly what: string;
}

/** The message, or a rejection with DEADLINE_EXCEEDED when it does not come in time. */
export function inTime<T>(coming: Promise<T>, { clock, timeoutMs, what }: FirstMessageLimit): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const late = async (): Promise<void> => {
      // What lies in the sockets is read first: where the process stood still, the message may be there.
      await turnEnd();
      await turnEnd();
      const text = `${what} comes within ${timeoutMs / 1_000} s of its stream; open the stream when there is something to send`;
      reject(new StatusError(Code.DEADLINE_EXCEEDED, text));
    };
    const cancel = clock.after(timeoutMs, () => void late());
    coming.then(resolve, reject).finally(cancel);
  });
}
