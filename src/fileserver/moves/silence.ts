// Bounds a stream of another node by its silence: what is large, or comes over a slow line, may take its time.
import type { Clock } from "#base/clock.ts";
import { Code, StatusError } from "#wire/framing/status.ts";

/** How long a node may send nothing; a message has at most 262,144 bytes. */
export const SILENCE_MAX_MS = 30_000;

/** The clock, and what ends the stream from outside. */
export interface Bounds {
  readonly clock: Pick<Clock, "after">;
  readonly signal: AbortSignal;
}

/**
 * Gives the messages of a stream, and ends it with DEADLINE_EXCEEDED where none comes for SILENCE_MAX_MS. The time that
 * the reader takes does not count.
 */
export async function* whileNotSilent<T>(
  { clock, signal }: Bounds,
  open: (signal: AbortSignal) => AsyncIterable<T>,
): AsyncGenerator<T, void, undefined> {
  signal.throwIfAborted();
  const end = new AbortController();
  const onAbort = (): void => end.abort(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  let isSilent = false;
  const listen = (): (() => void) =>
    clock.after(SILENCE_MAX_MS, () => {
      isSilent = true;
      end.abort();
    });
  let cancel = listen();
  try {
    for await (const message of open(end.signal)) {
      cancel();
      yield message;
      cancel = listen();
    }
  } catch (error) {
    if (!isSilent) throw error;
    const seconds = SILENCE_MAX_MS / 1_000;
    throw new StatusError(Code.DEADLINE_EXCEEDED, `the other node has sent nothing for ${seconds} s`);
  } finally {
    cancel();
    signal.removeEventListener("abort", onAbort);
  }
}
