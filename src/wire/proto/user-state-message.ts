// Converts user states to messages and back, and builds the state that an administrator requests.
import { GroveError } from "#base/errors.ts";
import type { HandOver } from "#base/hand-over.ts";
import { REMOVAL_GRACE_MS } from "#base/limits.ts";
import { canonicalUsername } from "#base/names.ts";
import { isDue, type Removal } from "#base/removal.ts";
import { checkedUserState, entryOf, type UserState } from "#base/user-state.ts";
import type { HandOver as HandOverMessage, UserState as UserStateMessage } from "./gen/grove/v1/common_pb.ts";

/** Allowed difference between the administrator's clock and the server's in the check of the grace time. */
const REMOVAL_CLOCK_SLACK_MS = 24 * 60 * 60_000;

type Plain = Omit<UserStateMessage, "$typeName" | "$unknown">;

/** The message of a decision. */
export function userStateMessage(state: UserState): UserStateMessage {
  const { version, setAtMs, tokensFromMs, handOvers = [], removal, ...rest } = state;
  return {
    $typeName: "grove.v1.UserState",
    ...rest,
    version: BigInt(version),
    setAtMs: BigInt(setAtMs),
    tokensFromMs: BigInt(tokensFromMs),
    handOvers: handOvers.map(handOverMessage),
    removeAtMs: BigInt(removal?.dueAtMs ?? 0),
    released: removal?.isReleased === true,
    removedBeforeMs: BigInt(removal?.earlierDueAtMs ?? 0),
  };
}

/** The message of a hand-over. */
export function handOverMessage(handOver: HandOver): HandOverMessage {
  const { setAtMs, untilMs, ...rest } = handOver;
  return {
    $typeName: "grove.v1.HandOver",
    ...rest,
    setAtMs: BigInt(setAtMs),
    untilMs: BigInt(untilMs),
  };
}

/** The state in a message. Throws BAD_ARGUMENT for an invalid one. */
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
    removal: removalOf(message),
  });
}

function removalOf({ removeAtMs, released, removedBeforeMs }: Plain): Removal | undefined {
  if (removeAtMs === 0n) return undefined;
  const earlier = removedBeforeMs === 0n ? {} : { earlierDueAtMs: Number(removedBeforeMs) };
  return { dueAtMs: Number(removeAtMs), isReleased: released, ...earlier };
}

/** An administrator's request with its author and time, and the lookup of known states. */
export interface UserStateChangeRequest {
  readonly message: Plain | undefined;
  readonly setBy: string;
  readonly nowMs: number;
  readonly known: (username: string) => UserState | undefined;
  /** True for a group's principal, and a user with a role in that group now. */
  readonly isMember: (username: string, principal: string) => boolean;
}

/**
 * The user state of an administrator's request. The server sets its author and time; without a version it is
 * newer than the known state. Throws BAD_ARGUMENT.
 */
export function requestedUserState(request: UserStateChangeRequest): UserState {
  const { message, setBy, nowMs, known, isMember } = request;
  if (message === undefined) throw new GroveError("BAD_ARGUMENT", "state is missing");
  const setAtMs = Math.trunc(nowMs);
  const before = known(canonicalUsername(message.username));
  const by = { before, setBy, setAtMs, isMember };
  const handOvers = message.handOvers.map((requested) => stamped(requested, by));
  // A missing version becomes the lowest one, so that the other fields are checked first.
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
  requireGrace(asked.removal, before?.removal, setAtMs);
  // A change of the root alone keeps the author and time of the lock.
  const requested =
    before !== undefined && before.setAtMs > 0 && entryOf(before) === entryOf(asked)
      ? { ...asked, setBy: before.setBy, setAtMs: before.setAtMs }
      : asked;
  if (message.version > 0n) return requested;
  return { ...requested, version: Math.max((before?.version ?? 0) + 1, setAtMs) };
}

/**
 * A hand-over with author and time: the known ones where it is unchanged, else this administrator now. Throws
 * BAD_ARGUMENT for a new one to a group of the administrator's own.
 */
function stamped(
  requested: HandOverMessage,
  by: Pick<UserStateChangeRequest, "isMember" | "setBy"> & {
    readonly before: UserState | undefined;
    readonly setAtMs: number;
  },
): HandOverMessage {
  const to = canonicalUsername(requested.to);
  const same = by.before?.handOvers?.find(
    (known) =>
      known.to === to &&
      known.mayDelete === requested.mayDelete &&
      known.reason === requested.reason &&
      BigInt(known.untilMs) === requested.untilMs,
  );
  if (same === undefined && by.isMember(by.setBy, to)) {
    throw new GroveError(
      "BAD_ARGUMENT",
      "nobody hands a root over to a group of their own; another administrator or the password can",
    );
  }
  const { setBy, setAtMs } = same ?? by;
  return { ...requested, to, setBy, setAtMs: BigInt(setAtMs) };
}

/** Requires the grace time of a removal, and keeps a completed removal. Throws BAD_ARGUMENT. */
function requireGrace(requested: Removal | undefined, before: Removal | undefined, nowMs: number): void {
  const isGone = before !== undefined && isDue(before, nowMs);
  if (requested?.dueAtMs === before?.dueAtMs) {
    if (requested?.earlierDueAtMs !== before?.earlierDueAtMs) throw notForgotten();
    if (requested?.isReleased !== true || isGone) return;
    throw new GroveError("BAD_ARGUMENT", "the files are still there: undo the removal instead");
  }
  // Undone: the address is again what it was when its next user had come.
  if (!isGone && requested?.isReleased === true && requested.dueAtMs === before?.earlierDueAtMs) return;
  if (isGone && !before.isReleased) {
    throw new GroveError(
      "BAD_ARGUMENT",
      "the files of this user are gone: the address can be released, the user does not come back",
    );
  }
  if (requested === undefined) {
    // What was released is remembered, so that a node that comes late still removes what was before.
    if (isGone || before?.earlierDueAtMs !== undefined)
      throw new GroveError("BAD_ARGUMENT", "that a user was removed is not forgotten");
    return;
  }
  if (requested.isReleased || requested.dueAtMs < nowMs + REMOVAL_GRACE_MS - REMOVAL_CLOCK_SLACK_MS) {
    throw new GroveError("BAD_ARGUMENT", "the files of a removed user are kept for 30 days");
  }
  if (before?.isReleased === true && requested.earlierDueAtMs !== before.dueAtMs) throw notForgotten();
}

function notForgotten(): GroveError {
  return new GroveError("BAD_ARGUMENT", "that the address was another user's before is not forgotten");
}
