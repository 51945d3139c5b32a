// That a user is to go, or has gone: until when the files are kept, and whether the address is free again.
import { GroveError } from "./errors.ts";

/** What an administrator has decided about a user who is to go. */
export interface Removal {
  /** The moment from which the files are deleted, and with them all that others share with the address. */
  readonly dueAtMs: number;
  /** True where the address is free again: whoever comes with it inherits nothing. */
  readonly isReleased: boolean;
}

/** True once the files are to go. */
export function isDue({ dueAtMs }: Removal, nowMs: number): boolean {
  return nowMs >= dueAtMs;
}

/** True while nobody can come in by the address, and nothing new can be shared with it. */
export function isRetired(removal: Removal | undefined): boolean {
  return removal !== undefined && !removal.isReleased;
}

/** A removal as it may be kept and sent. Throws BAD_ARGUMENT where it is none, or who is to go is not locked out. */
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
