// Splits the JSON lines of our services' logs into time, level, event and facts.

/** A line in parts; other programs' lines have only a text. */
export interface ReadableLine {
  /** Unix seconds. */
  readonly ts: number | undefined;
  readonly level: string | undefined;
  readonly event: string | undefined;
  readonly text: string;
}

/** Fields with the same value on every line of a service. */
const SAME_ON_ALL: ReadonlySet<string> = new Set(["level", "time", "role", "node", "event"]);

/** Parses a line. */
export function readable(message: string): ReadableLine {
  const plain = { ts: undefined, level: undefined, event: undefined, text: message };
  if (!message.startsWith("{")) return plain;
  let json: unknown;
  try {
    json = JSON.parse(message);
  } catch {
    return plain;
  }
  const fields = json as Record<string, unknown>;
  const { time, level, event } = fields;
  const ts = typeof time === "string" ? Date.parse(time) / 1_000 : Number.NaN;
  if (Number.isNaN(ts) || typeof level !== "string" || typeof event !== "string") return plain;
  const facts = Object.entries(fields).filter(([name]) => !SAME_ON_ALL.has(name));
  return {
    ts,
    level,
    event: event.replaceAll("_", " "),
    text: facts.map(([name, value]) => `${name}=${valueText(value)}`).join("  "),
  };
}

function valueText(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}
