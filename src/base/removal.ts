// The removal of a user: when the files are deleted, and whether the address is free again.
import { GroveError } from "./errors.ts";
import { LAST_MOMENT_MS } from "./limits.ts";

/** An administrator's decision to remove a user. */
export interface Removal {
  /** The moment from which the user's files and all shares with the address are deleted. */
  readonly dueAtMs: number;
  /** True where the address is free again: a new user with it inherits nothing. */
  readonly isReleased: boolean;
  /** The same moment of whoever had the address before, which was released then; absent for nobody. */
  readonly earlierDueAtMs?: number | undefined;
}

/** True once the files are due for deletion. */
export function isDue({ dueAtMs }: Removal, nowMs: number): boolean {
  return nowMs >= dueAtMs;
}

/** Up to when all that concerns the address concerned somebody who is gone; undefined for nobody. */
export function goneUntilMs(removal: Removal | undefined, nowMs: number): number | undefined {
  return removal !== undefined && isDue(removal, nowMs) ? removal.dueAtMs : removal?.earlierDueAtMs;
}

/** True while the address admits no sign-in and no new shares. */
export function isRetired(removal: Removal | undefined): boolean {
  return removal !== undefined && !removal.isReleased;
}

/** The checked removal. Throws BAD_ARGUMENT for an invalid one, or a user who is not locked out. */
export function checkedRemoval(removal: Removal | undefined, isLockedOut: boolean): Removal | undefined {
  if (removal === undefined) return undefined;
  const { dueAtMs, isReleased, earlierDueAtMs } = removal;
  const isMoment = (ms: number): boolean => Number.isSafeInteger(ms) && ms > 0 && ms <= LAST_MOMENT_MS;
  if (!isMoment(dueAtMs) || (earlierDueAtMs !== undefined && !isMoment(earlierDueAtMs))) {
    throw new GroveError("BAD_ARGUMENT", "that is no removal of a user");
  }
  if (!isReleased && !isLockedOut) {
    throw new GroveError(
      "BAD_ARGUMENT",
      "this user was removed: 'grove user remove' with --undo brings back who can be, with --release it frees the address of who is gone",
    );
  }
  return { dueAtMs, isReleased, ...(earlierDueAtMs === undefined ? {} : { earlierDueAtMs }) };
}
