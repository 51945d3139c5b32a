// Decisions about users as messages, and messages as decisions.
import { GroveError } from "#base/errors.ts";
import type { HandOver } from "#base/hand-over.ts";
import { canonicalUsername } from "#base/names.ts";
import { checkedUserState, entryOf, type UserState } from "#base/user-state.ts";
import type { HandOver as HandOverMessage, UserState as UserStateMessage } from "./gen/grove/v1/common_pb.ts";

type Plain = Omit<UserStateMessage, "$typeName" | "$unknown">;

/** The message of a decision. */
export function userStateMessage(state: UserState): UserStateMessage {
  const { version, setAtMs, tokensFromMs, handOvers = [], ...rest } = state;
  return {
    $typeName: "grove.v1.UserState",
    ...rest,
    version: BigInt(version),
    setAtMs: BigInt(setAtMs),
    tokensFromMs: BigInt(tokensFromMs),
    handOvers: handOvers.map(handOverMessage),
  };
}

/** The message of a handing over. */
export function handOverMessage(handOver: HandOver): HandOverMessage {
  const { setAtMs, untilMs, ...rest } = handOver;
  return {
    $typeName: "grove.v1.HandOver",
    ...rest,
    setAtMs: BigInt(setAtMs),
    untilMs: BigInt(untilMs),
  };
}

/** The decision that a message holds. Throws BAD_ARGUMENT for what is none. */
export function userStateOf(message: Plain): UserState {
  const { username, disabled, closesShares, reason, setBy, issuer, subject } = message;
  return checkedUserState({
    username,
    disabled,
    closesShares,
    version: Number(message.version),
    reason,
    setBy,
    setAtMs: Number(message.setAtMs),
    tokensFromMs: Number(message.tokensFromMs),
    issuer,
    subject,
    handOvers: message.handOvers.map(({ to, mayDelete, reason: why, setBy: by, setAtMs, untilMs }) => ({
      to,
      mayDelete,
      reason: why,
      setBy: by,
      setAtMs: Number(setAtMs),
      untilMs: Number(untilMs),
    })),
  });
}

/** What an administrator wants, of whom, when and in place of what. */
export interface Wish {
  readonly message: Plain | undefined;
  readonly setBy: string;
  readonly nowMs: number;
  readonly known: (username: string) => UserState | undefined;
}

/**
 * The decision that an administrator's request asks for: who decides and when is not the request's to say, and without a version it is newer
 * than what is known. Throws BAD_ARGUMENT.
 */
export function wishedUserState({ message, setBy, nowMs, known }: Wish): UserState {
  if (message === undefined) throw new GroveError("BAD_ARGUMENT", "state is missing");
  const setAtMs = Math.trunc(nowMs);
  const before = known(canonicalUsername(message.username));
  const handOvers = message.handOvers.map((wished) => stamped(wished, { before, setBy, setAtMs }));
  // The least version is put in for one that is to be chosen, so that the other fields are checked first.
  const asked = userStateOf({
    ...message,
    handOvers,
    setBy,
    setAtMs: BigInt(setAtMs),
    version: message.version || 1n,
  });
  if (asked.disabled && asked.reason.trim() === "") {
    throw new GroveError("BAD_ARGUMENT", "locking a user out needs a reason");
  }
  // Who was locked out, by whom and when, is not said anew by what concerns the root alone.
  const wish =
    before !== undefined && before.setAtMs > 0 && entryOf(before) === entryOf(asked)
      ? { ...asked, setBy: before.setBy, setAtMs: before.setAtMs }
      : asked;
  if (message.version > 0n) return wish;
  return { ...wish, version: Math.max((before?.version ?? 0) + 1, setAtMs) };
}

/** A handing over with who decided it and when: as it was known where it is the same, this administrator now where it is not. */
function stamped(
  wished: HandOverMessage,
  by: { readonly before: UserState | undefined; readonly setBy: string; readonly setAtMs: number },
): HandOverMessage {
  const to = canonicalUsername(wished.to);
  const same = by.before?.handOvers?.find(
    (known) =>
      known.to === to &&
      known.mayDelete === wished.mayDelete &&
      known.reason === wished.reason &&
      BigInt(known.untilMs) === wished.untilMs,
  );
  const { setBy, setAtMs } = same ?? by;
  return { ...wished, to, setBy, setAtMs: BigInt(setAtMs) };
}
