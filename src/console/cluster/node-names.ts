// Resolves a node's host to one checked IP address, which no later look-up can change (M-04).
import { lookup as systemLookup } from "node:dns/promises";
import { isIP } from "node:net";
import type { Clock } from "#base/clock.ts";
import { CONSOLE_NODES_MAX } from "./cluster-state.ts";
import type { NodeNetworks } from "./node-networks.ts";
import { PollError } from "./poll-error.ts";

/** Time for which a looked-up address is used before the next look-up. */
export const NODE_NAME_LIFETIME_MS = 30_000;
/** Look-ups of node names at once; each may hold a thread that file I/O needs too. */
export const NODE_LOOKUPS_AT_ONCE = 2;
/** Time for one look-up of a node's name before others may start. */
export const NODE_LOOKUP_TIMEOUT_MS = 5_000;
/** Threads of the four that look-ups may hold in all, hanging ones included: file I/O needs one. */
const NODE_LOOKUP_THREADS = 3;

/** Looks a name up; rejects with the system's error. */
export type Lookup = (name: string) => Promise<readonly string[]>;

interface Name {
  /** The last address found; undefined before the first look-up and for a name without an address. */
  ip: string | undefined;
  problem: string | undefined;
  readAtMs: number | undefined;
  isWaiting: boolean;
}

/** The names of nodes. */
export class NodeNames {
  readonly #clock: Clock;
  readonly #networks: NodeNetworks;
  readonly #lookup: Lookup;
  readonly #names = new Map<string, Name>();
  /** Results of the check of literal addresses, cached because every poll asks for them. */
  readonly #problems = new Map<string, string | undefined>();
  readonly #waiting: string[] = [];
  /** Look-ups within their time, and those that hang beyond it. */
  #running = 0;
  #hanging = 0;

  constructor(deps: { clock: Clock; networks: NodeNetworks; lookup?: Lookup }) {
    this.#clock = deps.clock;
    this.#networks = deps.networks;
    this.#lookup = deps.lookup ?? lookupAll;
  }

  /**
   * The known address of a host. A name that is new or was looked up 30 s ago is looked up in the background.
   * Throws PollError while the name has no permitted address.
   */
  addressOf(host: string): string {
    if (isIP(host) !== 0) {
      const problem = this.#problemOfAddress(host);
      if (problem !== undefined) throw new PollError(problem);
      return host;
    }
    const name = this.#nameOf(host);
    if (name.ip !== undefined) return name.ip;
    throw new PollError(name.problem ?? "its name is being looked up");
  }

  /** Forgets all names but these. */
  keepOnly(hosts: ReadonlySet<string>): void {
    for (const host of this.#names.keys()) if (!hosts.has(host)) this.#names.delete(host);
    for (const host of this.#problems.keys()) if (!hosts.has(host)) this.#problems.delete(host);
  }

  #problemOfAddress(ip: string): string | undefined {
    const known = this.#problems.get(ip);
    if (known !== undefined || this.#problems.has(ip)) return known;
    const problem = this.#networks.problemOf(ip);
    if (this.#problems.size < CONSOLE_NODES_MAX) this.#problems.set(ip, problem);
    return problem;
  }

  #nameOf(host: string): Name {
    let name = this.#names.get(host);
    if (name === undefined) {
      name = { ip: undefined, problem: undefined, readAtMs: undefined, isWaiting: false };
      if (this.#names.size < CONSOLE_NODES_MAX) this.#names.set(host, name);
    }
    const isFresh =
      name.readAtMs !== undefined && this.#clock.steadyMs() - name.readAtMs < NODE_NAME_LIFETIME_MS;
    if (!isFresh && !name.isWaiting && this.#names.has(host)) {
      name.isWaiting = true;
      this.#waiting.push(host);
      this.#next();
    }
    return name;
  }

  /** A hanging look-up holds a thread of the process until the system gives up, so few may run. */
  #next(): void {
    while (this.#running < NODE_LOOKUPS_AT_ONCE && this.#running + this.#hanging < NODE_LOOKUP_THREADS) {
      const host = this.#waiting.shift();
      if (host === undefined) return;
      const name = this.#names.get(host);
      if (name !== undefined) this.#begin(host, name);
    }
  }

  /** Lets others start when a look-up takes too long; its late result still counts. */
  #begin(host: string, name: Name): void {
    let isLate = false;
    this.#running++;
    const cancel = this.#clock.after(NODE_LOOKUP_TIMEOUT_MS, () => {
      isLate = true;
      name.problem = `its name was not looked up within ${NODE_LOOKUP_TIMEOUT_MS / 1_000} s`;
      this.#running--;
      this.#hanging++;
      this.#next();
    });
    void this.#read(host, name).finally(() => {
      cancel();
      if (isLate) this.#hanging--;
      else this.#running--;
      this.#next();
    });
  }

  async #read(host: string, name: Name): Promise<void> {
    try {
      const ips = await this.#lookup(host);
      name.ip = ips.find((ip) => this.#networks.problemOf(ip) === undefined);
      name.problem = name.ip !== undefined ? undefined : this.#problemOf(ips[0]);
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code ?? "unknown";
      // While the system's resolver fails, names keep their addresses.
      if (code === "ENOTFOUND" || name.ip === undefined) {
        name.ip = undefined;
        name.problem = `its name leads to no address (${code})`;
      }
    }
    name.isWaiting = false;
    name.readAtMs = this.#clock.steadyMs();
  }

  #problemOf(ip: string | undefined): string {
    if (ip === undefined) return "its name leads to no address";
    return `its name leads astray: ${this.#networks.problemOf(ip) ?? ip}`;
  }
}

async function lookupAll(name: string): Promise<readonly string[]> {
  const found = await systemLookup(name, { all: true });
  return found.map((entry) => entry.address);
}
