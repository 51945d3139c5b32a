// Runs work that answers now or later, and reports its end once.

/**
 * Returns what `run` returns, or throws what it throws. Calls `end` first: without an error, or with the one
 * that was thrown.
 */
export function settled<T>(run: () => T | Promise<T>, end: (error?: unknown) => void): T | Promise<T> {
  let outcome: T | Promise<T>;
  try {
    outcome = run();
  } catch (error) {
    end(error);
    throw error;
  }
  if (outcome instanceof Promise) {
    return outcome.then(
      (result) => {
        end();
        return result;
      },
      (error: unknown) => {
        end(error);
        throw error;
      },
    );
  }
  end();
  return outcome;
}
