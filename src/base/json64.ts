// JSON that keeps all 64 bits of a byte count (decision T17): numbers up to 2^53 - 1, decimal strings above.
import { U64_MAX } from "./limits.ts";

/** A byte count in JSON: a number up to 2^53 - 1, else a decimal string (decision T17). */
export type Json64 = number | string;

const MAX_SAFE = BigInt(Number.MAX_SAFE_INTEGER);
const MIN_SAFE = BigInt(Number.MIN_SAFE_INTEGER);

/** Serialises like JSON.stringify; a bigint becomes a number where that is exact, else a decimal string. */
export function stringify64(value: unknown, indent?: number): string {
  return JSON.stringify(
    value,
    (_key, item: unknown) => (typeof item === "bigint" ? toJson64(item) : item),
    indent,
  );
}

/** A byte count as JSON carries it: a number up to 2^53 - 1, else a decimal string. */
export function toJson64(value: bigint): Json64 {
  return value <= MAX_SAFE && value >= MIN_SAFE ? Number(value) : value.toString();
}

/**
 * Parses JSON; integers that a number would round become bigint, read from the source text. Those beyond all
 * numbers become an infinity, because reading a million digits exactly takes long.
 */
export function parse64(text: string): unknown {
  type SourceReviver = (key: string, value: unknown, context: { source?: string }) => unknown;
  const keepExact: SourceReviver = (_key, value, context) =>
    Number.isInteger(value) && !Number.isSafeInteger(value) && /^-?\d+$/.test(context.source ?? "")
      ? BigInt(context.source ?? "0")
      : value;
  return JSON.parse(text, keepExact as (key: string, value: unknown) => unknown);
}

/** Reads an unsigned 64-bit integer (number, bigint or decimal string); undefined for other values. */
export function parseU64(value: unknown): bigint | undefined {
  let parsed: bigint;
  if (typeof value === "bigint") parsed = value;
  else if (typeof value === "number" && Number.isSafeInteger(value)) parsed = BigInt(value);
  else if (typeof value === "string" && /^(0|[1-9]\d{0,19})$/.test(value)) parsed = BigInt(value);
  else return undefined;
  return parsed >= 0n && parsed <= U64_MAX ? parsed : undefined;
}
