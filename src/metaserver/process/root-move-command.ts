// `grove root move`: moves a user's root to another node, shows how far it is, confirms it or undoes it.
import { Command } from "commander";
import { formatBytes } from "#base/bytes.ts";
import { systemClock } from "#base/clock.ts";
import { canonicalUsername } from "#base/names.ts";
import { note, processTerminal, say, sayJson, type Terminal } from "#client/terminal/terminal.ts";
import type { NodeStore } from "#metaserver/directory/directory.ts";
import { rootsByNode } from "#metaserver/directory/moving-roots.ts";
import { isLost, isUnderWay, type RootMove } from "#metaserver/directory/root-move.ts";
import { askToBegin, bad, copyLine } from "./move-orders.ts";
import { type StoreFlags, withNodes, withStore } from "./ssh-node-command.ts";

/** How often a command that waits looks at the store. */
const LOOK_INTERVAL_MS = 500;

interface MoveFlags extends StoreFlags {
  readonly to?: string;
  readonly status: boolean;
  readonly confirm: boolean;
  readonly undo: boolean;
  readonly takeBack: boolean;
  readonly wait: boolean;
}

/** The parser of `grove root`. */
export function command(terminal: Terminal = processTerminal()): Command {
  const root = new Command("root")
    .summary("Move a user's files to another machine")
    .description("Move a user's files to another machine, while they are in use.")
    .addHelpText("after", EXAMPLES);
  withStore(
    root
      .command("move")
      .description(
        "Move a user's root to another node while it is in use. The node that it leaves keeps its copy until the move is confirmed.",
      )
      .argument("[user]", "whose root; without one, all moves are shown"),
  )
    .option("--to <node>", "the node that the root moves to")
    .option("--status", "only show how far it is", false)
    .option("--confirm", "let the former node remove its copy of a root that has moved", false)
    .option("--undo", "give up a move that has not switched yet: everything stays where it was", false)
    .option(
      "--take-back",
      "serve the copy again that the former node keeps, where the new one is lost for good; asks, since what has changed there is lost",
      false,
    )
    .option("--wait", "stay until the root lives on the new node", false)
    .action((user: string | undefined, flags: MoveFlags) => move(user, flags, terminal));
  return root;
}

const EXAMPLES = `
Examples:
  grove root move dave@example.com -to n2 -wait -meta sqlite:/srv/grove-meta/metadata.db
  grove root move -meta sqlite:/srv/grove-meta/metadata.db
  grove root move dave@example.com -confirm -meta sqlite:/srv/grove-meta/metadata.db

Users go on working: for a few seconds at the end their calls wait. Nothing is deleted before -confirm.`;

async function move(user: string | undefined, flags: MoveFlags, terminal: Terminal): Promise<void> {
  const { to, confirm, undo, takeBack, status } = flags;
  if ([to !== undefined, confirm, undo, takeBack, status].filter(Boolean).length > 1)
    throw bad("give one of -to, -status, -confirm, -undo and -take_back");
  if (flags.wait && (user === undefined || confirm || undo || takeBack))
    throw bad("-wait waits for one user's move: give USER -to NODE, or USER for a move that has begun");
  await withNodes(flags, async (store) => {
    if (user === undefined) {
      if (to !== undefined || confirm || undo || takeBack) throw bad("say whose root");
      return show(await store.rootMoves(), flags, terminal);
    }
    const owner = canonicalUsername(user);
    if (takeBack) await askToTakeBack(owner, store, terminal);
    if (confirm || undo || takeBack) {
      const decision = confirm ? "confirm" : undo ? "undo" : "take_back";
      const decided = await store.decideMove(owner, decision);
      if (decided === undefined) throw bad(`the root of ${owner} is under no move`);
      return show([decided], flags, terminal);
    }
    const begun =
      to === undefined
        ? (await store.rootMoves()).find((one) => one.owner === owner)
        : await store.beginMove({ owner, target: to });
    if (begun === undefined || (to === undefined && !flags.wait))
      return show(begun === undefined ? [] : [begun], flags, terminal);
    const tell = (problem: string): void => note(terminal, `${owner} waits: ${problem}`);
    const last = flags.wait ? await settled(store, begun, tell) : begun;
    show([last], flags, terminal);
    if (last.state === "undone")
      throw bad(`the root of ${owner} stays on ${last.source}: its move was undone`);
  });
}

/** Asks, after saying what is lost. Throws BAD_ARGUMENT for anything but yes. */
async function askToTakeBack(
  owner: string,
  store: Pick<NodeStore, "rootMoves">,
  terminal: Terminal,
): Promise<void> {
  const move = (await store.rootMoves()).find((one) => one.owner === owner);
  if (move?.state !== "switched") return;
  note(terminal, copyLine(move));
  note(terminal, `What ${owner} has stored on ${move.target} since is lost to them with that node.`);
  await askToBegin(terminal, `Type yes to have ${move.source} serve its copy again: `);
}

/** Waits until a move has switched, or is over: then where the root lives tells how. Tells what keeps it waiting. */
export async function settled(
  store: Pick<NodeStore, "listRoots" | "rootMoves">,
  begun: RootMove,
  tell: (problem: string) => void,
): Promise<RootMove> {
  for (let told = ""; ; ) {
    const now = (await store.rootMoves()).find(({ moveId }) => moveId === begun.moveId);
    if (now === undefined) {
      const there = (await rootsByNode(store)).get(begun.target) ?? [];
      return { ...begun, state: there.includes(begun.owner) ? "confirmed" : "undone" };
    }
    if (!isUnderWay(now)) return now;
    if (now.problem !== "" && now.problem !== told) tell(now.problem);
    told = now.problem;
    await new Promise<void>((resolve) => systemClock.after(LOOK_INTERVAL_MS, resolve));
  }
}

function show(moves: readonly RootMove[], { json }: StoreFlags, terminal: Terminal): void {
  if (json) return sayJson(terminal, moves.map(documentOf));
  if (moves.length === 0) note(terminal, "no root is moving");
  say(terminal, ...moves.map(lineOf));
}

/** A move in one line, for people. */
export function lineOf(move: RootMove): string {
  const { owner, source, target } = move;
  if (isLost(move))
    return `${owner}: frozen on ${source} for a move that this older copy of the metadata store has lost; waits: ${move.problem}`;
  if (target === "")
    return `${owner}: ${source} serves the root again, whose move the metadata store had lost`;
  const way = `${owner}: ${source} → ${target}`;
  switch (move.state) {
    case "switched":
      if (move.problem !== "")
        return `${way}: ${target} does not have it; ${source} keeps its copy: grove root move ${owner} -take_back`;
      return `${way}: lives on ${target} now; ${source} keeps its copy until you confirm: grove root move ${owner} -confirm`;
    case "confirmed":
      return `${way}: confirmed; ${source} removes its copy`;
    case "returned":
      return `${way}: taken back; ${source} serves its copy again`;
    case "undone":
      return `${way}: undone; ${target} removes what has come`;
    default: {
      const done = `${formatBytes(move.bytes)} and ${move.rows} rows copied, ${move.left} parts left`;
      return `${way}: ${move.state}, ${done}${move.problem === "" ? "" : `; waits: ${move.problem}`}`;
    }
  }
}

function documentOf(move: RootMove): Record<string, unknown> {
  const { owner, source, target, state, attempt, bytes, rows, left, problem, startedMs, changedMs } = move;
  const times = { started_ms: startedMs, changed_ms: changedMs };
  return { owner, source, target, state, attempt, bytes, rows, left, problem, ...times };
}
