// Quotes words of displayed commands, so that they can be typed as they stand.

/** Quotes a text as one shell word where it needs quotes. */
export function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
