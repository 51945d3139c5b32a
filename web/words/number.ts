// Numbers as text; bytes in binary units, rates in MB/s as the API has them.
import { formatBytes } from "#base/bytes.ts";
import { PERCENT_TOLD_MAX } from "#base/usage-level.ts";

/** Text of an unknown value. */
export const UNKNOWN = "–";

/** A byte count, also as a decimal string (above 2^53), or unknown. */
export function bytesText(count: number | string | null | undefined): string {
  if (count === null || count === undefined) return UNKNOWN;
  return formatBytes(typeof count === "string" ? BigInt(count) : count);
}

/** A number with decimals by its size. */
export function plainNumber(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return UNKNOWN;
  const size = Math.abs(value);
  return value.toLocaleString(undefined, { maximumFractionDigits: size >= 100 ? 0 : size >= 10 ? 1 : 2 });
}

/** A share: "41 %", or "over 999 %". */
export function percentText(value: number | null | undefined): string {
  if (typeof value === "number" && value > PERCENT_TOLD_MAX) return `over ${PERCENT_TOLD_MAX} %`;
  return value === null || value === undefined ? UNKNOWN : `${plainNumber(value)} %`;
}

/** A rate in 10^6 bytes a second: "81 MB/s". */
export function rateText(mbps: number | null | undefined): string {
  return mbps === null || mbps === undefined ? UNKNOWN : `${plainNumber(mbps)} MB/s`;
}

/** A count with its noun: "1 node", "3 nodes". */
export function countText(count: number, noun: string, many: string = `${noun}s`): string {
  return `${count.toLocaleString()} ${count === 1 ? noun : many}`;
}
