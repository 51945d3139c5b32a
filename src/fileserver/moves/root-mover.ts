// Follows the moves of this node in the metadata store, from it and to it, until each has ended.
import type { Clock } from "#base/clock.ts";
import { HEARTBEAT_INTERVAL_MS, NODE_LEASE_MS } from "#base/limits.ts";
import { errorText, type Logger } from "#base/log.ts";
import type { LocalMove, RootMoveStorage } from "#storage/contract/root-move.ts";
import { Code, StatusError } from "#wire/framing/status.ts";
import { MoveStep, type NodeMove } from "#wire/proto/gen/grove/v1/root_moves_pb.ts";
import type { KnownMoves } from "./known-moves.ts";
import type { MoveSource } from "./move-source.ts";
import { type MoveProgress, MoveTarget, type MoveTargetDeps, noProgress } from "./move-target.ts";

/** Roots that come to one node at the same time: chunks that two of them share arrive once. */
export const ARRIVALS_AT_ONCE = 1;
/** Pause between two looks while a move is under way, and before a hint is followed. */
const SOON_MS = 200;

/** Pauses after a failure. */
const RETRY_FIRST_MS = 2_000;
const RETRY_MAX_MS = 60_000;
/** Who has taken a root over hears of its move once the store has heard of that: until then it is kept. */
const UNKNOWN_MS: number = 2 * NODE_LEASE_MS;

/** What the store hears of a root that has moved here and that a restore of this node has lost. */
const NOT_HERE = "the root is not here";

/** Dependencies of the mover. */
export interface RootMoverDeps extends MoveTargetDeps {
  readonly moves: RootMoveStorage;
  readonly known: KnownMoves;
  readonly source: MoveSource;
  readonly isServed: (owner: string) => Promise<boolean>;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Looks at every heartbeat, and sooner when there is news. */
export class RootMover {
  readonly #deps: RootMoverDeps;
  readonly #pulling = new Map<string, { readonly done: Promise<void>; readonly stop: AbortController }>();
  /** Steady time of the next try of moves that have failed, and the pause before it. */
  readonly #notBefore = new Map<string, number>();
  readonly #pauses = new Map<string, number>();
  readonly #progress = new Map<string, MoveProgress>();
  /** What the store was told last of roots that have moved here. */
  readonly #told = new Map<string, string>();
  /** Moves whose rows are removed here, which may take minutes and keeps no other waiting. */
  readonly #ending = new Set<string>();
  #ended: Promise<void> = Promise.resolve();
  /** Steady time of the first list without them, by move that is copied here. */
  #unknownSince = new Map<string, number>();
  #cancelTimer: (() => void) | undefined;
  #looking: Promise<void> | undefined;
  #isStopped = false;
  #lastFailure = "";

  constructor(deps: RootMoverDeps) {
    this.#deps = deps;
  }

  /** Begins to look. */
  start(): void {
    this.#lookIn(SOON_MS);
  }

  /** Looks again soon. */
  hurry(): void {
    if (!this.#isStopped) this.#lookIn(SOON_MS);
  }

  /** Ends what runs; a later process goes on. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#cancelTimer?.();
    for (const { stop } of this.#pulling.values()) stop.abort();
    await this.#looking;
    await Promise.allSettled([...this.#pulling.values()].map(({ done }) => done));
    await this.#ended;
  }

  #lookIn(delayMs: number): void {
    this.#cancelTimer?.();
    this.#cancelTimer = this.#deps.clock.after(delayMs, () => {
      const looking = (this.#looking ?? Promise.resolve()).then(() => this.#look());
      this.#looking = looking;
    });
  }

  /** Never rejects. */
  async #look(): Promise<void> {
    const { known, moves, log } = this.#deps;
    try {
      const listed = await known.ask();
      for (const move of listed ?? []) {
        if (this.#ending.has(move.moveId)) continue;
        if (move.state === "confirmed" || move.state === "undone") this.#endSoon(move);
        else await this.#followQuietly(move);
      }
      if (listed !== undefined)
        await this.#endUnknown(moves.list(), new Set(listed.map(({ moveId }) => moveId)));
    } catch (error) {
      // One line for each new failure; a MetaServer of before knows no moves.
      const failure =
        error instanceof StatusError && error.code === Code.UNIMPLEMENTED ? "" : errorText(error);
      if (failure !== "" && failure !== this.#lastFailure)
        log.warn("root_moves_not_known", { error: failure });
      this.#lastFailure = failure;
    }
    if (!this.#isStopped) this.#lookIn(HEARTBEAT_INTERVAL_MS);
  }

  /** Never rejects. */
  async #followQuietly(move: NodeMove): Promise<void> {
    if (this.#isStopped) return;
    await this.#follow(move).catch((error: unknown) => {
      const { owner: user, state } = move;
      this.#deps.log.warn("root_move_waits", { user, state, error: errorText(error) });
    });
  }

  /** One after the other, so that the users' calls and a move that switches have most of the storage. */
  #endSoon(move: NodeMove): void {
    const { moveId } = move;
    this.#ending.add(moveId);
    this.#ended = this.#ended.then(async () => {
      await this.#followQuietly(move);
      this.#ending.delete(moveId);
    });
  }

  async #follow(move: NodeMove): Promise<void> {
    const { known, moves, source } = this.#deps;
    const { moveId, state } = move;
    if (known.isSource(move)) {
      await moves.takeOver(moveId);
      return source.follow(move);
    }
    // Without a refusal it is the target from now on.
    if (known.isOfEnded(move)) await known.take({ moveId, step: MoveStep.ADOPT });
    await moves.takeOver(moveId);
    const local = moves.list().find((one) => one.moveId === moveId);
    if (state === "copying" || state === "frozen") {
      const isTurn = this.#deps.clock.steadyMs() >= (this.#notBefore.get(moveId) ?? 0);
      if (isTurn && !this.#pulling.has(moveId) && this.#pulling.size < ARRIVALS_AT_ONCE) this.#pull(move);
      return;
    }
    const isOver = state === "undone" || state === "returned";
    if (isOver) this.#pulling.get(moveId)?.stop.abort();
    await this.#pulling.get(moveId)?.done;
    if (!isOver && local?.state === "arriving") await this.#target(move, new AbortController()).finish(local);
    this.#notBefore.delete(moveId);
    this.#pauses.delete(moveId);
    this.#progress.delete(moveId);
    if (state === "switched") return this.#tellWhetherHere(move);
    this.#told.delete(moveId);
    await moves.endImport(moveId);
    await known.take({ moveId, step: MoveStep.END });
  }

  /** The copy at the source may be all that is left of a root that has moved here. */
  async #tellWhetherHere({ moveId, owner }: NodeMove): Promise<void> {
    const problem = (await this.#deps.isServed(owner)) ? "" : NOT_HERE;
    if (this.#told.get(moveId) === problem) return;
    await this.#deps.known.take({ moveId, step: MoveStep.PROGRESS, problem });
    this.#told.set(moveId, problem);
  }

  #pull(move: NodeMove): void {
    const { connect, known, log } = this.#deps;
    const { moveId, owner, otherAddress } = move;
    if (otherAddress === "" || this.#isStopped) return;
    const stop = new AbortController();
    const link = connect(otherAddress);
    const progress = this.#progress.get(moveId) ?? noProgress();
    this.#progress.set(moveId, progress);
    const run = new MoveTarget(this.#deps, move, {
      source: link.client,
      signal: stop.signal,
      progress,
    }).run();
    const done = run
      .catch(async (error: unknown) => {
        log.warn("root_move_waits", { user: owner, error: errorText(error) });
        const problem = errorText(error).slice(0, 200);
        // Each try may freeze the root for seconds, which its users shall not meet all the time.
        const pauseMs = Math.min(RETRY_MAX_MS, 2 * (this.#pauses.get(moveId) ?? RETRY_FIRST_MS / 2));
        this.#pauses.set(moveId, pauseMs);
        this.#notBefore.set(moveId, this.#deps.clock.steadyMs() + pauseMs);
        const counts = {
          bytes: BigInt(progress.bytes),
          rows: BigInt(progress.rows),
          left: BigInt(progress.left),
        };
        await known.take({ moveId, step: MoveStep.PROGRESS, ...counts, problem }).catch(() => undefined);
      })
      .finally(() => {
        link.close();
        this.#pulling.delete(moveId);
        // The next one need not wait for a heartbeat.
        this.hurry();
      });
    this.#pulling.set(moveId, { done, stop });
  }

  #target(move: NodeMove, stop: AbortController): MoveTarget {
    const link = this.#deps.connect(move.otherAddress);
    link.close();
    const run = { source: link.client, signal: stop.signal, progress: noProgress() };
    return new MoveTarget(this.#deps, move, run);
  }

  /** True for a move that the store has not told of for a time. */
  #isLongUnknown(moveId: string): boolean {
    const nowMs = this.#deps.clock.steadyMs();
    const sinceMs = this.#unknownSince.get(moveId) ?? nowMs;
    this.#unknownSince.set(moveId, sinceMs);
    return nowMs - sinceMs >= UNKNOWN_MS;
  }

  /** Moves that the store no longer has. What may be the only copy stays, for an operator to look at. */
  async #endUnknown(locals: readonly LocalMove[], listed: ReadonlySet<string>): Promise<void> {
    const { known, moves, log } = this.#deps;
    const unknown = locals.filter(({ moveId }) => !listed.has(moveId)).map(({ moveId }) => moveId);
    this.#unknownSince = new Map([...this.#unknownSince].filter(([moveId]) => unknown.includes(moveId)));
    for (const { moveId, owner } of locals) {
      // One may have begun since the list was asked for.
      if (listed.has(moveId) || this.#pulling.has(moveId) || this.#ending.has(moveId)) continue;
      if (known.find(moveId) !== undefined) continue;
      // Another process on the same storage may have ended it.
      await moves.takeOver(moveId);
      const local = moves.list().find((one) => one.moveId === moveId);
      if (local === undefined) continue;
      const { state, head } = local;
      if (state === "copying" && !this.#isLongUnknown(moveId)) continue;
      if (state === "copying") await moves.endExport(moveId);
      // Without the counters of a frozen root it has not arrived whole, so the source still had it.
      else if (state === "arrived" || (state === "arriving" && head === "")) await moves.endImport(moveId);
      else if (state === "frozen" || state === "arriving") await this.#recall(local);
      else log.error("root_move_unknown", { user: owner, state });
    }
  }

  /**
   * The store is an older copy: the lists of all nodes say where a frozen root is, and whether one that has arrived out
   * of sight is a copy of before. Never rejects.
   */
  async #recall({ moveId, owner, state }: LocalMove): Promise<void> {
    const { known, moves, log } = this.#deps;
    const arriving = state === "arriving";
    try {
      const told = await known.take({ moveId, step: MoveStep.RECALL, owner, arriving });
      if (!arriving) log.warn("root_move_recalled", { user: owner });
      else if (told.state === "undone") await moves.endImport(moveId);
    } catch (error) {
      log.error("root_move_unknown", { user: owner, state, error: errorText(error) });
    }
  }
}
