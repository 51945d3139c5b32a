// What a check of the doctor finds, and how many checks run side by side, each with a time limit of its own.
import { errorText } from "#base/log.ts";

/** Longest time that one check of `grove doctor` may take; all run at once. */
const DOCTOR_CHECK_TIMEOUT_MS = 5_000;

/** How bad it is. */
export type State = "ok" | "warning" | "failed";

/** One line of what was seen and one of what to do about it. */
export interface Finding {
  /** What was looked at, in a few words. */
  readonly name: string;
  readonly state: State;
  /** Never holds a secret. */
  readonly what: string;
  /** Empty when nothing is to be done. */
  readonly todo: string;
}

/** One thing to look at. It may find several, and may throw, which is a failure. */
export interface Check {
  readonly name: string;
  /** Stops what it does when the signal is aborted. */
  run(signal: AbortSignal): Promise<readonly Finding[]>;
}

/** All is well. */
export function ok(name: string, what: string): Finding {
  return { name, state: "ok", what, todo: "" };
}

/** It works, but somebody should know. */
export function warning(name: string, what: string, todo: string): Finding {
  return { name, state: "warning", what, todo };
}

/** It does not work. */
export function failed(name: string, what: string, todo: string): Finding {
  return { name, state: "failed", what, todo };
}

/** Runs all checks at once, none longer than timeoutMs, and answers what they found in the order of the checks. Never rejects. */
export async function runChecks(
  checks: readonly Check[],
  timeoutMs: number = DOCTOR_CHECK_TIMEOUT_MS,
): Promise<Finding[]> {
  const found = await Promise.all(checks.map((check) => runOne(check, timeoutMs)));
  return found.flat();
}

async function runOne(check: Check, timeoutMs: number): Promise<readonly Finding[]> {
  const controller = new AbortController();
  const late = Promise.withResolvers<readonly Finding[]>();
  const timer = setTimeout(() => {
    late.resolve([
      failed(
        check.name,
        `no answer within ${timeoutMs / 1_000} s`,
        "See that it runs, and that nothing on the way drops packets.",
      ),
    ]);
    controller.abort();
  }, timeoutMs);
  try {
    return await Promise.race([check.run(controller.signal), late.promise]);
  } catch (error) {
    return [failed(check.name, errorText(error), "")];
  } finally {
    clearTimeout(timer);
  }
}
