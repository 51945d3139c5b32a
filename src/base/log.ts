// The logging port of all rooms: an event's name and fields, never a secret.

/** Plain facts of an event. Values must not be tokens, hashes, passwords or file content. */
export type LogFields = Readonly<Record<string, string | number | boolean | bigint | null | undefined>>;

/** Takes events; implemented over pino by `os`, and silent in tests. */
export interface Logger {
  debug(event: string, fields?: LogFields): void;
  info(event: string, fields?: LogFields): void;
  warn(event: string, fields?: LogFields): void;
  error(event: string, fields?: LogFields): void;
  /** A logger that adds the fields to every event. */
  child(fields: LogFields): Logger;
}

/** Drops all events. */
export const silentLogger: Logger = {
  debug() {},
  info() {},
  warn() {},
  error() {},
  child: () => silentLogger,
};

/** An error as one line: its message and those of its causes, never a stack. */
export function errorText(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  // Of several ends that failed: its own message names none of them.
  if (error instanceof SuppressedError) return `${errorText(error.suppressed)}; ${errorText(error.error)}`;
  const { message, cause } = error;
  if (cause === undefined) return message;
  // A message that ends with its cause's says it already.
  const isTold = cause instanceof Error && cause.message !== "" && message.endsWith(cause.message);
  return isTold
    ? message.slice(0, -cause.message.length) + errorText(cause)
    : `${message}: ${errorText(cause)}`;
}
