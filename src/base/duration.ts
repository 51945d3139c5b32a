// Parses and formats spans of time: "30d", "12h", "90m", "45s".

/** A day of 24 hours. */
export const DAY_MS = 86_400_000;

const UNIT_MS: Readonly<Record<string, number>> = {
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: DAY_MS,
  w: 7 * DAY_MS,
};

/** Parses a span such as "7d", "36h", "2w", or "0", to milliseconds; undefined for other text. */
export function parseDuration(text: string): number | undefined {
  const match = /^\s*(\d{1,9})\s*([smhdw])?\s*$/i.exec(text);
  if (match === null) return undefined;
  const [, count = "", unit] = match;
  if (unit === undefined) return Number(count) === 0 ? 0 : undefined;
  return Number(count) * (UNIT_MS[unit.toLowerCase()] ?? 0);
}

/** Formats a span in its largest whole unit of days, hours, minutes or seconds: "30 days", "36 hours". */
export function formatDuration(ms: number): string {
  for (const [unit, name] of [
    ["d", "day"],
    ["h", "hour"],
    ["m", "minute"],
  ] as const) {
    const count = ms / (UNIT_MS[unit] ?? 1);
    if (count >= 1 && Number.isInteger(count)) return `${count} ${name}${count === 1 ? "" : "s"}`;
  }
  const seconds = Math.round(ms / 1_000);
  return `${seconds} second${seconds === 1 ? "" : "s"}`;
}
