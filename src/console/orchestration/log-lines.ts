// Lines of a log as they come from a node: entries of the journal in JSON, or lines of a file, in pieces that end anywhere (D10, M-11).
import { StringDecoder } from "node:string_decoder";
import type { LogLine } from "#wire/webapi/log-tail.ts";

/** Characters of one line of a log; the rest of it is left out. */
export const LOG_LINE_MAX_LENGTH = 65_536;

const PRIORITY_MAX = 7;
/** As syslog counts them; the levels are those of our own logs (`src/os/logger.ts`). */
const PRIORITY_OF_LEVEL: ReadonlyMap<string, number> = new Map([
  ["error", 3],
  ["warn", 4],
  ["info", 6],
  ["debug", 7],
]);
/** How our own services' lines begin; of a line that was cut that much is there too. */
const OWN_LINE = /^\{"level":"([a-z]{1,9})","time":"([0-9T:.+Z-]{20,35})"/;

/** Where lines come from. */
export type LogSource = "journal" | "file";

/** Cuts a stream into lines; a line that is too long is cut off there. */
export class LogLines {
  readonly #source: LogSource;
  readonly #decoder = new StringDecoder("utf8");
  #rest = "";

  constructor(source: LogSource) {
    this.#source = source;
  }

  /** The lines that are whole now. */
  push(bytes: Buffer): LogLine[] {
    const pieces = (this.#rest + this.#decoder.write(bytes)).split("\n");
    // Of a line without an end only so much is held.
    this.#rest = (pieces.pop() ?? "").slice(0, LOG_LINE_MAX_LENGTH);
    return pieces.filter((line) => line !== "").map((line) => lineOf(line, this.#source));
  }

  /** What came behind the last end of a line. */
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

/** What a file's line says of itself; nothing where another program wrote it. */
function momentOf(text: string): Partial<Pick<LogLine, "priority" | "ts">> {
  const [, level = "", time = ""] = OWN_LINE.exec(text) ?? [];
  const priority = PRIORITY_OF_LEVEL.get(level);
  const ts = Date.parse(time) / 1_000;
  return priority === undefined || Number.isNaN(ts) ? {} : { ts, priority };
}

/** The journal tells what is not text as a list of bytes. */
function messageOf(message: unknown): string {
  if (typeof message === "string") return message;
  const isBytes = Array.isArray(message) && message.every((byte) => Number.isInteger(byte));
  return isBytes ? Buffer.from(message as number[]).toString("utf8") : "";
}
