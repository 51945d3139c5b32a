// An administrator's grant of one user's whole root to another user, for a time and with a reason.
import { GroveError } from "./errors.ts";
import { HAND_OVERS_PER_USER, USER_STATE_REASON_MAX_LENGTH } from "./limits.ts";
import { canonicalUsername } from "./names.ts";

/** The longest term. */
const HAND_OVER_MAX_MS = 400 * 24 * 60 * 60_000;

/** A grant of the whole root: read and write, and optionally delete. */
export interface HandOver {
  /** Username of the receiver. */
  readonly to: string;
  readonly mayDelete: boolean;
  /** Shown to both users. */
  readonly reason: string;
  /** Username of the administrator, or "administrator" for the password. */
  readonly setBy: string;
  readonly setAtMs: number;
  /** Its end by the wall clock, exclusive. */
  readonly untilMs: number;
}

/** True until its end. */
export function isInForce({ untilMs }: Pick<HandOver, "untilMs">, nowMs: number): boolean {
  return nowMs < untilMs;
}

/** The checked grants of one user, in order of receiver; undefined for none. Throws BAD_ARGUMENT. */
export function checkedHandOvers(
  owner: string,
  handOvers: readonly HandOver[] | undefined,
): readonly HandOver[] | undefined {
  if (handOvers === undefined || handOvers.length === 0) return undefined;
  if (handOvers.length > HAND_OVERS_PER_USER) {
    throw new GroveError(
      "BAD_ARGUMENT",
      `a root is handed over to at most ${HAND_OVERS_PER_USER} users; end another one first`,
    );
  }
  const checked = handOvers.map((handOver) => checkedHandOver(owner, handOver));
  if (new Set(checked.map(({ to }) => to)).size < checked.length) {
    throw new GroveError("BAD_ARGUMENT", "a root is handed over to each user once");
  }
  return checked.toSorted((a, b) => (a.to < b.to ? -1 : 1));
}

function checkedHandOver(owner: string, handOver: HandOver): HandOver {
  const { mayDelete, reason, setBy, setAtMs, untilMs } = handOver;
  const to = canonicalUsername(handOver.to);
  if (to === owner) throw new GroveError("BAD_ARGUMENT", "nobody's root is handed over to themselves");
  if (to === setBy) {
    throw new GroveError(
      "BAD_ARGUMENT",
      "nobody hands a root over to themselves; another administrator or the password can",
    );
  }
  const isLine = (text: string, maxLength: number): boolean =>
    text.trim() !== "" && text.length <= maxLength && text.isWellFormed() && !/\p{Cc}/u.test(text);
  if (!isLine(reason, USER_STATE_REASON_MAX_LENGTH)) {
    throw new GroveError(
      "BAD_ARGUMENT",
      `handing a root over needs a reason, one line of at most ${USER_STATE_REASON_MAX_LENGTH} characters`,
    );
  }
  const isWhen = [setAtMs, untilMs].every((ms) => Number.isSafeInteger(ms) && ms >= 0);
  if (!isLine(setBy, 1_024) || !isWhen) {
    throw new GroveError("BAD_ARGUMENT", "that is no handing over of a root");
  }
  if (untilMs <= setAtMs || untilMs - setAtMs > HAND_OVER_MAX_MS) {
    throw new GroveError("BAD_ARGUMENT", "handing a root over needs an end that is to come, within 400 days");
  }
  return { to, mayDelete, reason, setBy, setAtMs, untilMs };
}
