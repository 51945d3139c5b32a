// Slots for the verification of ID tokens: shared round-robin among networks and their addresses.
import type { Clock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";
import { IDP_TIMEOUT_MS } from "#base/limits.ts";

/** Verifications of distinct ID tokens under way at once; more wait for their turn. */
export const TOKEN_VERIFICATIONS_IN_FLIGHT = 256;
/** Slots for addresses without a sign-in within a day: the rest is reserved for the others. */
export const TOKEN_VERIFICATIONS_OF_STRANGERS = 192;
/** Slots for one address (IPv4, or the /64 of IPv6). */
export const TOKEN_VERIFICATIONS_PER_ADDRESS = 16;
/** Slots for one network (IPv4 /24, IPv6 /48). */
export const TOKEN_VERIFICATIONS_PER_NETWORK = 64;
/**
 * Verifications that wait for a slot; beyond them the network with the most loses its latest, answered
 * OVERLOADED.
 */
export const TOKEN_VERIFICATIONS_WAITING = 2_048;
/** Waiting verifications of one address; more are answered RATE_LIMITED. */
export const TOKEN_VERIFICATIONS_WAITING_PER_ADDRESS = 256;
/** Waiting verifications of one network; more are answered RATE_LIMITED. */
export const TOKEN_VERIFICATIONS_WAITING_PER_NETWORK = 512;
/** Longest wait for a slot; then the answer is OVERLOADED. */
export const TOKEN_VERIFICATION_WAIT_MS = 10_000;

/** Origin of a token, as limits count it. */
export interface Origin {
  /** An IPv4 address, or the /64 of an IPv6 one. */
  readonly address: string;
  /** The /24 or /48 around it. */
  readonly network: string;
}

interface Waiting {
  readonly begin: () => void;
  readonly refuse: (error: GroveError) => void;
}

interface Network {
  readonly name: string;
  /** By address, in the order of their turns. */
  readonly lines: Map<string, Line>;
  inFlight: number;
  waiting: number;
}

interface Line {
  readonly address: string;
  readonly network: Network;
  readonly waiting: Waiting[];
  inFlight: number;
}

/** Retry delay in the refusal of a full queue: no request takes longer. */
const RETRY_MS = IDP_TIMEOUT_MS;

/** The slots; only addresses that hold a slot or wait for one have an entry here. */
export class VerificationPlaces {
  readonly #clock: Clock;
  readonly #isStranger: (address: string) => boolean;
  /** In the order of their turns. */
  readonly #networks = new Map<string, Network>();
  #inFlight = 0;
  #strangers = 0;
  #waiting = 0;

  /** Strangers are addresses without a recent sign-in; some slots are closed to them. */
  constructor(deps: { readonly clock: Clock; readonly isStranger: (address: string) => boolean }) {
    this.#clock = deps.clock;
    this.#isStranger = deps.isStranger;
  }

  /**
   * Runs a verification at its turn. Throws RATE_LIMITED when its own address or network has too many
   * waiting. Throws OVERLOADED when all together have, or without a slot within 10 s. Both carry the time of
   * the next try.
   */
  async run<T>(origin: Origin, verify: () => Promise<T>): Promise<T> {
    const line = this.#lineOf(origin);
    const isStranger = this.#isStranger(line.address);
    if (line.waiting.length === 0 && this.#mayBegin(line, isStranger)) this.#begin(line, isStranger);
    else await this.#wait(line, isStranger);
    try {
      return await verify();
    } finally {
      this.#inFlight--;
      line.network.inFlight--;
      line.inFlight--;
      if (isStranger) this.#strangers--;
      this.#forget(line);
      this.#beginWhoMay();
    }
  }

  #lineOf({ address, network: name }: Origin): Line {
    const network: Network = this.#networks.get(name) ?? { name, lines: new Map(), inFlight: 0, waiting: 0 };
    this.#networks.set(name, network);
    const line: Line = network.lines.get(address) ?? { address, network, waiting: [], inFlight: 0 };
    network.lines.set(address, line);
    return line;
  }

  #mayBegin({ network, inFlight }: Line, isStranger: boolean): boolean {
    return (
      this.#inFlight < TOKEN_VERIFICATIONS_IN_FLIGHT &&
      network.inFlight < TOKEN_VERIFICATIONS_PER_NETWORK &&
      inFlight < TOKEN_VERIFICATIONS_PER_ADDRESS &&
      (!isStranger || this.#strangers < TOKEN_VERIFICATIONS_OF_STRANGERS)
    );
  }

  #begin(line: Line, isStranger: boolean): void {
    this.#inFlight++;
    line.network.inFlight++;
    line.inFlight++;
    if (isStranger) this.#strangers++;
  }

  async #wait(line: Line, isStranger: boolean): Promise<void> {
    this.#makeRoom(line);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiting: Waiting = {
      begin: () => {
        this.#begin(line, isStranger);
        resolve();
      },
      refuse: reject,
    };
    line.waiting.push(waiting);
    line.network.waiting++;
    this.#waiting++;
    const cancel = this.#clock.after(TOKEN_VERIFICATION_WAIT_MS, () => {
      this.#leave(line, waiting);
      reject(crowded("OVERLOADED", "too many sign-ins at once"));
    });
    try {
      await promise;
    } finally {
      cancel();
    }
  }

  /**
   * Throws unless one more may wait. When all lines together are full, the network with the most gives way to
   * one with fewer.
   */
  #makeRoom(line: Line): void {
    const isFull =
      line.waiting.length >= TOKEN_VERIFICATIONS_WAITING_PER_ADDRESS ||
      line.network.waiting >= TOKEN_VERIFICATIONS_WAITING_PER_NETWORK;
    if (isFull) {
      this.#forget(line);
      throw crowded("RATE_LIMITED", "too many sign-ins at once from this address or network");
    }
    if (this.#waiting < TOKEN_VERIFICATIONS_WAITING) return;
    const [largest] = [...this.#networks.values()].sort((a, b) => b.waiting - a.waiting);
    const longest = [...(largest?.lines.values() ?? [])].sort(
      (a, b) => b.waiting.length - a.waiting.length,
    )[0];
    const latest = longest?.waiting.at(-1);
    const refusal = crowded("OVERLOADED", "too many sign-ins at once");
    if (
      longest === undefined ||
      latest === undefined ||
      longest.network.waiting <= line.network.waiting + 1
    ) {
      this.#forget(line);
      throw refusal;
    }
    this.#leave(longest, latest);
    latest.refuse(refusal);
  }

  #leave(line: Line, waiting: Waiting): void {
    const at = line.waiting.indexOf(waiting);
    if (at < 0) return;
    line.waiting.splice(at, 1);
    line.network.waiting--;
    this.#waiting--;
    this.#forget(line);
  }

  #forget({ address, network, waiting, inFlight }: Line): void {
    if (inFlight === 0 && waiting.length === 0) network.lines.delete(address);
    if (network.lines.size === 0) this.#networks.delete(network.name);
  }

  #beginWhoMay(): void {
    for (let line = this.#next(); line !== undefined; line = this.#next()) {
      const { network } = line;
      const first = line.waiting[0];
      if (first === undefined) return;
      first.begin();
      this.#leave(line, first);
      // Moves to the end of the order until the next turn.
      network.lines.delete(line.address);
      network.lines.set(line.address, line);
      this.#networks.delete(network.name);
      this.#networks.set(network.name, network);
    }
  }

  /** The next line in turn, among those below their limit. */
  #next(): Line | undefined {
    if (this.#waiting === 0 || this.#inFlight >= TOKEN_VERIFICATIONS_IN_FLIGHT) return undefined;
    for (const network of this.#networks.values()) {
      if (network.waiting === 0 || network.inFlight >= TOKEN_VERIFICATIONS_PER_NETWORK) continue;
      for (const line of network.lines.values()) {
        if (line.waiting.length > 0 && this.#mayBegin(line, this.#isStranger(line.address))) return line;
      }
    }
    return undefined;
  }
}

function crowded(code: "RATE_LIMITED" | "OVERLOADED", problem: string): GroveError {
  return new GroveError(code, `${problem}; try again in ${RETRY_MS / 1_000} seconds`, {
    metadata: { retry_after_ms: String(RETRY_MS) },
  });
}
