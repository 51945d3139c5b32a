// Splits a line of the shell into words, with quotes and backslashes.
import { ClientError } from "#client/terminal/client-error.ts";

/** The words of a line, and whether its end is inside a word. */
export interface SplitLine {
  readonly words: readonly string[];
  /** The quote that is open at the end; empty for none. */
  readonly openQuote: "" | "'" | '"';
  /** True when the last word has not ended: no space follows it. */
  readonly isInsideWord: boolean;
}

/**
 * Splits without errors: an open quote is reported, not refused. A `#` begins a comment at a word's start.
 */
export function splitLine(line: string): SplitLine {
  const words: string[] = [];
  let word: string | undefined;
  let quote: "" | "'" | '"' = "";
  for (let at = 0; at < line.length; at++) {
    const character = line.charAt(at);
    if (quote !== "") {
      if (character === quote) quote = "";
      else if (character === "\\" && quote === '"' && /["\\]/.test(line.charAt(at + 1)))
        word += line.charAt(++at);
      else word += character;
    } else if (/\s/.test(character)) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else if (character === "#" && word === undefined) {
      break;
    } else {
      word ??= "";
      if (character === "'" || character === '"') quote = character;
      else if (character === "\\" && at + 1 < line.length) word += line.charAt(++at);
      else word += character;
    }
  }
  if (word !== undefined) words.push(word);
  return { words, openQuote: quote, isInsideWord: word !== undefined };
}

/** The words of a complete line. Throws USAGE for a quote that is not closed. */
export function wordsOf(line: string): readonly string[] {
  const { words, openQuote } = splitLine(line);
  if (openQuote !== "") throw new ClientError("USAGE", `the quote ${openQuote} is not closed`, { todo: "" });
  return words;
}

/** Quotes a text so that the shell reads it as one word. */
export function quoteWord(word: string): string {
  return word.replaceAll(/[\s'"\\#]/g, (character) => `\\${character}`);
}
