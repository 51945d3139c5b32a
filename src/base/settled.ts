// Runs work that answers now or later, and reports its end once.

/**
 * Returns what `run` returns, or throws what it throws. Calls `end` first: without an error, or with the one
 * that was thrown.
 */
export function settled<R>(run: () => R, end: (error?: unknown) => void): R {
  let outcome: R;
  try {
    outcome = run();
  } catch (error) {
    end(error);
    throw error;
  }
  if (outcome instanceof Promise) {
    return outcome.then(
      (result: unknown) => {
        end();
        return result;
      },
      (error: unknown) => {
        end(error);
        throw error;
      },
    ) as R;
  }
  end();
  return outcome;
}
