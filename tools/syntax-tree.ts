// Parses TypeScript with Rolldown's parser, for the tools that check sources.
import { parseAst } from "rolldown/parseAst";

/** One node of the tree; its other fields depend on its type (ESTree, with TypeScript's own nodes). */
export interface SyntaxNode {
  readonly type: string;
  /** Offsets into the text, in UTF-16 code units; the end is exclusive. */
  readonly start: number;
  readonly end: number;
  readonly [property: string]: unknown;
}

/** The statements of a file. @throws Error where the syntax is wrong */
export function parseTypeScript(path: string, text: string): readonly SyntaxNode[] {
  const program = parseAst(text, { lang: path.endsWith("x") ? "tsx" : "ts" }, path) as unknown as {
    readonly body: SyntaxNode[];
  };
  return program.body;
}

/** Visits a node and its descendants, outer first; false from the callback skips the descendants. */
export function walk(value: unknown, onNode: (node: SyntaxNode) => boolean | void): void {
  if (Array.isArray(value)) {
    for (const item of value) walk(item, onNode);
  } else if (isNode(value)) {
    if (onNode(value) === false) return;
    for (const child of Object.values(value)) walk(child, onNode);
  }
}

/** Whether a property's value is a node. */
export function isNode(value: unknown): value is SyntaxNode {
  return typeof value === "object" && value !== null && "type" in value && "start" in value;
}

/** One-based. */
export function lineAt(text: string, offset: number): number {
  return text.slice(0, offset).split("\n").length;
}
