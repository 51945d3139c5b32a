// Runs a verb for each thing that was named: one that fails keeps no other from its turn.
import { inWords } from "#client/terminal/client-error.ts";
import { EXIT, exitCodeOf } from "#client/terminal/exit-codes.ts";
import type { ClientContext } from "./client-context.ts";
import { report } from "./command-host.ts";
import { isFinal } from "./final-failure.ts";

/**
 * Runs a step for each, in their order. Prints each failure at once, and answers the exit code of the first one.
 * Rejects with a failure that all others would share.
 */
export async function forEachNamed(
  context: ClientContext,
  verb: string,
  named: readonly string[],
  step: (name: string) => Promise<void>,
): Promise<number> {
  let code: number = EXIT.ok;
  for (const name of named) {
    try {
      await step(name);
    } catch (thrown) {
      const error = inWords(thrown);
      if (isFinal(error) || context.signal.aborted) throw error;
      report(verb, error, context.terminal, context.flags);
      if (code === EXIT.ok) code = exitCodeOf(error);
    }
  }
  return code;
}
