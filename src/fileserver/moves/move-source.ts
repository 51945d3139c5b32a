// The source's part in moves: freezes, thaws, departs and removes, as the metadata store says.
import type { AuditAct } from "#base/audit-act.ts";
import type { Clock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";
import { errorText, type Logger } from "#base/log.ts";
import type { LocalMove, MovedRootHead, RootMoveStorage } from "#storage/contract/root-move.ts";
import { MoveStep, type NodeMove } from "#wire/proto/gen/grove/v1/root_moves_pb.ts";
import type { KnownMoves } from "./known-moves.ts";

/** How long a root is frozen before the attempt is taken back, if nothing is heard. */
const FROZEN_MAX_MS = 4_000;

/** What goes along besides rows and chunks. */
export interface MovedProperties {
  readonly quotaBytes: string;
  readonly inodeLimit: number;
  /** Which of both were set for the user; a node of before does not tell. */
  readonly sources?: Readonly<Record<"quota" | "inodeLimit", "explicit" | "default">>;
  /** Whom the node knows the owner as, so that nobody else gets the files under the same address. */
  readonly subject?: { readonly issuer: string; readonly subject: string; readonly version: string };
  /** What administrators saw of the trash, in the form in which it is stored; its taker checks it. */
  readonly looks?: unknown;
}

/** All that the target hears of a frozen root. */
export interface FrozenRoot {
  readonly head: MovedRootHead;
  readonly properties: MovedProperties;
}

/** Dependencies of the source. */
export interface MoveSourceDeps {
  readonly moves: RootMoveStorage;
  readonly known: KnownMoves;
  readonly propertiesOf: (owner: string) => MovedProperties;
  /** True while this node serves a root. */
  readonly isServed: (owner: string) => boolean;
  readonly onDeparted: (owner: string) => void;
  /** Forgets what went along with a root, once no copy of it stays here. */
  readonly forgetProperties: (owner: string) => Promise<void>;
  /** Called once a copy that was kept is served again. */
  readonly onReturned: (owner: string) => void;
  readonly audit: (act: AuditAct) => void;
  readonly hurry: () => void;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Roots that leave this node. Operations ask it which are frozen or gone. */
export class MoveSource {
  readonly #deps: MoveSourceDeps;
  /** Moves by the owners of roots that this process has frozen for them. */
  readonly #frozen = new Map<string, string>();
  /** Moves whose freeze this process takes back in time. */
  readonly #timed = new Set<string>();
  /** The last attempt for which this process has frozen a root, by move. */
  readonly #attempts = new Map<string, number>();
  readonly #departed = new Map<string, string>();
  readonly #departing = new Map<string, Promise<void>>();

  constructor(deps: MoveSourceDeps) {
    this.#deps = deps;
    for (const move of deps.moves.list()) this.#note(move);
  }

  /**
   * True while a root waits for its switch. A freeze ends with this process's part in its move, which goes with
   * the root where another process takes that: the root may be served here again later.
   */
  isFrozen(owner: string): boolean {
    const { moves } = this.#deps;
    if (moves.isShut(owner)) return true;
    const frozenBy = this.#frozen.get(owner);
    return frozenBy !== undefined && moves.list().some(({ moveId }) => moveId === frozenBy);
  }

  /** A root has come back. */
  returned(owner: string): void {
    this.#departed.delete(owner);
  }

  /** Address of the node that holds a root which was here. */
  addressOf(owner: string): string | undefined {
    return this.#departed.get(owner);
  }

  /** The target has switched or given up: the store says which. */
  async settle({ moveId }: NodeMove): Promise<void> {
    const move = this.#deps.known.find(moveId);
    if (move !== undefined) await this.#takeBack(move);
    this.#deps.hurry();
  }

  /** Freezes a root for an attempt that the store knows, and takes that back when nothing is heard. */
  async freeze({ moveId, owner }: NodeMove, attempt: number): Promise<FrozenRoot> {
    const { moves, known, clock, propertiesOf } = this.#deps;
    await known.ask();
    const move = known.find(moveId);
    if (move?.state !== "frozen" || move.attempt !== attempt) {
      throw new GroveError("FENCED", "this attempt to switch is not the current one");
    }
    this.#frozen.set(owner, moveId);
    this.#attempts.set(moveId, attempt);
    this.#timed.add(moveId);
    clock.after(FROZEN_MAX_MS, () => {
      this.#timed.delete(moveId);
      void this.#takeBack(move);
    });
    const head = await moves.freeze(moveId);
    return { head, properties: propertiesOf(owner) };
  }

  /** Does what the store says of a move from here. */
  async follow(move: NodeMove): Promise<void> {
    const { moves, known } = this.#deps;
    const { moveId, owner, state } = move;
    const local = moves.list().find((one) => one.moveId === moveId);
    if (state === "returned") return this.#takeCopyBack(move);
    if (state === "switched" || state === "confirmed") await this.#depart(move);
    // A thaw whose answer was lost has thawed the root in the engine alone.
    else if (state === "copying" && local !== undefined && (local.state === "frozen" || this.isFrozen(owner)))
      await this.#thaw(move);
    // This process may have begun after the freeze, so that nothing takes it back.
    else if (state === "frozen" && !this.#timed.has(moveId)) await this.#takeBack(move);
    if (state !== "confirmed" && state !== "undone") return;
    await moves.endExport(moveId);
    if (state === "confirmed" && !this.#deps.isServed(owner)) await this.#deps.forgetProperties(owner);
    this.#frozen.delete(owner);
    this.#attempts.delete(moveId);
    await known.take({ moveId, step: MoveStep.END });
  }

  /** The node to which the root had moved is lost: what was kept here is the root again. */
  async #takeCopyBack({ moveId, owner, target }: NodeMove): Promise<void> {
    const { moves, known, log, audit, isServed, onReturned } = this.#deps;
    const isNews = moves.list().some((one) => one.moveId === moveId);
    // The move stays, so that no empty root is made here.
    if (!isNews && !isServed(owner))
      throw new GroveError("NO_SUCH_PATH", "this node keeps no copy of the root that is to come back");
    await moves.takeBack(moveId);
    this.#departed.delete(owner);
    this.#frozen.delete(owner);
    if (isNews) {
      log.info("root_returned", { user: owner, lost: target });
      audit({ act: "root.returned", actor: "node", subject: owner, detail: { lost: target } });
      onReturned(owner);
    }
    await known.take({ moveId, step: MoveStep.END });
  }

  #note({ moveId, owner, state, address }: LocalMove): void {
    if (state === "frozen") this.#frozen.set(owner, moveId);
    if (state === "departed") this.#departed.set(owner, address);
  }

  /** Joins what is under way: the target's word and the next look may come at the same time. */
  #depart(move: NodeMove): Promise<void> {
    const { moveId } = move;
    const departing =
      this.#departing.get(moveId) ?? this.#departNow(move).finally(() => this.#departing.delete(moveId));
    this.#departing.set(moveId, departing);
    return departing;
  }

  async #departNow({ moveId, owner, otherAddress, target }: NodeMove): Promise<void> {
    const { moves, log, audit } = this.#deps;
    let local = moves.list().find((one) => one.moveId === moveId);
    // Restored from a backup of before the move, this node would serve what is long changed elsewhere.
    if (local === undefined && moves.isOwnFolder && this.#deps.isServed(owner))
      local = await moves.beginExport({ moveId, owner });
    // Without a part of it here the target has taken the root itself.
    if (local !== undefined && local.state !== "departed") {
      await moves.freeze(moveId);
      await moves.depart(moveId, otherAddress, target);
      log.info("root_departed", { user: owner, to: otherAddress });
      audit({ act: "root.departed", actor: "node", subject: owner, detail: { to: otherAddress } });
    }
    const isNews = this.#departed.get(owner) !== otherAddress || this.#frozen.has(owner);
    this.#departed.set(owner, otherAddress);
    if (isNews) this.#deps.onDeparted(owner);
    this.#frozen.delete(owner);
  }

  /** The store's answer may be older than a further attempt, which it does not take back. */
  async #thaw({ moveId, owner, attempt }: Pick<NodeMove, "moveId" | "owner" | "attempt">): Promise<void> {
    if ((this.#attempts.get(moveId) ?? 0) > attempt) return;
    await this.#deps.moves.thaw(moveId);
    if ((this.#attempts.get(moveId) ?? 0) <= attempt) this.#frozen.delete(owner);
  }

  /** Never rejects: without an answer the root stays frozen, and the next look tries again. */
  async #takeBack(move: NodeMove): Promise<void> {
    const { moveId, owner, attempt } = move;
    const { known, log, moves } = this.#deps;
    const local = moves.list().find((one) => one.moveId === moveId);
    // A freeze that has failed here has shut the root all the same.
    if (local?.state !== "frozen" && !this.#frozen.has(owner)) return;
    if (local === undefined || local.state === "departed") return;
    try {
      const now = await known.take({ moveId, step: MoveStep.THAW, attempt });
      const { state } = now;
      if (state === "copying") await this.#thaw({ moveId, owner, attempt: now.attempt });
      else if (state === "switched") await this.#depart(move);
    } catch (error) {
      log.warn("root_stays_frozen", { user: owner, error: errorText(error) });
    }
  }
}
