// Joins CRC-32 checksums of neighbouring ranges, so that message, block, chunk and file read bytes once.

/** The polynomial of CRC-32 (IEEE), bits reversed as zlib has it. */
const POLYNOMIAL = 0xedb88320;
/** Distinct lengths whose operator is cached; block and message lengths repeat. */
const REMEMBERED_LENGTHS = 256;

/** Product of two polynomials modulo the CRC's, both with reversed bits. */
function multiply(a: number, b: number): number {
  let factor = b;
  let product = 0;
  for (let bit = 0x80000000; bit !== 0; bit >>>= 1) {
    if ((a & bit) !== 0) product ^= factor;
    factor = (factor & 1) !== 0 ? (factor >>> 1) ^ POLYNOMIAL : factor >>> 1;
  }
  return product >>> 0;
}

/** x^(2^n) for n from 0; lengths below 2^53 bytes need 56 of them. */
const POWERS: readonly number[] = (() => {
  const powers = [0x40000000];
  for (let n = 1; n < 56; n++) {
    const last = powers[n - 1] ?? 0;
    powers.push(multiply(last, last));
  }
  return powers;
})();

const operators = new Map<number, number>();

/** x^(8 × length): the effect on a checksum of appending that many bytes. */
function operatorOf(length: number): number {
  const known = operators.get(length);
  if (known !== undefined) return known;
  let operator = 0x80000000;
  let rest = length;
  for (let n = 3; rest > 0; n++) {
    if (rest % 2 === 1) operator = multiply(POWERS[n] ?? 0, operator);
    rest = Math.floor(rest / 2);
  }
  if (operators.size >= REMEMBERED_LENGTHS) operators.clear();
  operators.set(length, operator);
  return operator;
}

/** CRC-32 of two neighbouring ranges from both CRC-32s and the second one's length in bytes (below 2^53). */
export function crc32Combine(first: number, second: number, secondLength: number): number {
  if (secondLength === 0) return first;
  if (first === 0) return second;
  return (multiply(operatorOf(secondLength), first) ^ second) >>> 0;
}

/** CRC-32 of the first of two neighbouring ranges: from that of both together, and that and the length of the second. */
export function crc32Without(whole: number, second: number, secondLength: number): number {
  if (secondLength === 0) return whole;
  // x has this order modulo the polynomial, so that the operator's inverse is a power of x as well.
  const order = 0xffffffff;
  let inverse = 0x80000000;
  let rest = order - ((8 * secondLength) % order);
  for (let n = 0; rest > 0; n++) {
    if (rest % 2 === 1) inverse = multiply(POWERS[n] ?? 0, inverse);
    rest = Math.floor(rest / 2);
  }
  return multiply(inverse, (whole ^ second) >>> 0);
}

/** CRC-32 of a number of zero bytes (below 2^53). */
export function crc32OfZeros(length: number): number {
  // The checksum register starts inverted and ends inverted: ~(~0 advanced by the length).
  return (multiply(operatorOf(length), 0xffffffff) ^ 0xffffffff) >>> 0;
}

/**
 * CRC-32 of a whole after a change of one range: from the range's old and new CRC-32 and the bytes after it.
 */
export function crc32Replace(
  whole: number,
  oldRange: number,
  newRange: number,
  bytesBehindRange: number,
): number {
  const difference = (oldRange ^ newRange) >>> 0;
  if (difference === 0) return whole;
  return (whole ^ multiply(operatorOf(bytesBehindRange), difference)) >>> 0;
}
