// What administrators have decided about one user's right to come in, and which of two decisions counts.
import { hash } from "node:crypto";
import { GroveError } from "./errors.ts";
import { checkedHandOvers, type HandOver } from "./hand-over.ts";
import { USER_STATE_REASON_MAX_LENGTH, USER_STATES_PER_MESSAGE } from "./limits.ts";
import { canonicalUsername } from "./names.ts";
import { checkedRemoval, type Removal } from "./removal.ts";

/** A decision about one user. Of two about the same user the one with the higher version counts, wherever they meet. */
export interface UserState {
  readonly username: string;
  /** True for who is locked out. */
  readonly disabled: boolean;
  /** True where what this user shares is closed as well, for as long as the user is locked out. */
  readonly closesShares: boolean;
  /** 1 to 2^53 - 1; by custom the wall time in milliseconds of the decision, or one more than the version before. */
  readonly version: number;
  readonly reason: string;
  /** Username of the administrator, or "administrator" for the password. */
  readonly setBy: string;
  readonly setAtMs: number;
  /** ID tokens that were issued before open no session any more; 0 for none. */
  readonly tokensFromMs: number;
  /** The person behind the address, without `https://`; empty where nobody was known. Who comes as this person is meant too. */
  readonly issuer: string;
  readonly subject: string;
  /** To whom the user's root is handed over; absent for nobody. */
  readonly handOvers?: readonly HandOver[] | undefined;
  /** Set for a user who is to go, or has gone. */
  readonly removal?: Removal | undefined;
}

/** The decision that counts of two about one user. The same from whichever side it is asked, so that all come to the same. */
export function laterState(one: UserState, other: UserState): UserState {
  if (one.version !== other.version) return one.version > other.version ? one : other;
  if (one.disabled !== other.disabled) return one.disabled ? one : other;
  // One may have been filled in where the person was known.
  if ((one.subject === "") !== (other.subject === "")) return one.subject === "" ? other : one;
  return lineOf(one) >= lineOf(other) ? one : other;
}

/** What a decision says of the right to come in, as text to compare; of nothing decided: that everybody may. */
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

/** A decision as it may be kept and sent. Throws BAD_ARGUMENT. */
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

/** As many of them, from the first on, as one message takes; at least one where there is any. */
export function firstOfMessage(states: readonly UserState[]): UserState[] {
  let weight = 0;
  const beyond = states.findIndex(({ handOvers }) => {
    weight += 1 + (handOvers?.length ?? 0);
    return weight > USER_STATES_PER_MESSAGE;
  });
  return beyond < 0 ? [...states] : states.slice(0, beyond);
}

/** One line of text that people can read: no control characters, no more than so many. */
function isLine(text: string, maxLength: number): boolean {
  return text.length <= maxLength && text.isWellFormed() && !/\p{Cc}/u.test(text);
}

/** The same for the same decisions, wherever they are kept and in whatever order. */
export function digestOfStates(states: Iterable<UserState>): string {
  return hash("sha256", [...states].map(lineOf).toSorted().join("\n"), "hex");
}

/** The fields in one order, whoever has made the object: digests of all servers depend on it. */
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
