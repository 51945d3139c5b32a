// Time-ordered identifiers (ULID: 48 bits of milliseconds, 80 random bits, Crockford's base 32).
import type { Clock } from "./clock.ts";
import type { Random } from "./random.ts";

const ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/** Makes a ULID of 26 characters from the wall clock and 80 random bits. */
export function ulid(clock: Pick<Clock, "wallMs">, random: Random): string {
  let value = (BigInt(Math.trunc(clock.wallMs())) << 80n) | BigInt(`0x${random.bytes(10).toString("hex")}`);
  let text = "";
  for (let digit = 0; digit < 26; digit++) {
    text = ALPHABET.charAt(Number(value & 31n)) + text;
    value >>= 5n;
  }
  return text;
}

/** An id behind this one and before all that are made in later milliseconds, the same each time. */
export function idBehind(id: string): string {
  return `${id}+`;
}
