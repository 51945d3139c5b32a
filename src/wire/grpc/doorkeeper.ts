// Decides which connections come in: rates of handshakes, wasted work of their networks, shares of the tables.
import type { Clock } from "#base/clock.ts";
import type { ServerLimits } from "#wire/framing/limits.ts";
import { ConnectionTable, type TableConnection } from "./connection-table.ts";
import { HandshakeLimiter } from "./handshake-limiter.ts";
import type { Standing } from "./standing.ts";
import type { UnprovenLoad } from "./unproven-load.ts";

/** A connection at the door. */
export interface ComingConnection extends TableConnection {
  readonly address: string;
}

/** Whether a connection may come in, and the one to close for it, which no longer counts. */
export interface Admission<C> {
  readonly isTaken: boolean;
  readonly evicted?: C | undefined;
}

/** Admits connections and counts them. */
export interface Door<C> {
  /** Counts a new connection. A promise means that it waits, unread, until its account is found. */
  admit(connection: C): Admission<C> | Promise<boolean>;
  /** Counts the result of the handshake; false without room for such a connection. */
  greeted(connection: C, isNode: boolean): boolean;
  /** Counts a connection with a proven call for its user, within the user's share. */
  proved(connection: C, standing: Standing): void;
  remove(connection: C): void;
}

/** Dependencies of a doorkeeper. */
export interface DoorkeeperDeps {
  readonly limits: Pick<ServerLimits, "maxConnections" | "maxConnectionsPerAddress" | "unprovenConnections">;
  readonly clock: Clock;
  /** False where callers prove nothing: then every connection comes in that has room. */
  readonly isGated: boolean;
  readonly isEncrypted: boolean;
  /** Wasted work by network. */
  readonly load: UnprovenLoad;
}

/** The door of one listener. */
export class Doorkeeper<C extends ComingConnection> implements Door<C> {
  readonly #isGated: boolean;
  readonly #load: UnprovenLoad;
  readonly #table: ConnectionTable<C>;
  readonly #handshakes: HandshakeLimiter;

  constructor({ limits, clock, isGated, isEncrypted, load }: DoorkeeperDeps) {
    this.#isGated = isGated;
    this.#load = load;
    this.#table = new ConnectionTable(limits, isGated);
    this.#handshakes = new HandshakeLimiter(clock, isEncrypted);
  }

  admit(connection: C): Admission<C> {
    return this.#isWelcome(connection) ? this.#table.add(connection) : { isTaken: false };
  }

  greeted(connection: C, isNode: boolean): boolean {
    return this.#table.greeted(connection, isNode);
  }

  proved(connection: C, standing: Standing): void {
    if (standing.kind === "unproven" || !this.#isGated) return;
    this.#table.proved(connection, standing);
    if (connection.standing !== "unproven") this.#handshakes.proved(connection.network);
  }

  remove(connection: C): void {
    this.#table.remove(connection);
  }

  /** Whether to accept connections of a network with costly callers: other clients may share it. */
  #isWelcome(connection: C): boolean {
    if (!this.#isGated) return true;
    const { network } = connection;
    if (!this.#handshakes.mayBegin(connection)) return false;
    return this.#handshakes.isProven(network) || !this.#load.isOver(network);
  }
}
