// All decisions of administrators about users that a server knows, and the check of sign-ins against them.
import { GroveError } from "#base/errors.ts";
import { type HandOver, isInForce } from "#base/hand-over.ts";
import { USER_STATES_MAX } from "#base/limits.ts";
import { goneUntilMs, isDue, isRetired } from "#base/removal.ts";
import { checkedUserState, digestOfStates, laterState, type UserState } from "#base/user-state.ts";
import { bareIssuer } from "#base/verified-identity.ts";
import { rejected } from "./claims.ts";

/** A user at sign-in. */
export interface Entrant {
  readonly username: string;
  readonly issuer: string;
  readonly subject: string;
}

/** A root that is handed over to a user. */
export interface Inheritance extends HandOver {
  readonly owner: string;
}

/** When what a user shows was made: an ID token's `iat`, in whole seconds, or the millisecond itself. */
export type MadeAt = number | { readonly exactMs: number };

/** An ID token's `iat` is in whole seconds. */
const ISSUED_AT_GRAIN_MS = 1_000;

/** The decisions, in memory. */
export class UserStates {
  readonly #byName = new Map<string, UserState>();
  /** Locked persons by issuer and subject, so that another address of theirs is refused too. */
  readonly #lockedPersons = new Map<string, UserState>();
  /** By user: the roots that are handed over to that user. */
  readonly #inherited = new Map<string, Inheritance[]>();
  #digest: string | undefined;

  constructor(states: Iterable<UserState> = []) {
    for (const state of states) this.#byName.set(state.username, state);
    this.#collect();
  }

  /** Number of users with a decision. */
  get size(): number {
    return this.#byName.size;
  }

  /** The same on every server with the same decisions. */
  get digest(): string {
    this.#digest ??= digestOfStates(this.#byName.values());
    return this.#digest;
  }

  /** All decisions, by username. */
  list(): UserState[] {
    return [...this.#byName.values()].toSorted((a, b) => (a.username < b.username ? -1 : 1));
  }

  /** At most so many, by username, after a given one. */
  page(after: string, limit: number): UserState[] {
    return this.list()
      .filter(({ username }) => username > after)
      .slice(0, limit);
  }

  /** The decision about a user; undefined when there is none. */
  find(username: string): UserState | undefined {
    return this.#byName.get(username);
  }

  /**
   * The decisions that would take effect here, in their effective form: newer than the known one, or the same
   * with more fields. Throws BAD_ARGUMENT for an invalid decision, OVERLOADED when there would be too many.
   */
  news(states: Iterable<UserState>): UserState[] {
    const news = new Map<string, UserState>();
    let added = 0;
    for (const unchecked of states) {
      const state = checkedUserState(unchecked);
      const known = news.get(state.username) ?? this.#byName.get(state.username);
      const later = known === undefined ? state : laterState(known, state);
      if (later === known) continue;
      if (known === undefined) added++;
      news.set(state.username, later);
    }
    if (this.#byName.size + added > USER_STATES_MAX) {
      throw new GroveError(
        "OVERLOADED",
        `there are decisions about ${USER_STATES_MAX} users, the most that are kept`,
        {
          metadata: { limit: String(USER_STATES_MAX) },
        },
      );
    }
    return [...news.values()];
  }

  /** Applies decisions returned by `news`. */
  take(news: readonly UserState[]): void {
    if (news.length === 0) return;
    for (const state of news) this.#byName.set(state.username, state);
    this.#digest = undefined;
    this.#collect();
  }

  /** The decision that locks a user out, by name or as a person; undefined for an admitted user. */
  lockOf({ username, issuer, subject }: Entrant): UserState | undefined {
    const state = this.#byName.get(username);
    if (state?.disabled === true) return state;
    return subject === "" ? undefined : this.#lockedPersons.get(personKey(issuer, subject));
  }

  /** True where the user's shares are closed, also because the files are due for removal at that moment. */
  closesShares(owner: string, nowMs: number): boolean {
    const state = this.#byName.get(owner);
    if (state?.disabled !== true) return false;
    const { closesShares, removal } = state;
    return closesShares || (removal !== undefined && isRetired(removal) && isDue(removal, nowMs));
  }

  /** True where the user was removed and the address admits no sign-in. */
  isRetired(username: string): boolean {
    return isRetired(this.#byName.get(username)?.removal);
  }

  /**
   * Throws USER_DISABLED for a locked user, and TOKEN_REJECTED for an ID token, or another credential, from before
   * an administrator ended all sessions. The decision's reason is never included: it is for administrators only.
   */
  requireEntry(entrant: Entrant, made?: MadeAt): void {
    const lock = this.lockOf(entrant);
    if (lock !== undefined) throw lockedOut(lock);
    const fromMs = this.#byName.get(entrant.username)?.tokensFromMs ?? 0;
    const endMs = typeof made === "number" ? made + ISSUED_AT_GRAIN_MS : made?.exactMs;
    if (endMs !== undefined && endMs <= fromMs) {
      throw rejected("iat", "is before an administrator ended your sessions; sign in again");
    }
  }

  /** Users to whom a user's root is handed over at a moment. */
  handOversOf(owner: string, nowMs: number): HandOver[] {
    const handOvers = this.#byName.get(owner)?.handOvers ?? [];
    return handOvers.filter((handOver) => this.#holds(owner, handOver, nowMs));
  }

  /**
   * The handing over of a root to a user at a moment; undefined for none. The cost is independent of the
   * owner (D1).
   */
  handOverTo(user: string, owner: string, nowMs: number): HandOver | undefined {
    return this.inheritedBy(user, nowMs).find((inheritance) => inheritance.owner === owner);
  }

  /** The roots that are handed over to a user at a moment, by owner. */
  inheritedBy(user: string, nowMs: number): Inheritance[] {
    const inherited = this.#inherited.get(user) ?? [];
    return inherited.filter((inheritance) => this.#holds(inheritance.owner, inheritance, nowMs));
  }

  /** True for a user who was removed after a moment: the address may belong to another person now. */
  isGoneSince(username: string, setAtMs: number, nowMs: number): boolean {
    const untilMs = goneUntilMs(this.#byName.get(username)?.removal, nowMs);
    return untilMs !== undefined && setAtMs <= untilMs;
  }

  #holds(owner: string, handOver: HandOver, nowMs: number): boolean {
    const isOver = (username: string): boolean => this.isGoneSince(username, handOver.setAtMs, nowMs);
    return isInForce(handOver, nowMs) && !isOver(owner) && !isOver(handOver.to);
  }

  #collect(): void {
    this.#lockedPersons.clear();
    this.#inherited.clear();
    for (const state of this.#byName.values()) {
      for (const handOver of state.handOvers ?? []) {
        const inherited = this.#inherited.get(handOver.to) ?? [];
        this.#inherited.set(handOver.to, [...inherited, { ...handOver, owner: state.username }]);
      }
      if (state.disabled && state.subject !== "") {
        this.#lockedPersons.set(personKey(state.issuer, state.subject), state);
      }
    }
    for (const inherited of this.#inherited.values()) inherited.sort((a, b) => (a.owner < b.owner ? -1 : 1));
  }
}

/** The refusal of a locked user. */
export function lockedOut({ removal }: Pick<UserState, "removal"> = {}): GroveError {
  if (removal !== undefined) {
    const until = new Date(removal.dueAtMs).toISOString();
    return new GroveError(
      "USER_DISABLED",
      `this address is retired: its user was removed by an administrator, and the files are kept until ${until}`,
      { metadata: { removed_at_ms: String(removal.dueAtMs) } },
    );
  }
  return new GroveError("USER_DISABLED", "this account is locked by an administrator");
}

function personKey(issuer: string, subject: string): string {
  return `${bareIssuer(issuer)} ${subject}`;
}
