// Round-robin scheduler over connections: each begins a few calls per turn of the event loop.
import {
  CALLS_PER_TURN,
  CONNECTION_CALLS_PER_TURN,
  COSTLY_HEADERS,
  SHARED_CALLS_PER_TURN,
  UNPROVEN_CALLS_PER_TURN,
} from "#wire/framing/limits.ts";

/** Cost in a turn that is reserved while unproven callers wait, since a user is unproven before sign-in. */
const KEPT_FOR_UNPROVEN = 4;

/** A connection with its waiting calls, which are bounded since reading stops. */
export interface CallLane {
  /** Begins to wait: the connection is not read until none of its calls waits. */
  pause(): void;
  /** Continues reading. */
  resume(): void;
  /** Whether a caller on the connection is proven: such calls go first. */
  isProven: boolean;
  readonly waiting: WaitingCall[];
  /** Cost of the calls that it began in the turn of that number. */
  cost: number;
  turn: number;
}

interface WaitingCall {
  readonly cost: number;
  readonly begin: () => void;
}

/** Cost of a call by its headers, names and values counted: 1 for most calls. */
export const costOf = (rawHeaders: readonly string[]): number =>
  1 + Math.floor(rawHeaders.length / COSTLY_HEADERS);

/** The turns of a server, round-robin over waiting connections; unproven ones share a part of each turn. */
export class CallScheduler {
  readonly #proven = new Set<CallLane>();
  readonly #unproven = new Set<CallLane>();
  #turn = 0;
  #cost = 0;
  #unprovenCost = 0;
  /** Connections that have begun calls in this turn, and in the one before. */
  #active = 0;
  #lately = 0;
  #isUnderWay = false;

  /** Whether a call of the connection may begin now, and then it counts as begun. Otherwise it must wait. */
  mayBegin(lane: CallLane, cost: number): boolean {
    if (lane.waiting.length > 0 || !this.#hasRoom(lane)) return false;
    // Half of a turn is for waiting calls, however many new ones arrive.
    if (this.#ofKind(lane).size > 0 && this.#cost >= this.#most() / 2) return false;
    this.#count(lane, cost);
    return true;
  }

  /** Begins a call in a later turn, after earlier calls of the connection. */
  wait(lane: CallLane, cost: number, begin: () => void): void {
    lane.waiting.push({ cost, begin });
    if (lane.waiting.length > 1) return;
    lane.pause();
    this.#ofKind(lane).add(lane);
    this.#expectTurn();
  }

  #most(): number {
    return Math.max(this.#active, this.#lately) < 2 ? CALLS_PER_TURN : SHARED_CALLS_PER_TURN;
  }

  #ofKind(lane: CallLane): Set<CallLane> {
    return lane.isProven ? this.#proven : this.#unproven;
  }

  #hasRoom(lane: CallLane): boolean {
    const cost = lane.turn === this.#turn ? lane.cost : 0;
    if (cost >= CONNECTION_CALLS_PER_TURN || this.#cost >= this.#most()) return false;
    return lane.isProven || this.#unprovenCost < UNPROVEN_CALLS_PER_TURN;
  }

  #count(lane: CallLane, cost: number): void {
    if (lane.turn !== this.#turn) {
      lane.turn = this.#turn;
      lane.cost = 0;
      this.#active++;
    }
    lane.cost += cost;
    this.#cost += cost;
    if (!lane.isProven) this.#unprovenCost += cost;
    // A few calls do not schedule an immediate for the count: those of several turns count as one's, and at
    // worst one waits in vain.
    if (this.#cost >= SHARED_CALLS_PER_TURN / 2) this.#expectTurn();
  }

  #expectTurn(): void {
    if (this.#isUnderWay) return;
    this.#isUnderWay = true;
    setImmediate(() => this.#next());
  }

  #next(): void {
    this.#isUnderWay = false;
    this.#serve(this.#proven, this.#unproven.size > 0 ? KEPT_FOR_UNPROVEN : 0);
    this.#serve(this.#unproven, 0);
    this.#turn++;
    this.#cost = 0;
    this.#unprovenCost = 0;
    this.#lately = this.#active;
    this.#active = 0;
    if (this.#proven.size + this.#unproven.size > 0) this.#expectTurn();
  }

  #serve(lanes: Set<CallLane>, kept: number): void {
    // A lane at the end of the set comes up again in the same walk, until none has room.
    for (const lane of lanes) {
      if (this.#cost >= this.#most() - kept) break;
      if (!this.#hasRoom(lane)) continue;
      lanes.delete(lane);
      const call = lane.waiting.shift();
      this.#count(lane, call?.cost ?? 0);
      call?.begin();
      // That call may have proven its caller.
      if (lane.waiting.length > 0) this.#ofKind(lane).add(lane);
      else lane.resume();
    }
  }
}
