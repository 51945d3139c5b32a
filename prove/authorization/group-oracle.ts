// Who has which role in which group, a second time: from D33 alone, without the server's code.

/** A role, the weakest first. */
export const ROLES = ["read", "write", "manage"] as const;
export type Role = (typeof ROLES)[number];

/** A group; one that was deleted leaves its root behind. */
interface Group {
  exists: boolean;
  /** By username. */
  readonly hand: Map<string, Role>;
  /** By value of the claim. */
  readonly claims: Map<string, Role>;
}

/** What a person's token has said of groups. */
interface Said {
  readonly atSeconds: number;
  readonly values: readonly string[];
}

/** All groups by the owner of their root, and what tokens have said. */
export class GroupOracle {
  readonly #groups = new Map<string, Group>();
  readonly #said = new Map<string, Said>();

  /** A copy that changes by itself. */
  copy(): GroupOracle {
    const copy = new GroupOracle();
    for (const [owner, { exists, hand, claims }] of this.#groups)
      copy.#groups.set(owner, { exists, hand: new Map(hand), claims: new Map(claims) });
    for (const [user, said] of this.#said) copy.#said.set(user, said);
    return copy;
  }

  owners(): string[] {
    return [...this.#groups.keys()];
  }

  /** True for the root of a group that was deleted: neither roles, shares nor links open it. */
  isClosed(owner: string): boolean {
    return this.#groups.get(owner)?.exists === false;
  }

  /** The stronger one of a user's roles by hand and by claim; 0 for none, 3 for manage. */
  rank(user: string, owner: string): number {
    const group = this.#groups.get(owner);
    if (group?.exists !== true) return 0;
    const byClaim = this.valuesOf(user).map((value) => group.claims.get(value));
    const ranks = [group.hand.get(user), ...byClaim].map((role) => (role ? ROLES.indexOf(role) + 1 : 0));
    return Math.max(...ranks);
  }

  byHand(owner: string): string[] {
    return [...(this.#groups.get(owner)?.hand.keys() ?? [])];
  }

  claimsOf(owner: string): string[] {
    return [...(this.#groups.get(owner)?.claims.keys() ?? [])];
  }

  /** True once a token of this person has named a group. */
  hasSaid(user: string): boolean {
    return this.#said.has(user);
  }

  valuesOf(user: string): readonly string[] {
    return this.#said.get(user)?.values ?? [];
  }

  create(owner: string): void {
    this.#groups.set(owner, { exists: true, hand: new Map(), claims: new Map() });
  }

  delete(owner: string): void {
    this.#groups.set(owner, { exists: false, hand: new Map(), claims: new Map() });
  }

  give(owner: string, user: string, role: Role | undefined): void {
    const hand = this.#groups.get(owner)?.hand;
    if (role === undefined) hand?.delete(user);
    else hand?.set(user, role);
  }

  claim(owner: string, value: string, role: Role | undefined): void {
    const claims = this.#groups.get(owner)?.claims;
    if (role === undefined) claims?.delete(value);
    else claims?.set(value, role);
  }

  /**
   * A token's word, which counts unless a later token has spoken. Of its values those are kept that a group names
   * then: a claim that is added later counts from the next token on.
   */
  say(user: string, atSeconds: number, values: readonly string[]): void {
    const known = this.#said.get(user);
    if (known !== undefined && known.atSeconds > atSeconds) return;
    const named = new Set([...this.#groups.values()].flatMap(({ claims }) => [...claims.keys()]));
    this.#said.set(user, { atSeconds, values: values.filter((value) => named.has(value)) });
  }
}
