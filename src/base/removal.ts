// That a user is to go, or has gone: until when the files are kept, and whether the address is free again.
import { GroveError } from "./errors.ts";

/** The last moment that a date can be. */
const LAST_MOMENT_MS = 8_640_000_000_000_000;

/** What an administrator has decided about a user who is to go. */
export interface Removal {
  /** The moment from which the files are deleted, and with them all that others share with the address. */
  readonly dueAtMs: number;
  /** True where the address is free again: whoever comes with it inherits nothing. */
  readonly isReleased: boolean;
  /** The same moment of whoever had the address before, which was released then; absent for nobody. */
  readonly earlierDueAtMs?: number | undefined;
}

/** True once the files are to go. */
export function isDue({ dueAtMs }: Removal, nowMs: number): boolean {
  return nowMs >= dueAtMs;
}

/** Up to when all that concerns the address concerned somebody who is gone; undefined for nobody. */
export function goneUntilMs(removal: Removal | undefined, nowMs: number): number | undefined {
  return removal !== undefined && isDue(removal, nowMs) ? removal.dueAtMs : removal?.earlierDueAtMs;
}

/** True while nobody can come in by the address, and nothing new can be shared with it. */
export function isRetired(removal: Removal | undefined): boolean {
  return removal !== undefined && !removal.isReleased;
}

/** A removal as it may be kept and sent. Throws BAD_ARGUMENT where it is none, or who is to go is not locked out. */
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
