// Moments and spans as text: relative, or absolute on request.

/** A span in its largest unit, rounded down: "12 s", "4 min", "3 h", "41 d". Negative seconds count as 0. */
export function formatSpan(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3_600) return `${Math.floor(whole / 60)} min`;
  if (whole < 86_400) return `${Math.floor(whole / 3_600)} h`;
  return `${Math.floor(whole / 86_400)} d`;
}

/** The time since a moment: "just now" below five seconds, else "4 min ago". Both in unix seconds. */
export function formatAgo(unixSeconds: number, nowSeconds: number): string {
  const seconds = nowSeconds - unixSeconds;
  return seconds < 5 ? "just now" : `${formatSpan(seconds)} ago`;
}

const MOMENT = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

/** The whole moment in the viewer's zone. Unix seconds. */
export function formatMoment(unixSeconds: number): string {
  return unbroken(MOMENT, unixSeconds);
}

/** A line break never separates a time from "AM". */
function unbroken(format: Intl.DateTimeFormat, unixSeconds: number): string {
  const parts = format.formatToParts(unixSeconds * 1_000);
  return parts
    .map(({ value }, index) =>
      parts[index + 1]?.type === "dayPeriod" ? value.replaceAll(" ", "\u00a0") : value,
    )
    .join("");
}

/** Days until something is full: "today", "in 1 day", "in 12 days", "in 3 months". */
export function formatDaysUntil(days: number): string {
  if (days < 1) return "within a day";
  if (days < 90) return `in ${Math.round(days)} ${Math.round(days) === 1 ? "day" : "days"}`;
  return `in ${Math.round(days / 30)} months`;
}

const CLOCK = new Intl.DateTimeFormat(undefined, { timeStyle: "short" });
const CLOCK_WITH_SECONDS = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });

/** The time of day in the viewer's zone, for axes and sentences. Unix seconds. */
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

/** A moment on an axis of this span: the time of day, with the day on longer axes, or the day alone. */
export function axisText(unixSeconds: number, spanSeconds: number): string {
  if (spanSeconds <= DAY_SECONDS) return clockText(unixSeconds);
  return unbroken(spanSeconds < 3 * DAY_SECONDS ? DAY_AND_CLOCK : DAY, unixSeconds);
}

/** "2026-12-01 08:00" in the viewer's zone, as fields for an end take it. */
export function minuteText(unixSeconds: number): string {
  const moment = new Date(unixSeconds * 1_000);
  const two = (number: number): string => String(number).padStart(2, "0");
  const day = `${moment.getFullYear()}-${two(moment.getMonth() + 1)}-${two(moment.getDate())}`;
  return `${day} ${two(moment.getHours())}:${two(moment.getMinutes())}`;
}
