// Moments and spans as the pages say them: relative in text, absolute where it is asked for.

/** A span in its largest unit, rounded down: "12 s", "4 min", "3 h", "41 d". Seconds below zero count as none. */
export function formatSpan(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3_600) return `${Math.floor(whole / 60)} min`;
  if (whole < 86_400) return `${Math.floor(whole / 3_600)} h`;
  return `${Math.floor(whole / 86_400)} d`;
}

/** How long ago: "just now" below five seconds, else "4 min ago". Both in unix seconds. */
export function formatAgo(unixSeconds: number, nowSeconds: number): string {
  const seconds = nowSeconds - unixSeconds;
  return seconds < 5 ? "just now" : `${formatSpan(seconds)} ago`;
}

const MOMENT = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

/** The whole moment in the viewer's zone. Unix seconds. */
export function formatMoment(unixSeconds: number): string {
  return unbroken(MOMENT, unixSeconds);
}

/** A line never ends between the figures of a time and "AM". */
function unbroken(format: Intl.DateTimeFormat, unixSeconds: number): string {
  const parts = format.formatToParts(unixSeconds * 1_000);
  return parts
    .map(({ value }, index) =>
      parts[index + 1]?.type === "dayPeriod" ? value.replaceAll(" ", "\u00a0") : value,
    )
    .join("");
}

/** Days until something is full, as a person counts them: "today", "in 1 day", "in 12 days", "in 3 months". */
export function formatDaysUntil(days: number): string {
  if (days < 1) return "within a day";
  if (days < 90) return `in ${Math.round(days)} ${Math.round(days) === 1 ? "day" : "days"}`;
  return `in ${Math.round(days / 30)} months`;
}

const CLOCK = new Intl.DateTimeFormat(undefined, { timeStyle: "short" });
const CLOCK_WITH_SECONDS = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });

/** The time of day in the viewer's zone, as axes and sentences tell it. Unix seconds. */
export function clockText(unixSeconds: number, withSeconds: boolean = false): string {
  return unbroken(withSeconds ? CLOCK_WITH_SECONDS : CLOCK, unixSeconds);
}

const DAY_SECONDS = 86_400;
const DAY_AND_CLOCK = new Intl.DateTimeFormat(undefined, {
  month: "short",
  day: "numeric",
  hour: "numeric",
  minute: "2-digit",
});
const DAY = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric" });

/** A moment at an axis that spans so many seconds: the time of day, with the day where there are several, or the day alone. */
export function axisText(unixSeconds: number, spanSeconds: number): string {
  if (spanSeconds <= DAY_SECONDS) return clockText(unixSeconds);
  return unbroken(spanSeconds < 3 * DAY_SECONDS ? DAY_AND_CLOCK : DAY, unixSeconds);
}
