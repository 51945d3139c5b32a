// Formats times as local date and minute, the same in every locale.

/** A time in milliseconds as `2026-11-21 23:43`; a question mark for one outside the calendar. */
export function localTime(ms: number | bigint): string {
  const date = new Date(Number(ms));
  if (Number.isNaN(date.getTime())) return "?".padEnd(16);
  const two = (value: number): string => String(value).padStart(2, "0");
  const day = `${String(date.getFullYear()).padStart(4, "0")}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}`;
}

/** The same to the second and with the zone: `2026-11-21 23:43:07 +01:00`. */
export function localTimeWithZone(ms: number | bigint): string {
  const date = new Date(Number(ms));
  if (Number.isNaN(date.getTime())) return localTime(ms);
  const two = (value: number): string => String(value).padStart(2, "0");
  const east = -date.getTimezoneOffset();
  const zone = `${east < 0 ? "-" : "+"}${two(Math.floor(Math.abs(east) / 60))}:${two(Math.abs(east) % 60)}`;
  return `${localTime(ms)}:${two(date.getSeconds())} ${zone}`;
}
