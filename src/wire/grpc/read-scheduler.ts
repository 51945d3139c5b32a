// How much of a connection is read in one turn of the event loop: where several bring something, each gets its part of what a turn takes.
import { READ_BYTES_PER_TURN, READ_BYTES_PER_TURN_MIN } from "#wire/framing/limits.ts";

/** A connection as it is read. */
export interface ReadLane {
  /** What it brought in the turn of that number. */
  readBytes: number;
  readTurn: number;
  /** Has it not be read. */
  hold(): void;
  /** Takes one `hold` back. */
  release(): void;
}

/**
 * The turns of a server. libuv reads a socket up to 32 times before it looks at the next, two megabytes, and one client may have many
 * sockets; a small call of somebody else would wait for all of them, in each of the few turns that it takes. A connection that is alone
 * is read as fast as ever.
 */
export class ReadScheduler {
  #turn = 1;
  /** Connections that have brought something in this turn and in the one before. */
  #active = 0;
  #lately = 0;
  #held: ReadLane[] = [];
  #isUnderWay = false;

  /** A connection has brought so many bytes. */
  took(lane: ReadLane, bytes: number): void {
    if (lane.readTurn !== this.#turn) {
      lane.readTurn = this.#turn;
      lane.readBytes = 0;
      this.#active++;
    }
    const before = lane.readBytes;
    lane.readBytes += bytes;
    // Small calls take no immediate each to be counted anew: those of several turns then count as one's.
    if (lane.readBytes < READ_BYTES_PER_TURN_MIN) return;
    this.#expectNext();
    const others = Math.max(this.#active, this.#lately);
    if (others < 2) return;
    const share = Math.max(READ_BYTES_PER_TURN_MIN, READ_BYTES_PER_TURN / others);
    if (lane.readBytes < share || before >= share) return;
    lane.hold();
    this.#held.push(lane);
  }

  #expectNext(): void {
    if (this.#isUnderWay) return;
    this.#isUnderWay = true;
    setImmediate(() => this.#next());
  }

  #next(): void {
    this.#isUnderWay = false;
    this.#turn++;
    this.#lately = this.#active;
    this.#active = 0;
    const held = this.#held;
    this.#held = [];
    for (const lane of held) lane.release();
  }
}
