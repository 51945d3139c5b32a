// `grove node drain`: moves all roots of a node to others, so that it can be taken out of the cluster (D27).
import type { Command } from "commander";
import { formatBytes } from "#base/bytes.ts";
import { systemClock } from "#base/clock.ts";
import { isGroveError } from "#base/errors.ts";
import { errorText } from "#base/log.ts";
import { note, say, sayJson, type Terminal } from "#client/terminal/terminal.ts";
import type { NodeStore } from "#metaserver/directory/directory.ts";
import { chooseEngineNode, type DrainPlan } from "#metaserver/directory/move-plan.ts";
import {
  confirmMoves,
  type DrainFacts,
  drainFacts,
  drainObstacles,
  moveTurns,
  pause,
  rootsByNode,
} from "#metaserver/directory/moving-roots.ts";
import { chooseNode } from "#metaserver/directory/placement.ts";
import { isRemovingCopy, isUnderWay, type RootMove } from "#metaserver/directory/root-move.ts";
import { askToBegin, bad, engineLines, planLines, roots } from "./move-orders.ts";
import { type StoreFlags, withNodes, withStore } from "./ssh-node-command.ts";

/** How often a line says how far the drain is. */
const PROGRESS_EVERY_MS = 5_000;

interface DrainFlags extends StoreFlags {
  readonly plan: boolean;
  readonly yes: boolean;
  readonly confirm: boolean;
  readonly back: boolean;
  readonly toEngine: boolean;
}

/** Adds the verb to `grove node`. */
export function addDrainVerb(root: Command, terminal: Terminal): void {
  withStore(
    root
      .command("drain")
      .description(
        "Move all roots of a node to the others, while they are in use, by a plan that is shown first. The node gets no new ones.",
      )
      .argument("<id>", "the node's id"),
  )
    .option("--plan", "only show what would go where, and whether there is room", false)
    .option("--to-engine", "move them to the nodes of the shared engine instead", false)
    .option("--yes", "do not ask before it begins", false)
    .option("--confirm", "let the node remove its copies of all roots that have moved away", false)
    .option("--back", "give the node new roots again; roots that have not begun to move stay", false)
    .action((id: string, flags: DrainFlags) => drain(id, flags, terminal));
}

async function drain(id: string, given: DrainFlags, terminal: Terminal): Promise<void> {
  const asked = [given.plan, given.confirm, given.back].filter(Boolean).length;
  if (asked > 1) throw bad("give one of -plan, -confirm and -back");
  await withNodes(given, async (store) => {
    const node = (await store.nodes()).find(({ fsId }) => fsId === id);
    if (node === undefined) throw bad(`no FileServer has registered as ${id}`);
    // Roots of the shared engine change hands there.
    const flags = { ...given, toEngine: given.toEngine || node.onEngine === true };
    if (flags.confirm) return confirm(id, flags, store, terminal);
    if (flags.back) return back(id, flags, store, terminal);
    if (!node.live) {
      throw bad(
        `${id} does not run, and roots move from a node that runs: start it, or restore its newest backup`,
      );
    }
    await requireMovable(id, store);
    const facts = await drainFacts(id, store, systemClock, flags.toEngine);
    if (flags.toEngine && chooseEngineNode(facts.nodes.filter(({ fsId }) => fsId !== id)) === undefined) {
      throw bad(
        node.onEngine === true
          ? `no other FileServer of the shared engine runs: start one, or stop ${id}, and its users wait until another serves them`
          : "no FileServer of the shared engine runs: start one with -engine_file and -store",
      );
    }
    show(id, facts, flags, terminal);
    requireRoom(id, facts.plan);
    if (flags.plan) return;
    const isMarked = (await store.drainedNodes()).includes(id);
    if (!flags.yes && !isMarked && facts.left.length > 0) {
      await askToBegin(terminal, `Type yes to move ${roots(facts.left.length)} away from ${id}: `);
    }
    await store.setDrained(id, true);
    if (facts.left.length > 0 || facts.underWay.length > 0) {
      note(
        terminal,
        "Ctrl-C ends this command alone: roots on their way arrive, and the same again goes on.",
      );
    }
    const tell = (line: string): void => {
      if (!flags.json) say(terminal, line);
    };
    await new Drain({ id, store, toEngine: flags.toEngine, say: tell }, facts.plan).run();
    await tellEnd(id, flags, store, terminal);
  });
}

/** Throws BAD_ARGUMENT for roots that come to the node, or came and are not confirmed: they cannot leave yet. */
async function requireMovable(id: string, store: NodeStore): Promise<void> {
  const { coming, arrived } = await drainObstacles(id, store);
  if (coming.length > 0) {
    throw bad(
      `roots are on their way to ${id}: ${coming.join(", ")}. Undo that first (grove root move USER -undo)`,
    );
  }
  if (arrived.length > 0) {
    throw bad(
      `roots have moved to ${id}, and that is not confirmed: ${arrived.join(", ")}. Look at them there, and confirm it first ` +
        "(grove root move USER -confirm)",
    );
  }
}

function requireRoom(id: string, { withoutRoom }: DrainPlan): void {
  if (withoutRoom.length === 0) return;
  const missing = withoutRoom.map(
    ({ owner, bytes, missingBytes }) =>
      `${owner} has ${formatBytes(bytes)}, ${formatBytes(missingBytes)} more than the roomiest node has left above its reserve`,
  );
  throw bad(
    `${id} was not drained: there is no room for ${roots(withoutRoom.length)}. ${missing.slice(0, 20).join("; ")}. ` +
      "Free space on the others, or add a node",
  );
}

function show(id: string, facts: DrainFacts, flags: DrainFlags, terminal: Terminal): void {
  const { plan, left, underWay, areSizesKnown } = facts;
  if (flags.json) {
    if (!flags.plan) return;
    const withoutRoom = plan.withoutRoom.map(({ owner, bytes, missingBytes }) => ({
      owner,
      bytes,
      missing_bytes: Number(missingBytes),
    }));
    sayJson(terminal, { node: id, sizes_known: areSizesKnown, moves: plan.moves, without_room: withoutRoom });
    return;
  }
  if (!areSizesKnown && left.length > 0) {
    note(terminal, `Note: ${id} does not tell how large its roots are; each target checks that it has room.`);
  }
  if (!flags.toEngine)
    for (const line of engineLines(facts.nodes, "-to_engine moves them there")) note(terminal, line);
  if (left.length === 0 && underWay.length === 0) say(terminal, `${id} has no roots that could move.`);
  if (underWay.length > 0) say(terminal, `${roots(underWay.length)} on their way already.`);
  say(terminal, ...planLines(plan.moves, areSizesKnown));
}

interface DrainDeps {
  readonly id: string;
  readonly store: NodeStore;
  readonly toEngine: boolean;
  /** Says how far the drain is. */
  readonly say: (line: string) => void;
}

/** Begins moves and follows them until the node has no roots, or is no longer to be drained. */
class Drain {
  readonly #id: string;
  readonly #store: NodeStore;
  readonly #toEngine: boolean;
  readonly #say: (line: string) => void;
  readonly #targets: Map<string, string>;
  readonly #told = new Map<string, string>();
  #saidAtMs = Number.NEGATIVE_INFINITY;

  constructor({ id, store, toEngine, say: tell }: DrainDeps, plan: DrainPlan) {
    this.#id = id;
    this.#store = store;
    this.#toEngine = toEngine;
    this.#say = tell;
    this.#targets = new Map(plan.moves.map(({ owner, target }) => [owner, target]));
  }

  async run(): Promise<void> {
    for (let isFirst = true; ; isFirst = false) {
      if (!isFirst) await pause(systemClock);
      if (!(await this.#store.drainedNodes()).includes(this.#id)) {
        throw bad(`${this.#id} is no longer to be drained (-back); roots that had begun to move go on`);
      }
      const owners = (await rootsByNode(this.#store)).get(this.#id) ?? [];
      const moves = (await this.#store.rootMoves()).filter(({ source }) => source === this.#id);
      this.#tell(moves, owners);
      if (owners.length === 0) return;
      const moving = new Set(moves.map(({ owner }) => owner));
      const { free, held } = moveTurns(moves);
      let begun = 0;
      for (const owner of owners) {
        if (begun >= free) break;
        if (!moving.has(owner) && (await this.#begin(owner, held))) begun++;
      }
    }
  }

  /** False when it cannot begin now; the next turn tries again. */
  async #begin(owner: string, held: ReadonlySet<string>): Promise<boolean> {
    try {
      const target = this.#targets.get(owner) ?? (await this.#roomiest());
      if (held.has(target)) return false;
      // A planned target counts once: when it has stopped, or its move is undone, placement says where else.
      this.#targets.delete(owner);
      await this.#store.beginMove({ owner, target });
      return true;
    } catch (error) {
      if (!isGroveError(error, "BAD_ARGUMENT") && !isGroveError(error, "OVERLOADED")) throw error;
      this.#once(owner, `${owner} waits: ${errorText(error)}`);
      return false;
    }
  }

  async #roomiest(): Promise<string> {
    const drained = new Set(await this.#store.drainedNodes());
    const others = (await this.#store.nodes()).filter(({ fsId }) => fsId !== this.#id && !drained.has(fsId));
    const node = this.#toEngine
      ? chooseEngineNode(others)
      : chooseNode(others.filter(({ onEngine }) => onEngine !== true));
    if (node === undefined) throw bad("no other node runs that takes roots");
    return node.fsId;
  }

  #tell(moves: readonly RootMove[], owners: readonly string[]): void {
    const left = new Set(owners);
    for (const move of moves) {
      const { owner, state, target, problem } = move;
      if (state === "switched" && !left.has(owner)) this.#once(owner, `${owner} lives on ${target} now.`);
      if (state === "undone") this.#once(owner, `${owner} waits: the end of its undone move to ${target}`);
      if (problem !== "" && isUnderWay(move)) this.#once(owner, `${owner} waits: ${problem}`);
    }
    const nowMs = systemClock.steadyMs();
    if (nowMs - this.#saidAtMs < PROGRESS_EVERY_MS || owners.length === 0) return;
    this.#saidAtMs = nowMs;
    const underWay = moves.filter(isUnderWay);
    const bytes = underWay.reduce((sum, move) => sum + move.bytes, 0);
    this.#say(
      `${roots(owners.length)} left, ${underWay.length} of them on their way (${formatBytes(bytes)} copied).`,
    );
  }

  #once(owner: string, line: string): void {
    if (this.#told.get(owner) === line) return;
    this.#told.set(owner, line);
    this.#say(line);
  }
}

/** Moves away from a node that have switched. */
interface SwitchedMoves {
  /** That wait to be confirmed. */
  readonly unconfirmed: readonly RootMove[];
  /** Confirmed ones, whose copies the node still removes. */
  readonly removing: number;
}

async function switchedMoves(id: string, store: NodeStore): Promise<SwitchedMoves> {
  const moves = (await store.rootMoves()).filter(({ source }) => source === id);
  const unconfirmed = moves.filter(({ state }) => state === "switched");
  const nodes = await store.nodes();
  const onEngine = new Set(nodes.filter((node) => node.onEngine === true).map(({ fsId }) => fsId));
  // Between two of them nothing was copied.
  const removing = moves.filter(
    (move) => isRemovingCopy(move) && !(onEngine.has(id) && onEngine.has(move.target)),
  );
  return { unconfirmed, removing: removing.length };
}

async function tellEnd(id: string, flags: DrainFlags, store: NodeStore, terminal: Terminal): Promise<void> {
  const { unconfirmed, removing } = await switchedMoves(id, store);
  const owners = unconfirmed.map(({ owner }) => owner);
  if (flags.json) return sayJson(terminal, { node: id, roots_left: 0, unconfirmed: owners, removing });
  if (owners.length > 0) {
    say(
      terminal,
      `${id} has no roots left, and keeps copies of ${roots(owners.length)}. Look at them on the other nodes, then: grove node drain ${id} -confirm`,
    );
  } else if (removing > 0) {
    say(
      terminal,
      `${id} has no roots left, and still removes its copies of ${roots(removing)}.`,
      onceRemoved(id),
    );
  } else say(terminal, `${id} is empty and gets no roots. Stop it, wait 30 s, and: grove node remove ${id}`);
}

function onceRemoved(id: string): string {
  return `Once it has (grove root move shows none of them), stop it, wait 30 s, and: grove node remove ${id}`;
}

async function confirm(id: string, flags: DrainFlags, store: NodeStore, terminal: Terminal): Promise<void> {
  const { unconfirmed: switched } = await switchedMoves(id, store);
  await confirmMoves(store, switched);
  const left = (await rootsByNode(store)).get(id) ?? [];
  if (flags.json)
    return sayJson(terminal, {
      node: id,
      confirmed: switched.map(({ owner }) => owner),
      roots_left: left.length,
    });
  await tellConfirmed(id, { confirmed: switched.length, left: left.length }, store, terminal);
}

async function tellConfirmed(
  id: string,
  { confirmed, left }: { readonly confirmed: number; readonly left: number },
  store: NodeStore,
  terminal: Terminal,
): Promise<void> {
  const { removing } = await switchedMoves(id, store);
  const isLive = (await store.nodes()).some(({ fsId, live }) => fsId === id && live);
  const copies = `its copies of ${roots(removing)}`;
  if (removing > 0)
    say(
      terminal,
      isLive ? `${id} removes ${copies}.` : `${id} does not run, and removes ${copies} once it does.`,
    );
  else if (confirmed > 0) say(terminal, `${id} has removed its copies of ${roots(confirmed)}.`);
  else say(terminal, `No move away from ${id} waits to be confirmed.`);
  if (left > 0) say(terminal, `${roots(left)} still on ${id}: grove node drain ${id} goes on.`);
  else if ((await store.drainedNodes()).includes(id)) {
    if (!isLive)
      say(terminal, `To take it out of the cluster, with what is on its disk: grove node remove ${id}`);
    else say(terminal, removing > 0 ? onceRemoved(id) : `Stop it, wait 30 s, and: grove node remove ${id}`);
  }
}

async function back(id: string, flags: DrainFlags, store: NodeStore, terminal: Terminal): Promise<void> {
  await store.setDrained(id, false);
  const underWay = (await store.rootMoves()).filter((move) => move.source === id && isUnderWay(move));
  const owners = underWay.map(({ owner }) => owner);
  if (flags.json) return sayJson(terminal, { node: id, under_way: owners });
  say(terminal, `${id} gets new roots again, and no further root leaves it.`);
  if (owners.length > 0) {
    say(
      terminal,
      `On their way, and going on: ${owners.join(", ")}. To keep one here: grove root move USER -undo`,
    );
  }
}
