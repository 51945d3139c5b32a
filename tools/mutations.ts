// The small mutations that a rule's tests must notice: every place of a source file, and the mutated text.
import { isNode, lineAt, parseTypeScript, type SyntaxNode, walk } from "./syntax-tree.ts";

/** One mutation, as a replacement in the text. */
export interface Mutation {
  readonly path: string;
  /** One-based line of the change. */
  readonly line: number;
  readonly start: number;
  readonly end: number;
  readonly replacement: string;
  /**
   * The changed lines before and after, white space folded: "if (a < b) → if (a <= b)"; its name in lists.
   */
  readonly change: string;
}

const OPERATORS: Readonly<Record<string, string>> = {
  "<": "<=",
  "<=": "<",
  ">": ">=",
  ">=": ">",
  "===": "!==",
  "!==": "===",
  "+": "-",
  "-": "+",
  "*": "/",
  "/": "*",
  "&&": "||",
  "||": "&&",
  "+=": "-=",
  "-=": "+=",
  "++": "--",
  "--": "++",
};
const LITERALS: Readonly<Record<string, string>> = {
  "0": "1",
  "1": "0",
  "0n": "1n",
  "1n": "0n",
  true: "false",
  false: "true",
};
/** Node types with an operator between two operands, which `parts` names. */
const BETWEEN = ["BinaryExpression", "LogicalExpression", "AssignmentExpression"];

/** All mutations of a file, in the order of its text. */
export function mutationsOf(path: string, text: string): Mutation[] {
  const mutations: Mutation[] = [];
  const add = (start: number, end: number, replacement: string): void => {
    mutations.push({
      path,
      line: lineAt(text, start),
      start,
      end,
      replacement,
      change: changeOf(text, start, end, replacement),
    });
  };
  walk(parseTypeScript(path, text), (node) => {
    if (node.type.startsWith("TS") && !isNode(node["expression"])) return false;
    if (node.type === "ImportDeclaration") return false;
    const swap = operatorSwap(text, node);
    if (swap !== undefined) add(...swap);
    const literal = node.type === "Literal" ? LITERALS[text.slice(node.start, node.end)] : undefined;
    if (literal !== undefined) add(node.start, node.end, literal);
    const { test, argument, consequent } = node;
    if (node.type === "UnaryExpression" && node["operator"] === "!" && isNode(argument))
      add(node.start, argument.start, "");
    if (isNode(test) && isNode(consequent)) {
      if (!isEquality(test)) add(test.start, test.end, `!(${text.slice(test.start, test.end)})`);
      // Never takes the way: an early return is skipped.
      if (node.type === "IfStatement") add(test.start, test.end, "false");
    }
    if (node.type === "ExpressionStatement" && !isDirective(node)) add(node.start, node.end, ";");
    return true;
  });
  return mutations.toSorted((a, b) => a.start - b.start || a.end - b.end);
}

/** The file's text with the mutation. */
export function withMutation(text: string, { start, end, replacement }: Mutation): string {
  return text.slice(0, start) + replacement + text.slice(end);
}

function operatorSwap(text: string, node: SyntaxNode): [number, number, string] | undefined {
  const { operator, left, right, argument } = node;
  const swapped = typeof operator === "string" ? OPERATORS[operator] : undefined;
  if (swapped === undefined || typeof operator !== "string") return undefined;
  if (BETWEEN.includes(node.type) && isNode(left) && isNode(right)) {
    const at = text.indexOf(operator, left.end);
    return [at, at + operator.length, swapped];
  }
  if (node.type === "UpdateExpression" && isNode(argument)) {
    const at = node["prefix"] === true ? node.start : argument.end;
    return [at, at + operator.length, swapped];
  }
  return undefined;
}

/** Comparisons whose negation swaps the operator. */
function isEquality(test: SyntaxNode): boolean {
  return test.type === "BinaryExpression" && /^[!=]==$/.test(String(test["operator"]));
}

function isDirective(node: SyntaxNode): boolean {
  return typeof node["directive"] === "string";
}

function changeOf(text: string, start: number, end: number, replacement: string): string {
  const from = text.lastIndexOf("\n", start) + 1;
  const newline = text.indexOf("\n", end);
  const to = newline < 0 ? text.length : newline;
  const fold = (words: string): string => words.replace(/\s+/g, " ").trim();
  const changed = fold(text.slice(from, start) + replacement + text.slice(end, to));
  return `${fold(text.slice(from, to))} → ${changed}`;
}
