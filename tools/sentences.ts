// Splits a Markdown document into sentences, to check their length.

/** One sentence of plain text: links by their text, code as one word. */
export interface Sentence {
  /** One-based line of the paragraph, item or table row. */
  readonly line: number;
  readonly text: string;
  readonly words: number;
}

interface Block {
  readonly line: number;
  readonly text: string;
}

/** Sentences of paragraphs, list items and table cells; not of headings and fenced code. */
export function sentencesOf(markdown: string): Sentence[] {
  return blocksOf(markdown).flatMap(({ line, text }) =>
    asRead(text)
      .split(/(?<=[.!?][")*’]*)\s+/)
      .map((sentence) => ({ line, text: sentence.trim(), words: wordsOf(sentence) }))
      .filter(({ words }) => words > 0),
  );
}

/**
 * Paragraphs, items and cells with joined lines; a blank line, an item's mark or a table's row begins a new
 * one.
 */
function blocksOf(markdown: string): Block[] {
  const blocks: { line: number; text: string }[] = [];
  let isFenced = false;
  let open: { line: number; text: string } | undefined;
  for (const [index, line] of markdown.split("\n").entries()) {
    const isFence = /^\s*```/.test(line);
    if (isFence) isFenced = !isFenced;
    if (isFence || isFenced || /^\s*$|^#|^\s*[-|:\s]+$/.test(line)) {
      open = undefined;
      continue;
    }
    if (/^\s*\|/.test(line)) {
      blocks.push(...line.split(/(?<!\\)\|/).map((text) => ({ line: index + 1, text })));
      open = undefined;
      continue;
    }
    if (open === undefined || /^\s*(?:[-*]|\d+\.)\s/.test(line)) {
      open = { line: index + 1, text: "" };
      blocks.push(open);
    }
    open.text += ` ${line.trim()}`;
  }
  return blocks;
}

function asRead(text: string): string {
  return text
    .replace(/^\s*(?:[-*]|\d+\.)\s+/, "")
    .replaceAll(/!?\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replaceAll(/`[^`]*`/g, "code")
    .replaceAll("**", "");
}

function wordsOf(sentence: string): number {
  return sentence.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word)).length;
}
