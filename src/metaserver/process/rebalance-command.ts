// `grove rebalance`: moves roots from full nodes to empty ones, by the plan that it shows first (D27).
import { Command } from "commander";
import { systemClock } from "#base/clock.ts";
import { errorText } from "#base/log.ts";
import { note, processTerminal, say, sayJson, type Terminal } from "#client/terminal/terminal.ts";
import type { NodeStore } from "#metaserver/directory/directory.ts";
import { type PlannedMove, planRebalance, type SizedNode } from "#metaserver/directory/move-plan.ts";
import {
  confirmMoves,
  MOVES_AT_ONCE,
  pause,
  sizedNodes,
  withoutMoving,
} from "#metaserver/directory/moving-roots.ts";
import { askToBegin, bad, engineLines, planLines, roots } from "./move-orders.ts";
import { settled } from "./root-move-command.ts";
import { type StoreFlags, withNodes, withStore } from "./ssh-node-command.ts";

interface RebalanceFlags extends StoreFlags {
  readonly dryRun: boolean;
  readonly yes: boolean;
  readonly confirm: boolean;
}

/** The parser of `grove rebalance`. */
export function command(terminal: Terminal = processTerminal()): Command {
  return withStore(
    new Command("rebalance")
      .summary("Move users' files from full machines to empty ones")
      .description(
        "Move roots from the nodes with the least free share of their disks to those with the most, while they are in use. Says first what " +
          "goes where, and asks. Nodes that are equally free are balanced by the number of roots.",
      )
      .addHelpText("after", EXAMPLES),
  )
    .option("--dry-run", "only show what would go where", false)
    .option("--yes", "do not ask before it begins", false)
    .option("--confirm", "let the nodes remove their copies of all roots that have moved away", false)
    .action((flags: RebalanceFlags) => rebalance(flags, terminal));
}

const EXAMPLES = `
Examples:
  grove rebalance -dry_run -meta sqlite:/srv/grove-meta/metadata.db
  grove rebalance -meta sqlite:/srv/grove-meta/metadata.db

The nodes that roots leave keep their copies until you have looked: grove rebalance -confirm.`;

async function rebalance(flags: RebalanceFlags, terminal: Terminal): Promise<void> {
  if (flags.confirm && flags.dryRun) throw bad("give one of -dry_run and -confirm");
  await withNodes(flags, async (store) => {
    if (flags.confirm) return confirm(store, flags, terminal);
    const running = (await store.nodes())
      .filter(({ live, onEngine }) => live && onEngine !== true)
      .map(({ fsId }) => fsId);
    const nodes = await sizedNodes(store, systemClock, running);
    const moving = await store.rootMoves();
    const moves = planRebalance(nodes.map((node) => withoutMoving(node, moving)));
    show(nodes, moves, flags, terminal);
    if (flags.dryRun || moves.length === 0) return;
    if (!flags.yes) await askToBegin(terminal, `Type yes to move ${roots(moves.length)}: `);
    const { switched, stayed } = await moveAll(store, moves, (line) => flags.json || say(terminal, line));
    if (flags.json) sayJson(terminal, { moved: switched, stayed });
    else if (switched.length > 0)
      say(terminal, `${roots(switched.length)} moved. Look at them, then: grove rebalance -confirm`);
    if (stayed.length > 0) throw bad(`${roots(stayed.length)} did not move; the same again plans anew`);
  });
}

async function confirm(store: NodeStore, flags: RebalanceFlags, terminal: Terminal): Promise<void> {
  const switched = (await store.rootMoves()).filter(({ state }) => state === "switched");
  await confirmMoves(store, switched);
  if (flags.json) sayJson(terminal, { confirmed: switched.map(({ owner }) => owner) });
  else say(terminal, `The former nodes remove their copies of ${roots(switched.length)}.`);
}

/** What has become of the planned moves. */
interface MovedRoots {
  /** Owners of the roots that have switched. */
  readonly switched: readonly string[];
  /** The others, with the reasons. */
  readonly stayed: readonly { readonly owner: string; readonly problem: string }[];
}

/** Moves a few at a time. */
async function moveAll(
  store: NodeStore,
  moves: readonly PlannedMove[],
  sayLine: (line: string) => void,
): Promise<MovedRoots> {
  const switched: string[] = [];
  const stayed: { owner: string; problem: string }[] = [];
  const waiting = [...moves];
  const work = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const { owner, target } = next;
      try {
        const tell = (problem: string): void => sayLine(`${owner} waits: ${problem}`);
        const end = await settled(store, await store.beginMove({ owner, target }), tell);
        if (end.state === "undone") throw bad("its move was undone");
        switched.push(owner);
        sayLine(`${owner} lives on ${target} now.`);
      } catch (error) {
        const problem = errorText(error);
        stayed.push({ owner, problem });
        sayLine(`${owner} stays: ${problem}`);
        await pause(systemClock);
      }
    }
  };
  await Promise.all(Array.from({ length: MOVES_AT_ONCE }, work));
  return { switched: switched.toSorted(), stayed };
}

function show(
  nodes: readonly SizedNode[],
  moves: readonly PlannedMove[],
  flags: RebalanceFlags,
  terminal: Terminal,
): void {
  if (flags.json) {
    if (flags.dryRun || moves.length === 0) sayJson(terminal, { moves });
    return;
  }
  const silent = nodes.filter(
    ({ live, onEngine, roots: known }) => live && onEngine !== true && known === undefined,
  );
  for (const { fsId } of silent) {
    note(terminal, `Note: ${fsId} does not tell how large its roots are, so they stay.`);
  }
  for (const line of engineLines(nodes, "their disks hold no roots")) note(terminal, line);
  if (moves.length === 0) say(terminal, "The nodes are in balance: nothing would move.");
  say(terminal, ...planLines(moves));
}
