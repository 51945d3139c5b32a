// Parses end times: "2h", "90 min", "until tomorrow 08:00", "Friday 18:00", "2026-12-01 08:00".
import { DAY_MS } from "./duration.ts";

/** Characters of such a text. */
export const UNTIL_TEXT_MAX_LENGTH = 64;

/** The problem of a text that names no moment. */
const HOW =
  'write for how long, such as "2h" or "1d 12h", or until when, such as "tomorrow 08:00" or "Friday 18:00"';

/** The reference of a text: now, a start and a time zone. */
export interface UntilFrom {
  /** Now, in unix milliseconds. */
  readonly nowMs: number;
  /** Start of a span, in unix milliseconds; default now. */
  readonly startMs?: number;
  /** IANA name of the user's time zone, such as "Europe/Berlin". */
  readonly timeZone: string;
}

interface Day {
  readonly year: number;
  /** From 1 on. */
  readonly month: number;
  readonly day: number;
}

const UNITS_MS: Readonly<Record<string, number>> = {
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: DAY_MS,
  w: 7 * DAY_MS,
};
const UNIT_NAMES: readonly (readonly [RegExp, string])[] = [
  [/^s(?:ec(?:ond)?s?)?$/, "s"],
  [/^m(?:in(?:ute)?s?)?$/, "m"],
  [/^h(?:(?:ou)?rs?)?$/, "h"],
  [/^d(?:ays?)?$/, "d"],
  [/^w(?:eeks?)?$/, "w"],
];
const WEEKDAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"] as const;
const WEEKDAY =
  /^(?:sun(?:day)?|mon(?:day)?|tue(?:sday)?|wed(?:nesday)?|thu(?:rsday)?|fri(?:day)?|sat(?:urday)?)$/;

/**
 * The moment of a text in unix seconds, or the problem of the text. A span counts from its start. A time of
 * day is in the zone: "08:00" is the next one, a weekday the next of its name. A time that the zone's clock
 * skips means the moment after, and a repeated time the first.
 */
export function untilSeconds(text: string, from: UntilFrom): number | { readonly problem: string } {
  const words = text
    .slice(0, UNTIL_TEXT_MAX_LENGTH + 1)
    .trim()
    .toLowerCase()
    .replace(/^(?:for|until|till)\s+/, "");
  if (words === "" || text.length > UNTIL_TEXT_MAX_LENGTH) return { problem: HOW };
  const spanMs = spanOf(words);
  if (spanMs !== undefined) return Math.trunc(((from.startMs ?? from.nowMs) + spanMs) / 1_000);
  let zone: ZoneClock;
  try {
    zone = new ZoneClock(from.timeZone);
  } catch {
    return { problem: "no time zone has this name" };
  }
  const atMs = exactMs(text.trim()) ?? momentMs(words, zone, from.nowMs);
  if (atMs === undefined) return { problem: HOW };
  if (atMs <= from.nowMs) return { problem: "that moment is over" };
  return Math.trunc(atMs / 1_000);
}

/** "2h", "1d 12h", "3 days and 2 hours" in milliseconds; undefined for other text. */
function spanOf(words: string): number | undefined {
  const rest = words.replaceAll(/\band\b|,/g, " ").trim();
  if (!/^(?:\d{1,9}\s*[a-z]+\s*)+$/.test(rest)) return undefined;
  let ms = 0;
  for (const [, count = "", name = ""] of rest.matchAll(/(\d{1,9})\s*([a-z]+)/g)) {
    const unit = UNIT_NAMES.find(([names]) => names.test(name))?.[1];
    if (unit === undefined) return undefined;
    ms += Number(count) * (UNITS_MS[unit] ?? 0);
  }
  return ms;
}

/** A moment that names its own zone. */
function exactMs(text: string): number | undefined {
  if (!/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,3})?)?(?:Z|[+-]\d{2}:\d{2})$/i.test(text))
    return undefined;
  const ms = Date.parse(text);
  return Number.isNaN(ms) ? undefined : ms;
}

function momentMs(words: string, zone: ZoneClock, nowMs: number): number | undefined {
  const [, dayText = "", hourText = "", minuteText = ""] =
    /^(?:(\S+?)(?:\s+|t))?(?:at\s+)?(\d{1,2}):(\d{2})$/.exec(words) ?? [];
  if (hourText === "" || Number(hourText) > 23 || Number(minuteText) > 59) return undefined;
  const at = (day: Day): number => zone.msOf(day, Number(hourText), Number(minuteText));
  const today = zone.dayOf(nowMs);
  if (dayText === "today") return at(today);
  if (dayText === "tomorrow") return at(later(today, 1));
  if (dayText === "") return at(today) > nowMs ? at(today) : at(later(today, 1));
  if (WEEKDAY.test(dayText)) {
    const wanted = WEEKDAYS.findIndex((name) => dayText.startsWith(name));
    const days = (wanted - weekdayOf(today) + 7) % 7;
    return days === 0 && at(today) <= nowMs ? at(later(today, 7)) : at(later(today, days));
  }
  const [, year = "", month = "", day = ""] = /^(\d{4})-(\d{2})-(\d{2})$/.exec(dayText) ?? [];
  if (year === "") return undefined;
  const date = { year: Number(year), month: Number(month), day: Number(day) };
  const real = later(date, 0);
  return real.month === date.month && real.day === date.day ? at(date) : undefined;
}

function later({ year, month, day }: Day, days: number): Day {
  const date = new Date(Date.UTC(year, month - 1, day + days));
  return { year: date.getUTCFullYear(), month: date.getUTCMonth() + 1, day: date.getUTCDate() };
}

function weekdayOf({ year, month, day }: Day): number {
  return new Date(Date.UTC(year, month - 1, day)).getUTCDay();
}

/** The wall clock of a zone. */
class ZoneClock {
  readonly #format: Intl.DateTimeFormat;

  /** Throws RangeError for an unknown zone. */
  constructor(timeZone: string) {
    this.#format = new Intl.DateTimeFormat("en-US", {
      timeZone,
      hourCycle: "h23",
      year: "numeric",
      month: "numeric",
      day: "numeric",
      hour: "numeric",
      minute: "numeric",
      second: "numeric",
    });
  }

  dayOf(ms: number): Day {
    const { year, month, day } = this.#read(ms);
    return { year, month, day };
  }

  /** The first moment at which that clock shows this time, in unix milliseconds. */
  msOf({ year, month, day }: Day, hour: number, minute: number): number {
    const shown = Date.UTC(year, month - 1, day, hour, minute);
    const [before, after] = [this.#aheadMs(shown - DAY_MS), this.#aheadMs(shown + DAY_MS)];
    const moments = [shown - before, shown - after].filter((ms) => ms + this.#aheadMs(ms) === shown);
    return moments.length === 0 ? shown - before : Math.min(...moments);
  }

  /** Offset of the clock from UTC at a moment. */
  #aheadMs(ms: number): number {
    const { year, month, day, hour, minute, second } = this.#read(ms);
    return Date.UTC(year, month - 1, day, hour, minute, second) - Math.trunc(ms / 1_000) * 1_000;
  }

  #read(ms: number): Day & { readonly hour: number; readonly minute: number; readonly second: number } {
    const parts = new Map(this.#format.formatToParts(ms).map(({ type, value }) => [type, Number(value)]));
    const of = (type: Intl.DateTimeFormatPartTypes): number => parts.get(type) ?? 0;
    return {
      year: of("year"),
      month: of("month"),
      day: of("day"),
      hour: of("hour"),
      minute: of("minute"),
      second: of("second"),
    };
  }
}
