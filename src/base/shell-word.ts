// Words of commands that people are shown, so that they can be typed as they stand.

/** A word that a shell takes as one. */
export function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
