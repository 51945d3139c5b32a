// The rule of waits: a test waits for a condition or moves a clock, and never sleeps a second or more.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { sourcePaths } from "./room-rules.ts";
import { isNode, lineAt, parseTypeScript, type SyntaxNode, walk } from "./syntax-tree.ts";

/** Sleeps of at least this are too long. */
export const LONG_SLEEP_MS = 1_000;

/** Files with longer sleeps, with reasons. */
export const SLEEP_EXCEPTIONS: Readonly<Record<string, string>> = {
  "tests/screenshots.ts": "No test: it waits until a demonstration has figures to show.",
};

/** One sleep that is too long, or whose length is in another file. */
export interface LongSleep {
  readonly line: number;
  readonly what: string;
}

/**
 * Sleeps of a file: `setTimeout` of node:timers/promises under any name, a promise that setTimeout resolves,
 * and `waitForTimeout` of a page. A sleep that only bounds something else passes: in Promise.race, with
 * `{ ref: false }`, or with a `.then`.
 */
export function longSleeps(path: string, text: string): LongSleep[] {
  // Each form has one of these words; to parse the other files would take most of the time.
  if (!/setTimeout|waitForTimeout/.test(text)) return [];
  const body = parseTypeScript(path, text);
  const numbers = constantsOf(body);
  const sleepers = sleepersOf(body);
  const bounds = new Set<SyntaxNode>();
  const found: LongSleep[] = [];
  walk(body, (node) => {
    for (const bound of boundsIn(node)) bounds.add(bound);
    if (node.type !== "CallExpression" || bounds.has(node)) return;
    const length = lengthOf(node, sleepers);
    if (length === undefined) return;
    const ms = numberOf(length, numbers);
    const isElsewhere = ms === undefined && /^[A-Z][A-Z\d_]+$/.test(nameOf(length) ?? "");
    if (isElsewhere || (ms ?? 0) >= LONG_SLEEP_MS)
      found.push({ line: lineAt(text, node.start), what: text.slice(node.start, node.end) });
  });
  return found;
}

/** Files that `npm test` runs, their helpers, and all of tests/. */
export function isTestCode(path: string): boolean {
  // The fixtures of rigs pace their attacks.
  if (path.endsWith(".fixture.ts") && path.startsWith("prove/")) return false;
  return (
    path.startsWith("tests/") || path.startsWith("src/testing/") || /\.(?:test|fixture)\.tsx?$/.test(path)
  );
}

/** Violations of the rule: `path:line what`. */
export async function brokenSleepRules(root: string, exceptions = SLEEP_EXCEPTIONS): Promise<string[]> {
  const broken: string[] = [];
  const unused = new Set(Object.keys(exceptions));
  for (const path of (await sourcePaths(root)).filter(isTestCode)) {
    for (const { line, what } of longSleeps(path, await readFile(join(root, path), "utf8"))) {
      if (path in exceptions) unused.delete(path);
      else broken.push(`${path}:${line} ${what}`);
    }
  }
  return [...broken, ...Array.from(unused, (path) => `${path} is excepted, and does not sleep`)];
}

/** The file's imported names for sleeping. */
function sleepersOf(body: readonly SyntaxNode[]): Set<string> {
  const names = new Set<string>();
  for (const node of body) {
    const isTimers = isNode(node["source"]) && node["source"]["value"] === "node:timers/promises";
    if (node.type !== "ImportDeclaration" || !isTimers) continue;
    for (const specifier of node["specifiers"] as SyntaxNode[]) {
      const local = nameOf(specifier["local"]);
      if (nameOf(specifier["imported"]) === "setTimeout" && local !== undefined) names.add(local);
    }
  }
  return names;
}

/** The argument with a call's sleeping time; undefined for other calls. */
function lengthOf(call: SyntaxNode, sleepers: ReadonlySet<string>): unknown {
  const { callee } = call;
  const [first, second, third] = call["arguments"] as SyntaxNode[];
  const name = nameOf(callee);
  if (name !== undefined && sleepers.has(name)) return isUnreferenced(third) ? undefined : first;
  // With a callback it is a guard: `setTimeout(() => child.kill(), 20_000)`.
  if (name === "setTimeout") return first?.type === "Identifier" ? second : undefined;
  return isNode(callee) && nameOf(callee["property"]) === "waitForTimeout" ? first : undefined;
}

function isUnreferenced(options: unknown): boolean {
  const properties = isNode(options) ? options["properties"] : [];
  return (
    Array.isArray(properties) &&
    properties.some(
      ({ key, value }: SyntaxNode) => nameOf(key) === "ref" && isNode(value) && value["value"] === false,
    )
  );
}

/** The calls that bound something else in a node. */
function boundsIn(node: SyntaxNode): SyntaxNode[] {
  if (node.type !== "CallExpression" || !isNode(node["callee"])) return [];
  const { object, property } = node["callee"];
  if (nameOf(property) === "then" && isNode(object)) return [object];
  if (nameOf(object) !== "Promise" || nameOf(property) !== "race") return [];
  const [list] = node["arguments"] as SyntaxNode[];
  const elements = list?.["elements"];
  return Array.isArray(elements) ? elements.filter(isNode) : [];
}

/** Values of the file's numeric constants. */
function constantsOf(body: readonly SyntaxNode[]): Map<string, number> {
  const numbers = new Map<string, number>();
  walk(body, (node) => {
    if (node.type !== "VariableDeclarator") return;
    const name = nameOf(node["id"]);
    const value = numberOf(node["init"], numbers);
    if (name !== undefined && value !== undefined) numbers.set(name, value);
  });
  return numbers;
}

/** The value of an expression of literals and constants. */
function numberOf(value: unknown, numbers: ReadonlyMap<string, number>): number | undefined {
  if (!isNode(value)) return undefined;
  if (value.type === "Literal") return typeof value["value"] === "number" ? value["value"] : undefined;
  if (value.type === "Identifier") return numbers.get(nameOf(value) ?? "");
  if (value.type !== "BinaryExpression") return undefined;
  const left = numberOf(value["left"], numbers);
  const right = numberOf(value["right"], numbers);
  if (left === undefined || right === undefined) return undefined;
  switch (value["operator"]) {
    case "*":
      return left * right;
    case "+":
      return left + right;
    case "-":
      return left - right;
    case "/":
      return left / right;
    default:
      return undefined;
  }
}

function nameOf(value: unknown): string | undefined {
  return isNode(value) && value.type === "Identifier" ? String(value["name"]) : undefined;
}
