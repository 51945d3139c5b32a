// A door's connections: a share for each network, and where all are taken, the largest stranger gives way.
import type { Socket } from "node:net";
import { networkOf } from "#base/network.ts";
import { peerAddress, type TrustedProxies } from "#os/client-address.ts";
import {
  DOOR_CONNECTIONS,
  DOOR_CONNECTIONS_PER_NETWORK,
  DOOR_REFUSALS_PER_CONNECTION,
  DOOR_UNPROVEN_PER_NETWORK,
} from "./door-limits.ts";

interface Open {
  readonly socket: Socket;
  readonly network: string;
  /** True once somebody has signed in on it, and for named proxies. */
  isProven: boolean;
  /** True for named proxies, which carry many clients. */
  readonly isProxy: boolean;
  /** Wrong credentials since the last right ones. */
  refusals: number;
}

interface Counts {
  all: number;
  unproven: number;
}

/** All open connections by network. */
export class Connections {
  readonly #proxies: TrustedProxies;
  readonly #open = new Map<string, Open>();
  readonly #counts = new Map<string, Counts>();
  /** Connections that were closed at once, or gave way. */
  turnedAway = 0;

  constructor(proxies: TrustedProxies) {
    this.#proxies = proxies;
  }

  get size(): number {
    return this.#open.size;
  }

  /** Takes a new connection in, or closes it. */
  add(socket: Socket): void {
    const address = peerAddress(socket);
    const isProxy = this.#proxies.has(address);
    const network = isProxy ? `proxy ${address}` : networkOf(address);
    const counts = this.#counts.get(network) ?? { all: 0, unproven: 0 };
    const hasShare =
      isProxy || (counts.all < DOOR_CONNECTIONS_PER_NETWORK && counts.unproven < DOOR_UNPROVEN_PER_NETWORK);
    if (!hasShare || (this.#open.size >= DOOR_CONNECTIONS && !this.#makeRoom(network))) {
      this.turnedAway++;
      socket.destroy();
      return;
    }
    const entry: Open = { socket, network, isProven: isProxy, isProxy, refusals: 0 };
    counts.all++;
    if (!isProxy) counts.unproven++;
    this.#counts.set(network, counts);
    const key = keyOf(socket);
    this.#open.set(key, entry);
    socket.once("close", () => this.#remove(key, entry));
  }

  /** Notes that somebody has signed in on a connection; true for the first time. */
  prove(socket: Peer): boolean {
    const entry = this.#open.get(keyOf(socket));
    if (entry === undefined) return false;
    entry.refusals = 0;
    if (entry.isProven) return false;
    entry.isProven = true;
    const counts = this.#counts.get(entry.network);
    if (counts !== undefined) counts.unproven--;
    return true;
  }

  /** True once somebody has signed in on a connection, and for named proxies. */
  isProven(socket: Peer): boolean {
    return this.#open.get(keyOf(socket))?.isProven === true;
  }

  /** Notes wrong credentials; true where the connection has brought so many that it has to end. */
  refuse(socket: Peer): boolean {
    const entry = this.#open.get(keyOf(socket));
    if (entry === undefined || entry.isProxy) return false;
    return ++entry.refusals >= DOOR_REFUSALS_PER_CONNECTION;
  }

  closeAll(): void {
    for (const { socket } of this.#open.values()) socket.destroy();
  }

  /** Closes the oldest unproven connection of the network that has most of them; false where that is the asker's. */
  #makeRoom(asker: string): boolean {
    let [most, mostCount] = ["", this.#counts.get(asker)?.unproven ?? 0];
    for (const [network, { unproven }] of this.#counts) {
      if (unproven > mostCount) [most, mostCount] = [network, unproven];
    }
    for (const { socket, network, isProven } of this.#open.values()) {
      if (network !== most || isProven) continue;
      this.turnedAway++;
      socket.destroy();
      return true;
    }
    return false;
  }

  #remove(key: string, entry: Open): void {
    if (this.#open.get(key) !== entry) return;
    this.#open.delete(key);
    const counts = this.#counts.get(entry.network);
    if (counts === undefined) return;
    counts.all--;
    if (!entry.isProven) counts.unproven--;
    if (counts.all === 0) this.#counts.delete(entry.network);
  }
}

/** The other end; TLS and HTTP/2 have objects of their own for the same connection. */
interface Peer extends Pick<Socket, "remoteAddress" | "remotePort"> {
  [KEY]?: string;
}

const KEY = Symbol("place among connections");

function keyOf(peer: Peer): string {
  const known = peer[KEY];
  if (known !== undefined) return known;
  const { remoteAddress, remotePort } = peer;
  const key = `${remoteAddress ?? ""} ${remotePort ?? 0}`;
  // Kept on the socket, since each request asks for it. One that has ended tells no address.
  if (remoteAddress !== undefined) peer[KEY] = key;
  return key;
}
