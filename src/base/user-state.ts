// Administrators' decisions about a user's right to sign in, and which of two decisions counts.
import { hash } from "node:crypto";
import { GroveError } from "./errors.ts";
import { checkedHandOvers, type HandOver } from "./hand-over.ts";
import { USER_STATE_REASON_MAX_LENGTH, USER_STATES_PER_MESSAGE } from "./limits.ts";
import { canonicalUsername } from "./names.ts";
import { checkedRemoval, type Removal } from "./removal.ts";

/**
 * A decision about one user. Of two decisions about a user the one with the higher version counts everywhere.
 */
export interface UserState {
  readonly username: string;
  /** True for a user who is locked out. */
  readonly disabled: boolean;
  /** True where the user's shares are closed too while the user is locked out. */
  readonly closesShares: boolean;
  /** 1 to 2^53 - 1; usually the decision's wall time in milliseconds, or one more than the version before. */
  readonly version: number;
  readonly reason: string;
  /** Username of the administrator, or "administrator" for the password. */
  readonly setBy: string;
  readonly setAtMs: number;
  /** ID tokens issued before this moment open no session; 0 for none. */
  readonly tokensFromMs: number;
  /**
   * The person behind the address, without `https://`; empty if unknown. Their other addresses are affected
   * too.
   */
  readonly issuer: string;
  readonly subject: string;
  /** Receivers of the user's root; absent for none. */
  readonly handOvers?: readonly HandOver[] | undefined;
  /** Set for a user with a planned or completed removal. */
  readonly removal?: Removal | undefined;
}

/** The decision that counts of two about one user. Arguments may be swapped, so that all servers agree. */
export function laterState(one: UserState, other: UserState): UserState {
  if (one.version !== other.version) return one.version > other.version ? one : other;
  if (one.disabled !== other.disabled) return one.disabled ? one : other;
  // One may have been completed where the person was known.
  if ((one.subject === "") !== (other.subject === "")) return one.subject === "" ? other : one;
  return lineOf(one) >= lineOf(other) ? one : other;
}

/** A decision's effect on the right to sign in, as text for comparison; undefined means it is granted. */
export function entryOf(state: UserState | undefined): string {
  const { disabled = false, closesShares = false, tokensFromMs = 0, reason = "", removal } = state ?? {};
  return JSON.stringify([
    disabled,
    closesShares,
    tokensFromMs,
    reason,
    removal?.dueAtMs,
    removal?.isReleased,
  ]);
}

/** The checked decision. Throws BAD_ARGUMENT. */
export function checkedUserState(state: UserState): UserState {
  const { version, setAtMs, tokensFromMs, reason, setBy, issuer, subject } = state;
  const numbersHold = [version, setAtMs, tokensFromMs].every((n) => Number.isSafeInteger(n) && n >= 0);
  const wordsHold =
    isLine(reason, USER_STATE_REASON_MAX_LENGTH) &&
    [setBy, issuer, subject].every((word) => isLine(word, 1_024)) &&
    setBy !== "";
  if (!numbersHold || version === 0 || !wordsHold) {
    throw new GroveError("BAD_ARGUMENT", "that is no decision about a user");
  }
  const { disabled, closesShares } = state;
  const username = canonicalUsername(state.username);
  const handOvers = checkedHandOvers(username, state.handOvers);
  const removal = checkedRemoval(state.removal, disabled);
  return {
    username,
    disabled,
    closesShares,
    version,
    reason,
    setBy,
    setAtMs,
    tokensFromMs,
    issuer,
    subject,
    ...(handOvers === undefined ? {} : { handOvers }),
    ...(removal === undefined ? {} : { removal }),
  };
}

/** The first decisions that fit into one message; at least one where there are any. */
export function firstOfMessage(states: readonly UserState[]): UserState[] {
  let weight = 0;
  const beyond = states.findIndex(({ handOvers }) => {
    weight += 1 + (handOvers?.length ?? 0);
    return weight > USER_STATES_PER_MESSAGE;
  });
  return beyond < 0 ? [...states] : states.slice(0, beyond);
}

/** One line of printable text within the length, without control characters. */
function isLine(text: string, maxLength: number): boolean {
  return text.length <= maxLength && text.isWellFormed() && !/\p{Cc}/u.test(text);
}

/** A digest of decisions that does not depend on their place or order. */
export function digestOfStates(states: Iterable<UserState>): string {
  return hash("sha256", [...states].map(lineOf).toSorted().join("\n"), "hex");
}

/** The fields in a fixed order: the digests of all servers depend on it. */
const FIELDS = [
  "username",
  "disabled",
  "closesShares",
  "version",
  "reason",
  "setBy",
  "setAtMs",
  "tokensFromMs",
  "issuer",
  "subject",
] as const satisfies readonly (keyof UserState)[];

function removalFields({ dueAtMs, isReleased, earlierDueAtMs }: Removal): (number | boolean)[] {
  return [dueAtMs, isReleased, ...(earlierDueAtMs === undefined ? [] : [earlierDueAtMs])];
}

function lineOf(state: UserState): string {
  const handOvers = state.handOvers?.map(({ to, mayDelete, reason, setBy, setAtMs, untilMs }) => [
    to,
    mayDelete,
    reason,
    setBy,
    setAtMs,
    untilMs,
  ]);
  return JSON.stringify([
    ...FIELDS.map((field) => state[field]),
    ...(handOvers === undefined || handOvers.length === 0 ? [] : [handOvers]),
    ...(state.removal === undefined ? [] : removalFields(state.removal)),
  ]);
}
