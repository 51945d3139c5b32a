// A budget shared by parties: each has a maximum share, and a spare part is for parties with little.
import { FairQueue } from "#base/fair-queue.ts";
import { type MessageBytes, tooManyLarge } from "./frames.ts";
import { BYTES_OF_PARTY, MODEST_BYTES, SPARE_BYTES } from "./limits.ts";

/** Division of a budget, in its own unit: bytes, calls. */
export interface Shares {
  readonly total: number;
  /** The most that one party may hold. */
  readonly perParty: number;
  /** The part of the total reserved for parties that hold no more than `modest`. */
  readonly spare: number;
  readonly modest: number;
}

/** Shares of the bytes of large messages. */
export function messageBytes(total: number): Shares {
  return {
    total,
    perParty: total * BYTES_OF_PARTY,
    spare: total * SPARE_BYTES,
    modest: total * MODEST_BYTES,
  };
}

/** A part of the budget that a party waits for. */
interface Claim {
  readonly party: string;
  readonly amount: number;
  readonly granted: () => void;
}

/** Holdings of one budget by party. */
export class SharedBudget {
  readonly #shares: Shares;
  readonly #held = new Map<string, number>();
  readonly #claims = new FairQueue<Claim>();
  #used = 0;

  constructor(shares: Shares) {
    this.#shares = shares;
  }

  /** Sum of all parties' holdings. */
  get used(): number {
    return this.#used;
  }

  heldBy(party: string): number {
    return this.#held.get(party) ?? 0;
  }

  /** Takes a part; returns false and takes nothing where the party's share or the budget ends. */
  take(party: string, amount: number): boolean {
    if (!this.#fits(party, amount)) return false;
    this.#add(party, amount);
    return true;
  }

  /**
   * Takes a part now and returns undefined; or takes it when there is room, parties in turn, and calls
   * `granted`. Then it returns a function that cancels the claim.
   */
  claim(party: string, amount: number, granted: () => void): (() => void) | undefined {
    // Earlier claims of the party go first.
    if (!this.#claims.has(party) && this.take(party, amount)) return undefined;
    const claim: Claim = { party, amount, granted };
    this.#claims.push(party, claim);
    return () => void this.#claims.remove(party, claim);
  }

  /** Gives a part back, and passes it to waiting claims. */
  give(party: string, amount: number): void {
    if (amount === 0) return;
    this.#add(party, -amount);
    for (;;) {
      const next = this.#claims.shift((claim) => this.#fits(claim.party, claim.amount));
      if (next === undefined) return;
      this.#add(next.party, next.amount);
      next.granted();
    }
  }

  #fits(party: string, amount: number): boolean {
    const { total, perParty, spare, modest } = this.#shares;
    const own = this.heldBy(party) + amount;
    return own <= perParty && this.#used + amount <= (own <= modest ? total : total - spare);
  }

  #add(party: string, amount: number): void {
    this.#used += amount;
    const own = this.heldBy(party) + amount;
    if (own === 0) this.#held.delete(party);
    else this.#held.set(party, own);
  }
}

/** One party's holdings of a budget of message bytes. */
export class PartyBytes implements MessageBytes {
  readonly #budget: SharedBudget;
  readonly #party: string;

  constructor(budget: SharedBudget, party: string) {
    this.#budget = budget;
    this.#party = party;
  }

  take(bytes: number): void {
    if (!this.#budget.take(this.#party, bytes)) throw tooManyLarge();
  }

  give(bytes: number): void {
    this.#budget.give(this.#party, bytes);
  }

  claim(bytes: number, granted: () => void): (() => void) | undefined {
    return this.#budget.claim(this.#party, bytes, granted);
  }
}
