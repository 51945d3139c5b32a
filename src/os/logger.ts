// Logs one JSON line per event through pino, with secrets scrubbed out (C-13).

import { openSync } from "node:fs";
import { dirname } from "node:path";
import { pino } from "pino";
import type { LogFields, Logger } from "#base/log.ts";
import { currentRequestId } from "#base/request-scope.ts";
import { cleanFields, cleanText } from "./log-text.ts";
import { makePrivateFolder } from "./private-folder.ts";

/** Bytes of log lines that may wait for a slow disk; more are dropped and counted. */
const LOG_BUFFER_MAX_BYTES = 16_777_216;

/** Levels in order of importance. */
export const LOG_LEVELS = ["debug", "info", "warn", "error"] as const;

/** One of the levels. */
export type LogLevel = (typeof LOG_LEVELS)[number];

/** Destination and level of a logger. */
export interface LoggerOptions {
  /** A file that is appended to (made with mode 0600), or standard error. */
  readonly destination: { readonly file: string } | "stderr";
  /** Default info. */
  readonly level?: LogLevel;
  /** Fields of every line, such as the process's role. */
  readonly fields?: LogFields;
}

/** A logger that can be closed. */
export interface ProcessLogger extends Logger {
  readonly level: LogLevel;
  /** Changes the level of this logger and of all its children. */
  setLevel(level: LogLevel): void;
  /** Writes the waiting lines and closes the file; later events are dropped. */
  close(): Promise<void>;
}

interface Sink {
  readonly write: (level: LogLevel, fields: Record<string, unknown>, event: string) => void;
  level: LogLevel;
  isClosed: boolean;
}

/**
 * Opens a logger: each event is one line `{"level","time","event",…fields}`. `time` is RFC 3339 in UTC;
 * `request_id` names the request that caused it. A full or broken disk never stops the caller: lines are
 * dropped and counted in `log_lines_dropped`. Throws when the file cannot be opened.
 */
export function createLogger(options: LoggerOptions): ProcessLogger {
  const stream = pino.destination({
    dest: openDestination(options.destination),
    sync: false,
    maxLength: LOG_BUFFER_MAX_BYTES,
  });
  const writer = pino(
    {
      base: null,
      level: "debug",
      messageKey: "event",
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
    },
    stream,
  );
  let droppedLines = 0;
  stream.on("drop", () => droppedLines++);
  stream.on("error", () => droppedLines++);
  stream.on("drain", () => {
    if (droppedLines === 0) return;
    const lines = droppedLines;
    droppedLines = 0;
    writer.warn({ lines }, "log_lines_dropped");
  });
  const sink: Sink = {
    level: options.level ?? "info",
    isClosed: false,
    write: (level, fields, event) => writer[level](fields, event),
  };
  const closed = Promise.withResolvers<void>();
  stream.once("close", () => closed.resolve());
  // A broken pipe takes no more lines, and "close" never comes.
  stream.on("error", () => {
    if (sink.isClosed) closed.resolve();
  });
  const logger = makeLogger(sink, cleanFields(options.fields ?? {}));
  return {
    ...logger,
    get level(): LogLevel {
      return sink.level;
    },
    setLevel(level) {
      sink.level = level;
    },
    close() {
      if (!sink.isClosed) {
        sink.isClosed = true;
        stream.end();
      }
      return closed.promise;
    },
  };
}

/** Makes SIGUSR2 switch between debug and the logger's own level; the returned function stops listening. */
export function switchLevelOnSignal(logger: ProcessLogger): () => void {
  const usual = logger.level;
  const onSignal = (): void => {
    logger.setLevel(logger.level === "debug" ? usual : "debug");
    logger.info("log_level_changed", { now: logger.level });
  };
  process.on("SIGUSR2", onSignal);
  return () => process.off("SIGUSR2", onSignal);
}

function makeLogger(sink: Sink, inherited: Record<string, unknown>): Logger {
  const at =
    (level: LogLevel) =>
    (event: string, fields?: LogFields): void => {
      if (sink.isClosed || LOG_LEVELS.indexOf(level) < LOG_LEVELS.indexOf(sink.level)) return;
      const request = currentRequestId();
      const all = {
        ...inherited,
        ...(request === undefined ? {} : { request_id: request }),
        ...(fields === undefined ? {} : cleanFields(fields, inherited)),
      };
      sink.write(level, all, cleanText(event));
    };
  return {
    debug: at("debug"),
    info: at("info"),
    warn: at("warn"),
    error: at("error"),
    child: (fields) => makeLogger(sink, { ...inherited, ...cleanFields(fields, inherited) }),
  };
}

/** Opened at once, so that an unwritable path fails the start and not the first event. */
function openDestination(destination: LoggerOptions["destination"]): number {
  if (destination === "stderr") return 2;
  makePrivateFolder(dirname(destination.file));
  return openSync(destination.file, "a", 0o600);
}
