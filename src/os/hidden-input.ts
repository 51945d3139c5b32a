// Reads a secret from a terminal without echo, beyond the 4,096 characters of the terminal's own editing.

/** A terminal that is read key by key. */
export interface HiddenInput {
  setRawMode(on: boolean): unknown;
  on(event: "data", listener: (data: Buffer) => void): unknown;
  off(event: "data", listener: (data: Buffer) => void): unknown;
  resume(): unknown;
  pause(): unknown;
}

/** Keys of a terminal in raw mode. */
const ENTER = /[\r\n]/;
const CTRL_C = "\u0003";
const CTRL_D = "\u0004";
const CTRL_U = "\u0015";
const BACKSPACE = /[\b\u007f]/;

/**
 * Reads one line of at most `maxLength` characters without echo; undefined after Ctrl-C. Rejects with the
 * signal's reason when that is aborted.
 */
export async function readHiddenLine(
  input: HiddenInput,
  maxLength: number,
  signal?: AbortSignal,
): Promise<string | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<string | undefined>();
  let line = "";
  const onAbort = (): void => reject(signal?.reason as Error);
  const onData = (data: Buffer): void => {
    for (const key of data.toString("utf8")) {
      if (key === CTRL_C) return resolve(undefined);
      if (ENTER.test(key) || key === CTRL_D) return resolve(line);
      if (key === CTRL_U) line = "";
      else if (BACKSPACE.test(key)) line = line.slice(0, -1);
      else if (line.length < maxLength) line += key;
    }
  };
  input.setRawMode(true);
  input.on("data", onData);
  signal?.addEventListener("abort", onAbort, { once: true });
  input.resume();
  try {
    return await promise;
  } finally {
    input.off("data", onData);
    signal?.removeEventListener("abort", onAbort);
    input.setRawMode(false);
    input.pause();
  }
}
