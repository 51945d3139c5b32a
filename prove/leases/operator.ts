// The operator who moves roots: begins, confirms and undoes moves, and has a kill fall into a drawn step.
import { isUnderWay, type RootMove, type RootMoveState } from "#metaserver/directory/root-move.ts";
import type { SeededRandom } from "#prove/seeded-random.ts";
import type { Cluster } from "./cluster.ts";
import { crash } from "./faults.ts";

const STATES: readonly RootMoveState[] = ["copying", "frozen", "switched", "confirmed", "undone"];
/** How long a side, or the MetaServer, is away after a kill. */
const AWAY_MS = [200, 20_000] as const;
/** A node that is cut off from the MetaServer for longer than half a minute counts as gone. */
const CUT_OFF_MS = [25_000, 60_000] as const;
const CONFIRM_CHANCE = 0.05;
const UNDO_CHANCE = 0.15;

interface Plan {
  readonly killed: "meta" | "source" | "target" | undefined;
  readonly killAt: RootMoveState;
  readonly undoAt: RootMoveState | undefined;
  isKilled: boolean;
  /** Once the target has taken the root over from a killed source, the MetaServer hears no more of the target. */
  cutsOff: boolean;
}

/** See above. */
export class Operator {
  readonly #cluster: Cluster;
  readonly #random: SeededRandom;
  readonly #count: (what: string) => void;
  readonly #plans = new Map<string, Plan>();
  /** Moves as they were seen last, by owner. */
  #seen = new Map<string, RootMove>();
  mayKill = true;
  /** False while the store has no move: only this operator begins one. */
  #hasMoves = false;

  constructor(cluster: Cluster, random: SeededRandom, count: (what: string) => void) {
    this.#cluster = cluster;
    this.#random = random;
    this.#count = count;
  }

  get moves(): ReadonlyMap<string, RootMove> {
    return this.#seen;
  }

  /** Begins the move of a root that is drawn, with what is to befall it; the store may refuse it. */
  begin(): void {
    const random = this.#random;
    const killed = random.pick(["source", "target", "meta", undefined] as const);
    const undoAt = random.chance(UNDO_CHANCE) ? random.pick(["copying", "frozen"] as const) : undefined;
    const plan: Plan = {
      killed,
      killAt: random.pick(STATES),
      undoAt,
      isKilled: false,
      cutsOff: killed === "source",
    };
    const owner = this.beginCalmly();
    if (owner !== undefined) this.#plans.set(owner, plan);
  }

  /** Begins the move of a root that is drawn; its owner, or undefined where the store refuses it. */
  beginCalmly(): string | undefined {
    const { meta, owners, sites } = this.#cluster;
    const [owner, target] = [this.#random.pick(owners), this.#random.pick(sites).folder.id];
    if (this.#seen.has(owner)) return undefined;
    try {
      const move = meta.directory?.beginMove(meta.now, { owner, target });
      if (move === undefined) return undefined;
      this.#plans.delete(owner);
      this.#hasMoves = true;
      this.#count(`moves ${kindOf(move.source)} to ${kindOf(target)}`);
      return owner;
    } catch {
      // The node that is drawn may be away, or may have the root.
      return undefined;
    }
  }

  /** Looks at all moves, and does what is planned. */
  look(): void {
    const { meta } = this.#cluster;
    if (meta.directory === undefined || !this.#hasMoves) return;
    const moves = meta.directory.rootMoves(meta.now);
    this.#hasMoves = moves.length > 0;
    this.#seen = new Map(moves.map((move) => [move.owner, move]));
    for (const move of moves) this.#follow(move);
  }

  /** Confirms or undoes the move of a root. */
  decide(owner: string, decision: "confirm" | "undo"): void {
    const { meta } = this.#cluster;
    try {
      meta.directory?.decideMove(meta.now, owner, decision);
    } catch {
      // It has gone on meanwhile.
    }
  }

  #follow(move: RootMove): void {
    const { owner, state, source, target } = move;
    const plan = this.#plans.get(owner);
    if (state === "switched" && this.#random.chance(CONFIRM_CHANCE)) this.decide(owner, "confirm");
    if (state === plan?.undoAt) this.decide(owner, "undo");
    if (this.mayKill && plan?.isKilled && plan.cutsOff && isUnderWay(move)) this.#cutOff(move, plan);
    if (!this.mayKill || plan?.killed === undefined || plan.isKilled || state !== plan.killAt) return;
    plan.isKilled = true;
    this.#kill(plan.killed, plan.killed === "source" ? source : target);
    this.#count(`${plan.killed} killed in a move`);
  }

  #cutOff({ owner, target }: RootMove, plan: Plan): void {
    const { meta, sites, world } = this.#cluster;
    if (!meta.directory?.listRoots(meta.now).some((root) => root.owner === owner && root.fsId === target))
      return;
    plan.cutsOff = false;
    const way = sites.find(({ folder }) => folder.id === target)?.ways.meta;
    if (way === undefined) return;
    way.isCut = true;
    world.after(this.#random.between(...CUT_OFF_MS), () => {
      way.isCut = false;
    });
    this.#count("target cut off after it took over");
  }

  #kill(what: "meta" | "source" | "target", id: string): void {
    const { meta, sites, world } = this.#cluster;
    const awayMs = this.#random.between(...AWAY_MS);
    if (what === "meta") {
      meta.kill();
      world.after(awayMs, () => meta.start());
      return;
    }
    const site = sites.find(({ folder }) => folder.id === id);
    if (site !== undefined) world.after(awayMs, crash(site));
  }
}

/** Where a node keeps roots. */
export function kindOf(id: string): "disk" | "engine" {
  return id.startsWith("e") ? "engine" : "disk";
}
