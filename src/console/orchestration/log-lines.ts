// Splits a log stream into lines: journal entries in JSON, or lines of a file, cut at any byte (D10, M-11).
import { StringDecoder } from "node:string_decoder";
import type { LogLine } from "#wire/webapi/log-tail.ts";

/** Characters of one log line; the rest is dropped. */
export const LOG_LINE_MAX_LENGTH = 65_536;

const PRIORITY_MAX = 7;
/** Syslog priorities of the levels of `src/os/logger.ts`. */
const PRIORITY_OF_LEVEL: ReadonlyMap<string, number> = new Map([
  ["error", 3],
  ["warn", 4],
  ["info", 6],
  ["debug", 7],
]);
/** The beginning of a line of our services' logs, within the part that a truncated line keeps. */
const OWN_LINE = /^\{"level":"([a-z]{1,9})","time":"([0-9T:.+Z-]{20,35})"/;

/** Source of log lines. */
export type LogSource = "journal" | "file";

/** Splits a stream into lines and truncates long ones. */
export class LogLines {
  readonly #source: LogSource;
  readonly #decoder = new StringDecoder("utf8");
  #rest = "";

  constructor(source: LogSource) {
    this.#source = source;
  }

  /** Returns the complete lines. */
  push(bytes: Buffer): LogLine[] {
    const pieces = (this.#rest + this.#decoder.write(bytes)).split("\n");
    // Bounds the buffer of an unfinished line.
    this.#rest = (pieces.pop() ?? "").slice(0, LOG_LINE_MAX_LENGTH);
    return pieces.filter((line) => line !== "").map((line) => lineOf(line, this.#source));
  }

  /** Returns the unfinished last line. */
  end(): LogLine[] {
    const rest = this.#rest + this.#decoder.end();
    this.#rest = "";
    return rest === "" ? [] : [lineOf(rest, this.#source)];
  }
}

function lineOf(text: string, source: LogSource): LogLine {
  const plain = { ts: null, priority: null, message: text.slice(0, LOG_LINE_MAX_LENGTH) };
  if (source === "file") return { ...plain, ...momentOf(text) };
  let entry: unknown;
  try {
    entry = JSON.parse(text);
  } catch {
    return plain;
  }
  if (typeof entry !== "object" || entry === null) return plain;
  const {
    MESSAGE: message,
    PRIORITY: priority,
    __REALTIME_TIMESTAMP: micros,
  } = entry as Record<string, unknown>;
  const [level, us] = [Number(priority ?? Number.NaN), Number(micros ?? Number.NaN)];
  return {
    ts: Number.isFinite(us) ? us / 1e6 : null,
    priority: Number.isInteger(level) && level >= 0 && level <= PRIORITY_MAX ? level : null,
    message: messageOf(message).slice(0, LOG_LINE_MAX_LENGTH),
  };
}

/** Time and priority of a file's line; empty for lines of other programs. */
function momentOf(text: string): Partial<Pick<LogLine, "priority" | "ts">> {
  const [, level = "", time = ""] = OWN_LINE.exec(text) ?? [];
  const priority = PRIORITY_OF_LEVEL.get(level);
  const ts = Date.parse(time) / 1_000;
  return priority === undefined || Number.isNaN(ts) ? {} : { ts, priority };
}

/** The message as text; the journal has bytes for anything else. */
function messageOf(message: unknown): string {
  if (typeof message === "string") return message;
  const isBytes = Array.isArray(message) && message.every((byte) => Number.isInteger(byte));
  return isBytes ? Buffer.from(message as number[]).toString("utf8") : "";
}
