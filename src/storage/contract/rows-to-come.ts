// What a synchronous read throws while its rows are on another machine, and how it is run again.

/** Times that a read is run again: each needs more than the one before, down a path or along a list. */
const ROUNDS_MAX = 4_096;

/**
 * Thrown by a read of an engine whose rows lie elsewhere. It has decided nothing: once they have come, all of
 * the decision is made again, on one version. The local engine never throws it.
 */
export class RowsToCome extends Error {
  override readonly name = "RowsToCome";
  /** Resolves when they are here; rejects with the refusal when they cannot come. */
  readonly arrival: Promise<void>;

  constructor(arrival: Promise<void>) {
    super("rows that a read needs are not here yet");
    this.arrival = arrival;
    // A caller that does not wait finds the rows the next time.
    arrival.catch(() => undefined);
  }
}

/** Runs a read that has no effects; the answer is a promise only where rows have to come first. */
export function whenRowsAreHere<T>(read: () => T): T | Promise<Awaited<T>> {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof RowsToCome)) throw error;
    return again(read, error);
  }
}

/** The same for an attempt that may wait: what it throws this way, it throws before it changes anything. */
export async function againWhenRowsCome<T>(attempt: () => T): Promise<Awaited<T>> {
  for (let round = 1; ; round++) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof RowsToCome) || round >= ROUNDS_MAX) throw error;
      await error.arrival;
    }
  }
}

async function again<T>(read: () => T, first: RowsToCome): Promise<Awaited<T>> {
  await first.arrival;
  return againWhenRowsCome(read);
}
