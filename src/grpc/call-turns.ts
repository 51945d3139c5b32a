// Whose calls begin now: of each connection a few in one turn of the event loop, so that one client's many do not hold up another's one.
import { CALLS_PER_TURN, CONNECTION_CALLS_PER_TURN, COSTLY_HEADERS } from "./limits.ts";

/** A connection as its calls wait on it. They are bounded by what it can send before it is no longer read. */
export interface CallLane {
  /** Begins to wait: nothing more is read from the connection until none of its calls waits. */
  pause(): void;
  /** Goes on reading. */
  resume(): void;
  readonly waiting: WaitingCall[];
  /** What the calls cost that it began in the turn of that number. */
  cost: number;
  turn: number;
}

interface WaitingCall {
  readonly cost: number;
  readonly begin: () => void;
}

/** What a call costs by its headers, names and values counted: most calls cost 1. */
export const costOf = (rawHeaders: readonly string[]): number =>
  1 + Math.floor(rawHeaders.length / COSTLY_HEADERS);

/** The turns of a server. Those who wait are served one after the other, a call of each at a time. */
export class CallTurns {
  readonly #lanes = new Set<CallLane>();
  #turn = 0;
  #cost = 0;
  #isUnderWay = false;

  /** Whether a call of the connection may begin now; then it counts as begun. Else it has to wait. */
  mayBegin(lane: CallLane, cost: number): boolean {
    if (lane.waiting.length > 0 || !this.#hasRoom(lane)) return false;
    // Half of a turn is for those who wait, however many others come.
    if (this.#lanes.size > 0 && this.#cost >= CALLS_PER_TURN / 2) return false;
    this.#count(lane, cost);
    return true;
  }

  /** Begins a call in a later turn, after those of the connection that came before it. */
  wait(lane: CallLane, cost: number, begin: () => void): void {
    lane.waiting.push({ cost, begin });
    if (lane.waiting.length > 1) return;
    lane.pause();
    this.#lanes.add(lane);
    this.#expectTurn();
  }

  #hasRoom(lane: CallLane): boolean {
    const cost = lane.turn === this.#turn ? lane.cost : 0;
    return cost < CONNECTION_CALLS_PER_TURN && this.#cost < CALLS_PER_TURN;
  }

  #count(lane: CallLane, cost: number): void {
    if (lane.turn !== this.#turn) {
      lane.turn = this.#turn;
      lane.cost = 0;
    }
    lane.cost += cost;
    this.#cost += cost;
    // Few calls take no immediate each to be counted anew: those of several turns then count as one's, and at worst one waits in vain.
    if (this.#cost >= CONNECTION_CALLS_PER_TURN / 2) this.#expectTurn();
  }

  #expectTurn(): void {
    if (this.#isUnderWay) return;
    this.#isUnderWay = true;
    setImmediate(() => this.#next());
  }

  #next(): void {
    this.#isUnderWay = false;
    // A lane that is put back at the end of the set comes up again in the same walk, until none has room.
    for (const lane of this.#lanes) {
      if (this.#cost >= CALLS_PER_TURN) break;
      if (!this.#hasRoom(lane)) continue;
      this.#lanes.delete(lane);
      const call = lane.waiting.shift();
      if (lane.waiting.length > 0) this.#lanes.add(lane);
      else lane.resume();
      this.#count(lane, call?.cost ?? 0);
      call?.begin();
    }
    this.#turn++;
    this.#cost = 0;
    if (this.#lanes.size > 0) this.#expectTurn();
  }
}
