// The Range header (RFC 9110, section 14): at most eight ranges after those that touch are merged.

/** Ranges that an answer has at most. */
const RANGES_MAX = 8;

/** Characters of the header that are looked at: blanks in a longer one would be gone through over and over. */
const HEADER_MAX_LENGTH = 1_024;

/** Bytes from start to end (exclusive). */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/**
 * What a Range header asks of a file of that size: "all" where it is to be ignored, "none" where no range lies inside.
 * Ranges come back sorted and merged.
 */
export function readRanges(header: string | undefined, size: number): readonly ByteRange[] | "all" | "none" {
  if (header === undefined || header.length > HEADER_MAX_LENGTH) return "all";
  const specs = /^\s*bytes\s*=\s*([\d\s,-]{1,1000})$/iu.exec(header)?.[1]?.split(",");
  if (specs === undefined) return "all";
  const ranges: ByteRange[] = [];
  for (const spec of specs) {
    if (spec.trim() === "") continue;
    const found = /^\s*(\d{0,16})-(\d*)\s*$/u.exec(spec);
    if (found === null) return "all";
    const [, first = "", last = ""] = found;
    if (first === "" && last === "") return "all";
    if (first !== "" && last !== "" && Number(last) < Number(first)) return "all";
    const start = first === "" ? Math.max(0, size - Number(last)) : Number(first);
    const end = first === "" || last === "" ? size : Math.min(size, Number(last) + 1);
    if (start < end) ranges.push({ start, end });
  }
  if (ranges.length === 0) return "none";
  const merged = mergedRanges(ranges);
  return merged.length > RANGES_MAX ? "all" : merged;
}

function mergedRanges(ranges: readonly ByteRange[]): ByteRange[] {
  const merged: ByteRange[] = [];
  for (const range of ranges.toSorted((a, b) => a.start - b.start)) {
    const before = merged.at(-1);
    if (before !== undefined && range.start <= before.end) {
      merged[merged.length - 1] = { start: before.start, end: Math.max(before.end, range.end) };
    } else {
      merged.push(range);
    }
  }
  return merged;
}
