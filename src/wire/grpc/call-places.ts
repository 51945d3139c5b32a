// Places of a server's calls: every party has a share, and nodes have places of their own.
import {
  ARRIVING_CALLS,
  CALLS_OF_NODE,
  MODEST_CALLS,
  NODE_CALLS,
  type ServerLimits,
} from "#wire/framing/limits.ts";
import { SharedBudget } from "#wire/framing/shared-budget.ts";
import { Code, StatusError } from "#wire/framing/status.ts";
import type { Standing } from "./standing.ts";

/** A call that takes a place. */
export interface PlacedCall {
  readonly standing: Standing;
  /** Ends the call in favour of another one. */
  cancel(reason: StatusError): void;
}

/** Counts calls. */
export interface Places {
  expect(call: PlacedCall): void;
  begin(call: PlacedCall): void;
  leave(call: PlacedCall, hasBegun: boolean): void;
  /** Called when a call is ended from outside, before its answer. */
  cancelled?(call: PlacedCall, reason: StatusError): void;
}

/**
 * The places of one server. A call takes one when its request has arrived. Until then it is counted apart, so
 * that slow senders take no places. Unproven callers have a few of their own for both.
 */
export class CallPlaces implements Places {
  readonly #ofUsers: SharedBudget;
  readonly #ofNodes: SharedBudget;
  /** Calls whose requests are still arriving. */
  readonly #arrivingOfUsers: SharedBudget;
  readonly #arrivingOfNodes: SharedBudget;
  readonly #ofUnproven: UnprovenPlaces;

  constructor(limits: ServerLimits) {
    const { maxCalls, callsPerParty, spareCalls } = limits;
    const shares = { perParty: callsPerParty, spare: spareCalls, modest: MODEST_CALLS };
    this.#ofUsers = new SharedBudget({ ...shares, total: maxCalls });
    this.#arrivingOfUsers = new SharedBudget({ ...shares, total: ARRIVING_CALLS });
    const ofNodes = { ...shares, total: NODE_CALLS, perParty: CALLS_OF_NODE };
    this.#ofNodes = new SharedBudget(ofNodes);
    this.#arrivingOfNodes = new SharedBudget(ofNodes);
    this.#ofUnproven = new UnprovenPlaces(limits);
  }

  /** Counts a call with its headers. Throws RESOURCE_EXHAUSTED. */
  expect(call: PlacedCall): void {
    const { kind, party } = call.standing;
    if (kind === "unproven") this.#ofUnproven.take(call);
    else if (!this.#arrivingOf(kind).take(party, 1)) throw tooManyCalls();
  }

  /** Gives an arrived call its place. Throws RESOURCE_EXHAUSTED, and then it counts as before. */
  begin(call: PlacedCall): void {
    const { kind, party } = call.standing;
    if (kind === "unproven") return;
    if (!this.#budgetOf(kind).take(party, 1)) throw tooManyCalls();
    this.#arrivingOf(kind).give(party, 1);
  }

  /** Removes a call; `hasBegun` is true when it had its place. */
  leave(call: PlacedCall, hasBegun: boolean): void {
    const { kind, party } = call.standing;
    if (kind === "unproven") this.#ofUnproven.give(call);
    else if (hasBegun) this.#budgetOf(kind).give(party, 1);
    else this.#arrivingOf(kind).give(party, 1);
  }

  #budgetOf(kind: "user" | "node"): SharedBudget {
    return kind === "node" ? this.#ofNodes : this.#ofUsers;
  }

  #arrivingOf(kind: "user" | "node"): SharedBudget {
    return kind === "node" ? this.#arrivingOfNodes : this.#arrivingOfUsers;
  }
}

/** The places of unproven callers. When all are taken, the network with most of them gives one up. */
class UnprovenPlaces {
  readonly #limits: Pick<ServerLimits, "unprovenCalls" | "unprovenCallsPerNetwork">;
  /** Oldest first. */
  readonly #calls = new Map<string, Set<PlacedCall>>();
  #count = 0;

  constructor(limits: Pick<ServerLimits, "unprovenCalls" | "unprovenCallsPerNetwork">) {
    this.#limits = limits;
  }

  take(call: PlacedCall): void {
    const { party } = call.standing;
    const { unprovenCalls, unprovenCallsPerNetwork } = this.#limits;
    const ownCount = this.#calls.get(party)?.size ?? 0;
    if (ownCount >= unprovenCallsPerNetwork) throw tooManyCalls();
    if (this.#count >= unprovenCalls) this.#makeRoom(ownCount + 1);
    const own = this.#calls.get(party);
    if (own === undefined) this.#calls.set(party, new Set([call]));
    else own.add(call);
    this.#count++;
  }

  give(call: PlacedCall): void {
    const { party } = call.standing;
    const own = this.#calls.get(party);
    if (own?.delete(call) !== true) return;
    this.#count--;
    if (own.size === 0) this.#calls.delete(party);
  }

  #makeRoom(moreThan: number): void {
    let greediest: Set<PlacedCall> | undefined;
    for (const own of this.#calls.values()) {
      if (own.size > (greediest?.size ?? moreThan)) greediest = own;
    }
    const [oldest] = greediest ?? [];
    if (oldest === undefined) throw tooManyCalls();
    this.give(oldest);
    oldest.cancel(
      new StatusError(Code.RESOURCE_EXHAUSTED, "too many calls from this address before signing in"),
    );
  }
}

function tooManyCalls(): StatusError {
  return new StatusError(Code.RESOURCE_EXHAUSTED, "too many calls in progress");
}
