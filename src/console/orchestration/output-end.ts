// The end of a long output, cut between characters.

/** The last bytes of a text in UTF-8, at most that many, beginning with a whole character. */
export function endOf(text: string, maxBytes: number): string {
  // A UTF-16 unit takes at most three bytes: short texts need no conversion.
  if (text.length * 3 <= maxBytes) return text;
  const bytes = Buffer.from(text);
  if (bytes.length <= maxBytes) return text;
  let start = bytes.length - maxBytes;
  while (start < bytes.length && ((bytes[start] ?? 0) & 0xc0) === 0x80) start++;
  return bytes.toString("utf8", start);
}
