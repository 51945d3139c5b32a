// The rule of clocks: product code uses base/clock.ts and base/random.ts, or is listed with a reason.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { CLOCK_EXCEPTIONS, CLOCK_PORTS, type ClockUse } from "./clock-exceptions.ts";
import { sourcePaths } from "./room-rules.ts";
import { isNode, lineAt, parseTypeScript, type SyntaxNode, walk } from "./syntax-tree.ts";

/** One direct use of the machine's time or randomness. */
export interface ClockSite {
  readonly use: ClockUse;
  readonly line: number;
  /** As written, for example `Date.now`. */
  readonly what: string;
}

const GLOBALS: Readonly<Record<string, ClockUse>> = { setTimeout: "timer", setInterval: "timer" };
const PROPERTIES: Readonly<Record<string, ClockUse>> = {
  "AbortSignal.timeout": "timer",
  "Date.now": "wall",
  "Math.random": "chance",
  "performance.now": "steady",
  "process.hrtime": "steady",
  "process.uptime": "steady",
};
/** Each use has one of these words; to parse the files without any would take most of the time. */
const WORDS = /setTimeout|setInterval|node:timers|AbortSignal|Date|random|performance|hrtime|uptime/;
const TIMER_MODULES = new Set(["node:timers", "node:timers/promises"]);
const TIMERLESS = new Set(["setImmediate", "clearImmediate", "clearInterval", "clearTimeout"]);

/**
 * Uses of a timer, a clock or randomness in a file. Types and properties of other objects
 * (`socket.setTimeout`) do not count.
 */
export function clockSites(path: string, text: string): ClockSite[] {
  if (!WORDS.test(text)) return [];
  const sites: ClockSite[] = [];
  const names = new Set<SyntaxNode>();
  walk(parseTypeScript(path, text), (node) => {
    if (node.type.startsWith("TSType") && node.type !== "TSTypeAssertion") return false;
    for (const named of namesOf(node)) names.add(named);
    const found = siteOf(node, names);
    if (found !== undefined) sites.push({ ...found, line: lineAt(text, node.start) });
    return node.type !== "ImportDeclaration";
  });
  return sites;
}

/** Identifiers that name a property or a parameter, not a value. */
function namesOf(node: SyntaxNode): SyntaxNode[] {
  const key = node.type === "MemberExpression" ? node["property"] : node["key"];
  return node["computed"] !== true && node["shorthand"] !== true && isNode(key) ? [key] : [];
}

function siteOf(node: SyntaxNode, names: ReadonlySet<SyntaxNode>): Omit<ClockSite, "line"> | undefined {
  switch (node.type) {
    case "Identifier": {
      const what = String(node["name"]);
      const use = names.has(node) || !Object.hasOwn(GLOBALS, what) ? undefined : GLOBALS[what];
      return use && { use, what };
    }
    case "MemberExpression":
      return memberSite(node);
    case "NewExpression":
    case "CallExpression": {
      const isNow = nameOf(node["callee"]) === "Date" && isEmpty(node["arguments"]);
      return isNow ? { use: "wall", what: "Date()" } : undefined;
    }
    case "ImportDeclaration":
    case "ImportExpression":
      return importSite(node);
    default:
      return undefined;
  }
}

function memberSite(node: SyntaxNode): Omit<ClockSite, "line"> | undefined {
  const { object, property } = node;
  const key = isNode(property) ? (property["value"] ?? property["name"]) : undefined;
  const holder = nameOf(object) ?? (isNode(object) ? nameOf(object["property"]) : undefined);
  const what = `${holder}.${String(key)}`;
  if (Object.hasOwn(PROPERTIES, what)) return { use: PROPERTIES[what] as ClockUse, what };
  const isGlobal = holder === "globalThis" && Object.hasOwn(GLOBALS, String(key));
  return isGlobal ? { use: "timer", what } : undefined;
}

function importSite(node: SyntaxNode): Omit<ClockSite, "line"> | undefined {
  const module = isNode(node["source"]) ? String(node["source"]["value"]) : "";
  if (!TIMER_MODULES.has(module) || node["importKind"] === "type") return undefined;
  const specifiers = Array.isArray(node["specifiers"]) ? (node["specifiers"] as SyntaxNode[]) : [];
  const isTimerless = ({ imported }: SyntaxNode): boolean => TIMERLESS.has(nameOf(imported) ?? "");
  if (specifiers.length > 0 && specifiers.every(isTimerless)) return undefined;
  return { use: "timer", what: module };
}

function nameOf(value: unknown): string | undefined {
  return isNode(value) && value.type === "Identifier" ? String(value["name"]) : undefined;
}

function isEmpty(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}

/** Product files: in src/, without tests, test helpers and ports. */
export function isJudged(path: string): boolean {
  const isForTests = /^src\/testing\/|\.(?:test|fixture)\.tsx?$/.test(path);
  return path.startsWith("src/") && !isForTests && !CLOCK_PORTS.includes(path);
}

/** Violations of the rule, and unneeded exceptions: `path:line what`. */
export async function brokenClockRules(root: string, exceptions = CLOCK_EXCEPTIONS): Promise<string[]> {
  const broken: string[] = [];
  const unused = new Set(
    Object.entries(exceptions).flatMap(([path, { uses }]) => uses.map((use) => `${path} ${use}`)),
  );
  for (const path of (await sourcePaths(root)).filter(isJudged)) {
    for (const { use, line, what } of clockSites(path, await readFile(join(root, path), "utf8"))) {
      if (exceptions[path]?.uses.includes(use) === true) unused.delete(`${path} ${use}`);
      else broken.push(`${path}:${line} ${what} (${use})`);
    }
  }
  return [...broken, ...Array.from(unused, (entry) => `${entry} is excepted, and not used`)];
}
