// The branches of a source file, and their counts from V8's coverage (NODE_V8_COVERAGE).
import { isNode, lineAt, parseTypeScript, type SyntaxNode, walk } from "./syntax-tree.ts";

/** One way of a branch. */
export interface Branch {
  /** One-based. */
  readonly line: number;
  /** The condition as written on its line: "if (size === 0)". */
  readonly text: string;
  /** "taken" is the guarded code, "not taken" the way around it. */
  readonly way: "taken" | "not taken";
  /** The way's first character. */
  readonly offset: number;
  /**
   * For a way around: first character of the whole, which has a higher count than `offset` exactly when the
   * way was taken.
   */
  readonly aroundOf: number | undefined;
}

/** V8's coverage of one script in one thread. */
export interface ScriptCoverage {
  readonly url: string;
  readonly functions: readonly {
    readonly ranges: readonly {
      readonly startOffset: number;
      readonly endOffset: number;
      readonly count: number;
    }[];
  }[];
}

/**
 * Both ways of every `if`, `?:`, `&&`, `||` and `??`; every `case`, `catch` and function. Excluded is what V8
 * does not count: `?.`, default values, ways around in a loop's test.
 */
export function branchesOf(path: string, text: string): Branch[] {
  const branches: Branch[] = [];
  const add = (offset: number, from: SyntaxNode, to: number, aroundOf?: number): void => {
    const words = text.slice(from.start, to).replace(/\s+/g, " ").trim();
    const way = aroundOf === undefined ? "taken" : "not taken";
    branches.push({ line: lineAt(text, offset), text: words, way, offset, aroundOf });
  };
  /** Tests of loops run more often than the code before the loop, so their ways around have no count. */
  const loopTests = new Set<SyntaxNode>();
  walk(parseTypeScript(path, text), (node) => {
    const { body, test, consequent, alternate, right } = node;
    if (/^(?:For|While|DoWhile)Statement$/.test(node.type)) walk(test, (each) => void loopTests.add(each));
    if (node.type === "IfStatement" && isNode(test) && isNode(consequent)) {
      add(consequent.start, node, test.end + 1);
      if (isNode(alternate)) add(alternate.start, node, test.end + 1);
      else add(consequent.start, node, test.end + 1, node.start);
    } else if (node.type === "ConditionalExpression" && isNode(consequent) && isNode(alternate)) {
      add(consequent.start, node, consequent.end);
      add(alternate.start, node, node.end);
    } else if (node.type === "LogicalExpression" && isNode(right)) {
      add(right.start, node, node.end);
      if (!loopTests.has(node)) add(right.start, node, node.end, node.start);
    } else if (node.type === "SwitchCase" && Array.isArray(consequent) && isNode(consequent[0])) {
      add(consequent[0].start, node, consequent[0].start);
    } else if (node.type === "CatchClause" && isNode(body)) {
      add(body.start, node, body.start);
    } else if (/Function/.test(node.type) && isNode(body)) {
      add(body.start, node, body.start);
    }
    return !node.type.startsWith("TS");
  });
  return branches;
}

/** Counts of each character of a file, over all threads and processes. */
export class ReachCounts {
  readonly #counts: Float64Array;

  constructor(length: number) {
    this.#counts = new Float64Array(length);
  }

  /** Inner ranges follow their outer ones, so the last range of a character wins. */
  add(script: ScriptCoverage): void {
    const own = new Float64Array(this.#counts.length);
    for (const { ranges } of script.functions) {
      for (const { startOffset, endOffset, count } of ranges) own.fill(count, startOffset, endOffset);
    }
    for (const [offset, count] of own.entries()) this.#counts[offset] = count + (this.#counts[offset] ?? 0);
  }

  /** Whether the way was taken. */
  isTaken({ offset, aroundOf }: Branch): boolean {
    const there = this.#counts[offset] ?? 0;
    return aroundOf === undefined ? there > 0 : (this.#counts[aroundOf] ?? 0) > there;
  }
}
