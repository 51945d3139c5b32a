// Logs as one JSON line an event, through pino, with secrets scrubbed out (C-13).

import { GroveError } from "#base/errors.ts";
import type { LogFields, Logger } from "#base/log.ts";

/** Levels in order of loudness. */
export type LogLevel = "debug" | "info" | "warn" | "error";

/** Where and how loud to log. */
export interface LoggerOptions {
  /** Path of a file that is appended to (mode 0600), or standard error. */
  readonly destination: { readonly file: string } | "stderr";
  /** Default info. */
  readonly level?: LogLevel;
  /** Fields of every line, such as the process's role. */
  readonly fields?: LogFields;
}

/** A logger with an end. */
export interface ProcessLogger extends Logger {
  /** Changes the level of this logger and all its children. */
  setLevel(level: LogLevel): void;
  /** Writes out what waits and closes the file. */
  close(): Promise<void>;
}

/** Opens a logger. Throws when the file cannot be opened. */
export function createLogger(options: LoggerOptions): ProcessLogger {
  void options;
  throw new GroveError("NOT_IMPLEMENTED", "being built");
}
