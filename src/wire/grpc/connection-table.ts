// The connections that a server keeps: shares of parties, and the choice of one to close when full.
import { CONNECTIONS_OF_USER, NODE_CONNECTIONS, type ServerLimits } from "#wire/framing/limits.ts";
import type { Standing } from "./standing.ts";

/** The account of a connection. */
export type ConnectionStanding = "unproven" | "node" | { readonly user: string };

/** A connection in the table. */
export interface TableConnection {
  readonly key: string;
  readonly network: string;
  standing: ConnectionStanding;
}

type Limits = Pick<ServerLimits, "maxConnections" | "maxConnectionsPerAddress" | "unprovenConnections">;

/**
 * The open connections. A new one is unproven and counts for its network. When the table is full, the network
 * with most unproven ones loses its oldest. A user's first call moves it to the user's account, a node's
 * certificate to the nodes'.
 */
export class ConnectionTable<C extends TableConnection> {
  readonly #limits: Limits;
  /** False where callers prove nothing: then no connection gives way. */
  readonly #isGated: boolean;
  readonly #all = new Map<string, C>();
  /** Unproven connections, oldest first, by network. */
  readonly #unproven = new Map<string, Set<C>>();
  readonly #users = new Map<string, number>();
  #unprovenCount = 0;
  #nodeCount = 0;

  constructor(limits: Limits, isGated: boolean) {
    this.#limits = limits;
    this.#isGated = isGated;
  }

  get size(): number {
    return this.#all.size;
  }

  /**
   * Adds a new connection. `isTaken` is false without room and without a connection to close; `evicted` is
   * the connection to close for it, which no longer counts.
   */
  add(connection: C): { readonly isTaken: boolean; readonly evicted?: C | undefined } {
    const { maxConnections, maxConnectionsPerAddress, unprovenConnections } = this.#limits;
    const own = this.#unproven.get(connection.network)?.size ?? 0;
    const others = this.#all.size - this.#nodeCount;
    const isFull = others >= maxConnections || (this.#isGated && this.#unprovenCount >= unprovenConnections);
    let evicted: C | undefined;
    if (own >= maxConnectionsPerAddress) return { isTaken: false };
    if (isFull) {
      evicted = this.#isGated ? this.#firstToGo() : undefined;
      // Only the handshake shows a node, so new connections may use the nodes' reserve.
      const mayBeNode = this.#isGated && others < maxConnections + NODE_CONNECTIONS - this.#nodeCount;
      if (evicted === undefined && !mayBeNode) return { isTaken: false };
    }
    this.#all.set(connection.key, connection);
    this.#addUnproven(connection);
    if (evicted !== undefined) this.remove(evicted);
    return { isTaken: true, evicted };
  }

  /** Counts the result of the handshake; false without room for such a connection. */
  greeted(connection: C, isNode: boolean): boolean {
    if (!isNode) return this.#all.size - this.#nodeCount <= this.#limits.maxConnections;
    if (this.#nodeCount >= NODE_CONNECTIONS) return true;
    this.#removeUnproven(connection);
    connection.standing = "node";
    this.#nodeCount++;
    return true;
  }

  /** Counts a connection with a proven call for its user, within the user's share. */
  proved(connection: C, { kind, party }: Standing): void {
    if (!this.#isGated || connection.standing !== "unproven" || kind === "unproven") return;
    const ofUser = this.#users.get(party) ?? 0;
    if (ofUser >= CONNECTIONS_OF_USER) return;
    this.#removeUnproven(connection);
    this.#users.set(party, ofUser + 1);
    connection.standing = { user: party };
  }

  remove(connection: C): void {
    if (!this.#all.delete(connection.key)) return;
    const { standing } = connection;
    if (standing === "unproven") this.#removeUnproven(connection);
    else if (standing === "node") this.#nodeCount--;
    else {
      const left = (this.#users.get(standing.user) ?? 1) - 1;
      if (left === 0) this.#users.delete(standing.user);
      else this.#users.set(standing.user, left);
    }
  }

  #firstToGo(): C | undefined {
    let greediest: Set<C> | undefined;
    for (const own of this.#unproven.values()) {
      if (own.size > (greediest?.size ?? 0)) greediest = own;
    }
    const [oldest] = greediest ?? [];
    return oldest;
  }

  #addUnproven(connection: C): void {
    const own = this.#unproven.get(connection.network);
    if (own === undefined) this.#unproven.set(connection.network, new Set([connection]));
    else own.add(connection);
    this.#unprovenCount++;
  }

  #removeUnproven(connection: C): void {
    const own = this.#unproven.get(connection.network);
    if (own?.delete(connection) !== true) return;
    this.#unprovenCount--;
    if (own.size === 0) this.#unproven.delete(connection.network);
  }
}
