// The output without a command: the table of commands, and a suggestion for an unknown word.
import { styleText } from "node:util";
import type { CommandGroup } from "./command-table.ts";

/** The text of `grove --help`; made from a table alone, without importing commands' modules. */
export function helpText(table: readonly CommandGroup[]): string {
  const width = Math.max(...table.flatMap((group) => group.commands.map((entry) => entry.name.length)));
  const groups = table.map((group) =>
    [
      styleText("bold", `${group.title}:`),
      ...group.commands.map((entry) => `  ${entry.name.padEnd(width)}  ${entry.summary}`),
    ].join("\n"),
  );
  return [
    "Grove: a filesystem for many users, on machines of your own.",
    `${styleText("bold", "Usage:")} grove COMMAND [options]`,
    ...groups,
    "'grove COMMAND --help' explains a command, with examples; 'grove --version' prints the version.\n" +
      "Options may be written with one dash and underscores (-data, -history_limit) or as --data, --history-limit.\n" +
      "Exit codes: 0 done, 2 sign in, 3 not found, 4 not allowed, 5 quota, 6 disk full, 7 network, 8 in use, 1 all else.",
    "",
  ]
    .join("\n\n")
    .trimEnd();
}

/** The candidate closest to the word: at most two edits away, and longer than the number of edits. */
export function closestWord(word: string, candidates: readonly string[]): string | undefined {
  let best: string | undefined;
  let bestDistance = Math.min(2, Math.floor(word.length / 2)) + 1;
  for (const candidate of candidates) {
    const distance = editDistance(word, candidate);
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

/** Insertions, deletions, replacements and swaps of neighbours between two words. */
function editDistance(a: string, b: string): number {
  const rows: number[][] = [Array.from({ length: b.length + 1 }, (_, column) => column)];
  const at = (row: number, column: number): number => rows[row]?.[column] ?? Number.POSITIVE_INFINITY;
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    rows.push(row);
    for (let j = 1; j <= b.length; j++) {
      const isSame = a[i - 1] === b[j - 1];
      const isSwap = a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      row.push(
        Math.min(
          at(i - 1, j) + 1,
          at(i, j - 1) + 1,
          at(i - 1, j - 1) + (isSame ? 0 : 1),
          isSwap ? at(i - 2, j - 2) + 1 : Number.POSITIVE_INFINITY,
        ),
      );
    }
  }
  return at(a.length, b.length);
}
