// What commands on entries of directories share: whom a new one belongs to, and the refusal of a taken name.
import { GroveError } from "#base/errors.ts";
import type { ChangeFields } from "#storage/metadata/change-messages.ts";

/** Username of the creator, or null for the owner. */
export function authorOf(change: ChangeFields): string | null {
  return change.by === change.owner ? null : change.by;
}

/** The refusal of a taken name. */
export function pathExists(): GroveError {
  return new GroveError("PATH_EXISTS", "the name is taken already");
}
