// Times as HTTP and WebDAV write them, to the second.

const DAY_MS = 86_400_000;
/** The end of the year 9999: later years have more digits, and are left to Date. */
const LAST_MS = 253_402_300_799_999;
const TWO_DIGITS: readonly string[] = Array.from({ length: 60 }, (_, number) =>
  String(number).padStart(2, "0"),
);

/** Both forms of a day; files of one day follow each other, and a day costs ten times as much as a time. */
let known = { day: -1, http: "", iso: "" };

/** Unix milliseconds as HTTP writes them, "Sun, 06 Nov 1994 08:49:37 GMT" (RFC 9110, section 5.6.7). */
export function httpDate(ms: number): string {
  if (!isPlain(ms)) return new Date(ms).toUTCString();
  return `${dayOf(ms).http}${timeOf(ms)} GMT`;
}

/** The three forms of a time: today's, that of RFC 850, and that of C's asctime, which names no zone. */
const HTTP_DATES = [
  /^[a-z]{3}, \d\d [a-z]{3} \d{4} \d\d:\d\d:\d\d GMT$/iu,
  /^[a-z]{6,9}, \d\d-[a-z]{3}-\d\d \d\d:\d\d:\d\d GMT$/iu,
  /^[a-z]{3} [a-z]{3} [ \d]\d \d\d:\d\d:\d\d \d{4}$/iu,
];

/** Unix milliseconds of a time as HTTP writes it (RFC 9110, section 5.6.7); undefined for any other text. */
export function readHttpDate(text: string): number | undefined {
  if (!HTTP_DATES.some((form) => form.test(text))) return undefined;
  const ms = Date.parse(/GMT$/iu.test(text) ? text : `${text} GMT`);
  return Number.isNaN(ms) ? undefined : ms;
}

/** Unix milliseconds to the second, "1994-11-06T08:49:37Z" (RFC 3339). Throws RangeError for no time at all. */
export function secondText(ms: number): string {
  if (!isPlain(ms)) return new Date(ms).toISOString().replace(/\.\d+Z$/u, "Z");
  return `${dayOf(ms).iso}${timeOf(ms)}Z`;
}

function isPlain(ms: number): boolean {
  return ms >= 0 && ms <= LAST_MS;
}

function dayOf(ms: number): typeof known {
  const day = Math.floor(ms / DAY_MS);
  if (day === known.day) return known;
  const date = new Date(day * DAY_MS);
  known = { day, http: date.toUTCString().slice(0, 17), iso: date.toISOString().slice(0, 11) };
  return known;
}

function timeOf(ms: number): string {
  const seconds = Math.floor((ms % DAY_MS) / 1_000);
  const minutes = Math.floor(seconds / 60);
  return `${TWO_DIGITS[Math.floor(minutes / 60)]}:${TWO_DIGITS[minutes % 60]}:${TWO_DIGITS[seconds % 60]}`;
}
