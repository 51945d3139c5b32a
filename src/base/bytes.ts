// Byte counts as people write and read them: binary units, KiB to EiB.

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"] as const;

/** Formats a byte count with at most one decimal: "512 B", "16 GiB", "12.1 GiB". */
export function formatBytes(bytes: bigint | number): string {
  let value = Number(bytes);
  let unit = 0;
  // 1023.95 would be shown as 1024.0, which belongs to the next unit.
  while (Math.abs(value) >= (unit === 0 ? 1024 : 1023.95) && unit < UNITS.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${Number.isInteger(value) ? value : value.toFixed(1).replace(/\.0$/, "")} ${UNITS[unit]}`;
}

/** Parses "1024", "64MiB", "1.5 GiB", "2g" (binary units, any case) to bytes; undefined for other text. */
export function parseBytes(text: string): bigint | undefined {
  const match = /^\s*(\d{1,20})(?:\.(\d{1,6}))?\s*(?:([kmgtpe])(?:i?b)?|b)?\s*$/i.exec(text);
  if (match === null) return undefined;
  const [, whole = "0", fraction = "", letter = ""] = match;
  if (fraction !== "" && letter === "") return undefined;
  const exponent = letter === "" ? 0 : "kmgtpe".indexOf(letter.toLowerCase()) + 1;
  const scale = 1024n ** BigInt(exponent);
  const decimals = 10n ** BigInt(fraction.length);
  const parts = BigInt(whole + fraction) * scale;
  // Less than a byte would become none, which stands for a default elsewhere.
  return parts > 0n && parts < decimals ? undefined : parts / decimals;
}
