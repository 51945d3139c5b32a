// Findings of the doctor's checks, and their parallel run with a time limit each.
import { errorText } from "#base/log.ts";

/** Longest time that one check of `grove doctor` may take; all run at once. */
const DOCTOR_CHECK_TIMEOUT_MS = 5_000;

/** Severity of a finding. */
export type State = "ok" | "warning" | "failed";

/** One line with the observation and one with the action. */
export interface Finding {
  /** The subject, in a few words. */
  readonly name: string;
  readonly state: State;
  /** Never holds a secret. */
  readonly what: string;
  /** Empty without an action. */
  readonly todo: string;
}

/** One check. It may find several things, and may throw, which is a failure. */
export interface Check {
  readonly name: string;
  /** Stops when the signal is aborted. */
  run(signal: AbortSignal): Promise<readonly Finding[]>;
}

/** No problem. */
export function ok(name: string, what: string): Finding {
  return { name, state: "ok", what, todo: "" };
}

/** It works, but the user should know. */
export function warning(name: string, what: string, todo: string): Finding {
  return { name, state: "warning", what, todo };
}

/** It does not work. */
export function failed(name: string, what: string, todo: string): Finding {
  return { name, state: "failed", what, todo };
}

/**
 * Runs all checks at once, none longer than timeoutMs, and returns findings in the order of the checks. Never
 * rejects.
 */
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
