// The removal of a user: when the files are deleted, and whether the address is free again.
import { GroveError } from "./errors.ts";

/** An administrator's decision to remove a user. */
export interface Removal {
  /** The moment from which the user's files and all shares with the address are deleted. */
  readonly dueAtMs: number;
  /** True where the address is free again: a new user with it inherits nothing. */
  readonly isReleased: boolean;
}

/** True once the files are due for deletion. */
export function isDue({ dueAtMs }: Removal, nowMs: number): boolean {
  return nowMs >= dueAtMs;
}

/** True while the address admits no sign-in and no new shares. */
export function isRetired(removal: Removal | undefined): boolean {
  return removal !== undefined && !removal.isReleased;
}

/** The checked removal. Throws BAD_ARGUMENT for an invalid one, or a user who is not locked out. */
export function checkedRemoval(removal: Removal | undefined, isLockedOut: boolean): Removal | undefined {
  if (removal === undefined) return undefined;
  const { dueAtMs, isReleased } = removal;
  if (!Number.isSafeInteger(dueAtMs) || dueAtMs <= 0) {
    throw new GroveError("BAD_ARGUMENT", "that is no removal of a user");
  }
  if (!isReleased && !isLockedOut) {
    throw new GroveError(
      "BAD_ARGUMENT",
      "this user was removed: 'grove user remove' with --undo brings back who can be, with --release it frees the address of who is gone",
    );
  }
  return { dueAtMs, isReleased };
}
