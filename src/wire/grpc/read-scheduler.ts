// Divides the bytes read in one turn of the event loop among the connections that send.
import { READ_BYTES_PER_TURN, READ_BYTES_PER_TURN_MIN } from "#wire/framing/limits.ts";

/** A connection that is read. */
export interface ReadLane {
  /** Bytes that it brought in the turn of that number. */
  readBytes: number;
  readTurn: number;
  /** Pauses its reading. */
  hold(): void;
  /** Takes one `hold` back. */
  release(): void;
}

/**
 * The turns of a server. libuv reads a socket up to 32 times (two megabytes) before the next socket, and one
 * client may have many sockets. Another client's small call would wait for all of them in each of its few
 * turns. A connection that sends alone is read at full speed.
 */
export class ReadScheduler {
  #turn = 1;
  /** Connections that have brought bytes in this turn and in the one before. */
  #active = 0;
  #lately = 0;
  #held: ReadLane[] = [];
  #isUnderWay = false;

  /** Counts bytes that a connection has brought. */
  took(lane: ReadLane, bytes: number): void {
    if (lane.readTurn !== this.#turn) {
      lane.readTurn = this.#turn;
      lane.readBytes = 0;
      this.#active++;
    }
    const before = lane.readBytes;
    lane.readBytes += bytes;
    // A few bytes do not schedule an immediate for the count: those of several turns then count as one's.
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
