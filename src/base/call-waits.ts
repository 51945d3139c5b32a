// The waits of a call in progress, recorded by the code that waits without passing an object along.
import { currentScope } from "./request-scope.ts";
import { CallWaits, type Wait } from "./wait-times.ts";

/** Starts recording waits of the current request; undefined where that runs already. */
export function beginWaits(): CallWaits | undefined {
  const scope = currentScope();
  if (scope === undefined || scope.waits !== undefined) return undefined;
  scope.waits = new CallWaits();
  return scope.waits;
}

/** Ends the recording of the current request; work that goes on after it is not recorded. */
export function endWaits(waits: CallWaits | undefined): void {
  const scope = currentScope();
  if (waits !== undefined && scope?.waits === waits) scope.waits = undefined;
}

/** The waits of the current request; undefined where none are recorded. */
export function currentWaits(): CallWaits | undefined {
  return currentScope()?.waits;
}

/** Waits for a promise and records the time. */
export async function waiting<T>(wait: Wait, promise: Promise<T>): Promise<T> {
  const waits = currentWaits();
  if (waits === undefined) return await promise;
  const startMs = performance.now();
  try {
    return await promise;
  } finally {
    waits.add(wait, performance.now() - startMs);
  }
}
