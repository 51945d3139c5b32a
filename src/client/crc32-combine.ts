// Joins the checksums of chunks to the checksum of the file, so that a download is read once and checked twice.

/** The polynomial of CRC-32 (IEEE), bits reversed as zlib has it. */
const POLYNOMIAL = 0xedb88320;

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

/** CRC-32 of two neighbouring ranges from the CRC-32 of each and the length in bytes (below 2^53) of the second. */
export function crc32Combine(first: number, second: number, secondLength: number): number {
  let operator = 0x80000000;
  let rest = secondLength;
  for (let n = 3; rest > 0; n++) {
    if (rest % 2 === 1) operator = multiply(POWERS[n] ?? 0, operator);
    rest = Math.floor(rest / 2);
  }
  return (multiply(operator, first) ^ second) >>> 0;
}
