// Decisions about users as messages, and messages as decisions.
import { GroveError } from "#base/errors.ts";
import { checkedUserState, type UserState } from "#base/user-state.ts";
import type { UserState as UserStateMessage } from "./gen/grove/v1/common_pb.ts";

type Plain = Omit<UserStateMessage, "$typeName" | "$unknown">;

/** The message of a decision. */
export function userStateMessage(state: UserState): UserStateMessage {
  const { version, setAtMs, tokensFromMs, ...rest } = state;
  return {
    $typeName: "grove.v1.UserState",
    ...rest,
    version: BigInt(version),
    setAtMs: BigInt(setAtMs),
    tokensFromMs: BigInt(tokensFromMs),
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
  // The least version is put in for one that is to be chosen, so that the other fields are checked first.
  const wish = userStateOf({ ...message, setBy, setAtMs: BigInt(setAtMs), version: message.version || 1n });
  if (wish.disabled && wish.reason.trim() === "") {
    throw new GroveError("BAD_ARGUMENT", "locking a user out needs a reason");
  }
  if (message.version > 0n) return wish;
  return { ...wish, version: Math.max((known(wish.username)?.version ?? 0) + 1, setAtMs) };
}
