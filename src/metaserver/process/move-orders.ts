// What commands that move many roots share: plans in lines, and the question before they begin.
import { formatBytes } from "#base/bytes.ts";
import { GroveError } from "#base/errors.ts";
import { askTyped } from "#client/terminal/prompt.ts";
import type { Terminal } from "#client/terminal/terminal.ts";
import type { PlannedMove, SizedNode } from "#metaserver/directory/move-plan.ts";
import type { RootMove } from "#metaserver/directory/root-move.ts";

/** Roots that a plan lists for each pair of nodes; beyond them it says how many more. */
const ROOTS_SHOWN = 20;

/** Says which running nodes a plan leaves out, since their roots lie in the shared engine. */
export function* engineLines(nodes: readonly SizedNode[], hint: string): Generator<string> {
  const named = nodes.filter(({ live, onEngine }) => live && onEngine === true).map(({ fsId }) => fsId);
  if (named.length === 0) return;
  yield `Note: ${named.join(", ")} ${named.length === 1 ? "serves" : "serve"} roots of the shared engine, and this plan leaves ${named.length === 1 ? "it" : "them"} out: ${hint}.`;
}

/** A plan as people read it: each pair of nodes, with its roots. */
export function* planLines(moves: readonly PlannedMove[], areSizesKnown = true): Generator<string> {
  const pairs = Map.groupBy(moves, ({ source, target }) => `${source} → ${target}`);
  for (const [pair, planned] of pairs) {
    const sum = planned.reduce((all, { bytes }) => all + bytes, 0);
    yield `${pair}: ${roots(planned.length)}, ${areSizesKnown ? formatBytes(sum) : "sizes not known"}`;
    for (const { owner, bytes } of planned.slice(0, ROOTS_SHOWN)) {
      yield areSizesKnown ? `  ${owner}  ${formatBytes(bytes)}` : `  ${owner}`;
    }
    if (planned.length > ROOTS_SHOWN) yield `  … and ${planned.length - ROOTS_SHOWN} more`;
  }
}

/** Where the former node of a root that has moved keeps its copy, and of when. */
export function copyLine({ owner, source, changedMs }: RootMove): string {
  return `${source} keeps a copy of the root of ${owner} from before ${new Date(changedMs).toISOString().slice(0, 16).replace("T", " ")} UTC.`;
}

/** Asks the operator to type yes. Throws BAD_ARGUMENT for anything else. */
export async function askToBegin(terminal: Terminal, question: string): Promise<void> {
  if ((await askTyped(terminal, question)) !== "yes") throw bad("nothing was begun");
}

/** A number of roots. */
export function roots(count: number): string {
  return count === 1 ? "1 root" : `${count} roots`;
}

/** A refusal of what was typed. */
export function bad(message: string): GroveError {
  return new GroveError("BAD_ARGUMENT", message);
}
