// Words and numbers of the page.

const UNITS = ["bytes", "KiB", "MiB", "GiB", "TiB"] as const;

/** Bytes in binary units. */
export function bytesText(bytes: number): string {
  if (bytes === 1) return "1 byte";
  let unit = 0;
  let value = bytes;
  while (value >= 1_024 && unit < UNITS.length - 1) {
    value /= 1_024;
    unit++;
  }
  const digits = unit === 0 || value >= 100 ? 0 : 1;
  return `${value.toLocaleString("en", { maximumFractionDigits: digits })} ${UNITS[unit] ?? ""}`;
}

/** A count with its noun. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** A time, relative while it is near. */
export function timeText(ms: number, nowMs: number): string {
  const ago = nowMs - ms;
  // Clocks differ a little, and the page's now is up to a minute old.
  if (ago > -2 * MINUTE_MS && ago < MINUTE_MS) return "just now";
  if (ago >= 0 && ago < HOUR_MS) return `${Math.floor(ago / MINUTE_MS)} min ago`;
  if (ago >= 0 && ago < DAY_MS) return `${Math.floor(ago / HOUR_MS)} h ago`;
  return new Date(ms).toLocaleDateString(undefined, { year: "numeric", month: "short", day: "numeric" });
}

/** The exact time. */
export function exactTime(ms: number): string {
  return new Date(ms).toLocaleString();
}

/** A moment that is to come, to the minute. */
export function momentText(ms: number): string {
  return new Date(ms).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
}

/** The last name of a path. */
export function nameOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

/** A name as it is shown: marks that turn the way of writing make "exe.png" of "\u202egnp.exe". */
export function shownName(name: string): string {
  return name.replace(/[\u202a-\u202e\u2066-\u2069]/gu, "\ufffd");
}

/** The folder in which a path lies. */
export function folderOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/")) || "/";
}

/** True for the name of a group's root, which no one person owns. */
export function isGroup(root: string): boolean {
  return root.endsWith("@group");
}

/** A name below a folder. */
export function below(folder: string, name: string): string {
  return folder === "/" ? `/${name}` : `${folder}/${name}`;
}

/** Why Windows could not hold a name; undefined for one that it can. */
export function windowsTrouble(name: string): string | undefined {
  if (/[<>:"\\|?*]/u.test(name)) return 'Windows cannot hold a name with < > : " \\ | ? or *.';
  if (/[. ]$/u.test(name)) return "Windows drops a dot or a blank at the end of a name.";
  return /^(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)/iu.test(name)
    ? "Windows keeps this name for itself."
    : undefined;
}

/** "report.pdf" with a number: "report (2).pdf". */
export function numberedName(name: string, number: number): string {
  const at = name.lastIndexOf(".");
  return at > 0 ? `${name.slice(0, at)} (${number})${name.slice(at)}` : `${name} (${number})`;
}
