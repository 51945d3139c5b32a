// The simulated network: hosts, reachability in each direction, and connections that keep their order.
import type { SeededRandom } from "#prove/seeded-random.ts";
import { type Scheduler, type SimulatedProcess, simulation } from "./scheduler.ts";

/** One end of a connection. */
export interface End {
  /** Receives one batch of the other end's frames, in order. */
  receive(batch: readonly unknown[]): void;
  /** The connection is gone. */
  lost(): void;
}

/** State of one direction between two hosts, beyond its usual millisecond or two. */
export interface Disturbance {
  /** Nothing gets through; frames wait until it ends, as TCP sends again. */
  isCut: boolean;
  /** Milliseconds added to every delivery. */
  delayMs: number;
}

/** Longer waiting breaks a connection. */
const BREAKS_AFTER_MS = 180_000;
/** A sender tries again after as long as it has waited already, as TCP does, and never later than this. */
const AGAIN_WITHIN_MS = 120_000;
/** This many attempts in so short a time count as a retry loop without pauses. */
const STORM_ATTEMPTS = 60;
const STORM_WINDOW_MS = 10_000;
const HOP_MIN_MS = 0.2;
const HOP_SPREAD_MS = 2;
/** Interval at which a cut direction is checked. */
const LOOK_EVERY_MS = 250;

const GONE: unique symbol = Symbol("gone");

type Listener = (connection: Connection, from: string) => End;

class Direction {
  readonly #scheduler: Scheduler;
  readonly #from: string;
  readonly #to: string;
  readonly #connection: Connection;
  readonly #waiting: { readonly batch: readonly unknown[]; readonly sinceMs: number }[] = [];
  end: End | undefined;
  owner: SimulatedProcess | undefined;
  #collecting: unknown[] | undefined;
  #lastAtMs = 0;
  #isWatching = false;

  constructor(connection: Connection, from: string, to: string) {
    this.#scheduler = simulation();
    this.#connection = connection;
    this.#from = from;
    this.#to = to;
  }

  /** Frames of one turn travel together. */
  send(frame: unknown): void {
    if (this.#collecting !== undefined) {
      this.#collecting.push(frame);
      return;
    }
    const batch = [frame];
    this.#collecting = batch;
    this.#scheduler.immediate(() => {
      this.#collecting = undefined;
      this.#dispatch(batch);
    });
  }

  /** The sender has closed: the other end learns that after all that was sent. */
  close(): void {
    this.#scheduler.immediate(() => this.#dispatch([GONE]));
  }

  #dispatch(batch: readonly unknown[]): void {
    if (this.#connection.isBroken) return;
    if (this.#waiting.length > 0 || this.#network.isCut(this.#from, this.#to)) {
      this.#waiting.push({ batch, sinceMs: this.#scheduler.nowMs });
      this.#watch();
      return;
    }
    this.#travel(batch);
  }

  #travel(batch: readonly unknown[]): void {
    const hopMs = this.#network.hopMs(this.#from, this.#to);
    const atMs = Math.max(this.#lastAtMs, this.#scheduler.nowMs + hopMs);
    this.#lastAtMs = atMs;
    const { owner } = this;
    this.#scheduler.within(undefined, () =>
      this.#scheduler.after(atMs - this.#scheduler.nowMs, () => {
        if (this.#connection.isBroken) return;
        const { end } = this;
        // A machine answers on an unknown connection with a reset.
        if (end === undefined || owner?.isAlive === false || batch[0] === GONE) this.#connection.break();
        else this.#scheduler.within(owner, () => end.receive(batch));
      }),
    );
  }

  #watch(): void {
    if (this.#isWatching) return;
    this.#isWatching = true;
    this.#scheduler.within(undefined, () => this.#scheduler.after(LOOK_EVERY_MS, () => this.#look()));
  }

  #look(): void {
    this.#isWatching = false;
    const [first] = this.#waiting;
    if (first === undefined || this.#connection.isBroken) return;
    if (this.#network.isCut(this.#from, this.#to)) {
      if (this.#scheduler.nowMs - first.sinceMs > BREAKS_AFTER_MS) this.#connection.break();
      else this.#watch();
      return;
    }
    this.#isWatching = true;
    this.#scheduler.within(undefined, () =>
      this.#scheduler.after(this.#againAfterMs(first.sinceMs), () => {
        this.#isWatching = false;
        if (this.#network.isCut(this.#from, this.#to)) return this.#watch();
        const all = this.#waiting.splice(0);
        for (const { batch } of all) this.#travel(batch);
        return undefined;
      }),
    );
  }

  #againAfterMs(sinceMs: number): number {
    return this.#network.random.next() * Math.min(this.#scheduler.nowMs - sinceMs, AGAIN_WITHIN_MS);
  }

  get #network(): Network {
    return this.#connection.network;
  }
}

/** A connection between two hosts. */
export class Connection {
  readonly network: Network;
  readonly clientHost: string;
  readonly clientPort: number;
  readonly serverHost: string;
  readonly serverPort: number;
  readonly toServer: Direction;
  readonly toClient: Direction;
  isBroken = false;

  constructor(network: Network, from: string, clientPort: number, to: string, port: number) {
    this.network = network;
    this.clientHost = from;
    this.clientPort = clientPort;
    this.serverHost = to;
    this.serverPort = port;
    this.toServer = new Direction(this, from, to);
    this.toClient = new Direction(this, to, from);
  }

  /** Breaks the connection: each end learns it as soon as anything can reach it. */
  break(): void {
    if (this.isBroken) return;
    this.isBroken = true;
    this.network.connections.delete(this);
    const scheduler = simulation();
    for (const { end, owner } of [this.toServer, this.toClient])
      scheduler.within(owner, () => scheduler.after(this.network.hopMs("", ""), () => end?.lost()));
  }

  /** Drops one end silently: the other learns of it when it sends, or never. */
  forget(isServer: boolean): void {
    if (isServer) this.toServer.end = undefined;
    else this.toClient.end = undefined;
  }
}

/** The network between all hosts. */
export class Network {
  readonly random: SeededRandom;
  readonly connections = new Set<Connection>();
  /** Called when a process connects to an address far more often than with pauses between attempts. */
  onStorm: (text: string) => void = () => undefined;
  readonly #attempts = new Map<string, { sinceMs: number; count: number }>();
  /** Probability that a message of the control plane comes once more, up to a minute later. */
  ghostChance = 0;
  readonly #listeners = new Map<
    string,
    { readonly take: Listener; readonly process: SimulatedProcess | undefined }
  >();
  readonly #disturbances = new Map<string, Disturbance>();
  #ports = 30_000;

  constructor(random: SeededRandom) {
    this.random = random;
  }

  /** One direction between two hosts, to be read and changed. */
  disturbance(from: string, to: string): Disturbance {
    const key = `${from} ${to}`;
    let known = this.#disturbances.get(key);
    if (known === undefined) {
      known = { isCut: false, delayMs: 0 };
      this.#disturbances.set(key, known);
    }
    return known;
  }

  /** True while nothing gets from one host to the other. */
  isCut(from: string, to: string): boolean {
    const { hosts } = simulation();
    return (
      hosts.get(from)?.isDown === true || hosts.get(to)?.isDown === true || this.disturbance(from, to).isCut
    );
  }

  /** Ends all disturbances. */
  heal(): void {
    for (const each of this.#disturbances.values()) Object.assign(each, { isCut: false, delayMs: 0 });
  }

  /** Moves a process to another host, since another process takes its place. */
  moveAway(of: SimulatedProcess, host: string): void {
    of.host = host;
    for (const connection of this.connections)
      if (connection.toServer.owner === of || connection.toClient.owner === of) connection.break();
    for (const [address, { process }] of this.#listeners) if (process === of) this.#listeners.delete(address);
  }

  hopMs(from: string, to: string): number {
    const { delayMs } = this.disturbance(from, to);
    return HOP_MIN_MS + this.random.next() * HOP_SPREAD_MS + delayMs * (0.5 + this.random.next());
  }

  /** Accepts connections at an address for the current process. */
  listen(address: string, take: Listener): () => void {
    const process = simulation().current;
    if (this.#listeners.get(address)?.process?.isAlive === true)
      throw Object.assign(new Error(`EADDRINUSE ${address}`), { code: "EADDRINUSE" });
    const listener = { take, process };
    this.#listeners.set(address, listener);
    return () => {
      if (this.#listeners.get(address) === listener) this.#listeners.delete(address);
    };
  }

  /** Connects from the host of the current process. `failed` is called for a refusal; a cut calls nothing. */
  connect(
    address: string,
    end: End,
    handlers: { readonly up: (connection: Connection) => void; readonly failed: (error: Error) => void },
  ): void {
    const scheduler = simulation();
    const process = scheduler.current;
    const from = process?.host ?? "nowhere";
    this.#countAttempt(`${process?.name ?? from} to ${address}`);
    const at = address.lastIndexOf(":");
    const to = address.slice(0, at);
    const port = Number(address.slice(at + 1));
    if (this.isCut(from, to) || this.isCut(to, from)) return;
    const connection = new Connection(this, from, this.#ports++, to, port);
    connection.toClient.end = end;
    connection.toClient.owner = process;
    scheduler.after(this.hopMs(from, to) + this.hopMs(to, from), () => {
      if (this.isCut(from, to) || this.isCut(to, from)) return;
      const listener = this.#listeners.get(address);
      if (listener === undefined || listener.process?.isAlive === false) {
        handlers.failed(
          Object.assign(new Error(`connect ECONNREFUSED ${address}`), { code: "ECONNREFUSED" }),
        );
        return;
      }
      this.connections.add(connection);
      connection.toServer.owner = listener.process;
      scheduler.within(listener.process, () => {
        connection.toServer.end = listener.take(connection, from);
      });
      handlers.up(connection);
    });
  }

  /** True while every direction is as usual. */
  get isQuiet(): boolean {
    return [...this.#disturbances.values()].every(({ isCut, delayMs }) => !isCut && delayMs === 0);
  }

  #countAttempt(whose: string): void {
    const { nowMs } = simulation();
    const known = this.#attempts.get(whose);
    if (known === undefined || nowMs - known.sinceMs > STORM_WINDOW_MS) {
      this.#attempts.set(whose, { sinceMs: nowMs, count: 1 });
      return;
    }
    if (++known.count === STORM_ATTEMPTS)
      this.onStorm(`${whose}: ${STORM_ATTEMPTS} connections within ${Math.round(nowMs - known.sinceMs)} ms`);
  }

  /**
   * A process has died: its system resets its connections, or the whole machine is gone and sends nothing.
   */
  died(process: SimulatedProcess, isSilent: boolean): void {
    for (const connection of this.connections) {
      const isServer = connection.toServer.owner === process;
      if (!isServer && connection.toClient.owner !== process) continue;
      connection.forget(isServer);
      if (!isSilent) (isServer ? connection.toClient : connection.toServer).close();
    }
  }
}

let running: Network | undefined;

/**
 * The network of the current simulation.
 * @throws Error while there is none
 */
export function network(): Network {
  if (running === undefined) throw new Error("there is no network");
  return running;
}

/** Makes a new one. */
export function startNetwork(random: SeededRandom): Network {
  running = new Network(random);
  return running;
}
