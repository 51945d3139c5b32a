// Bounds the wait for a stream's first message, so that a silent client holds no place for nothing.
import { setImmediate as turnEnd } from "node:timers/promises";
import type { Clock } from "#base/clock.ts";
import { Code, StatusError } from "./status.ts";

/** The wait for a message; `what` names the message in a refusal. */
export interface FirstMessageLimit {
  readonly clock: Clock;
  readonly timeoutMs: number;
  readonly what: string;
}

/** Resolves with the message, or rejects with DEADLINE_EXCEEDED when it comes too late. */
export function inTime<T>(coming: Promise<T>, { clock, timeoutMs, what }: FirstMessageLimit): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const late = async (): Promise<void> => {
      // Sockets are read first: after a standstill of the process the message may already be there.
      await turnEnd();
      await turnEnd();
      const text = `${what} comes within ${timeoutMs / 1_000} s of its stream; open the stream when there is something to send`;
      reject(new StatusError(Code.DEADLINE_EXCEEDED, text));
    };
    const cancel = clock.after(timeoutMs, () => void late());
    coming.then(resolve, reject).finally(cancel);
  });
}
