// What commands on entries share: whom a new one belongs to, the version it must have, refusals.
import { GroveError } from "#base/errors.ts";
import { etagOf } from "#storage/contract/inode.ts";
import type { ChangeFields } from "#storage/metadata/change-messages.ts";
import { type InodeRow, isDirectory } from "#storage/metadata/inode-rows.ts";
import type { Ledger } from "#storage/metadata/unit-of-work.ts";

/** Username of the creator, or null for the owner. */
export function authorOf(change: ChangeFields): string | null {
  return change.by === change.owner ? null : change.by;
}

/** The refusal of a taken name. */
export function pathExists(): GroveError {
  return new GroveError("PATH_EXISTS", "the name is taken already");
}

/** Throws IS_DIRECTORY or NOT_DIRECTORY for what replaces something of another kind for good. */
export function requireSameKind(source: InodeRow, target: InodeRow): void {
  if (isDirectory(target) && !isDirectory(source)) {
    throw new GroveError("IS_DIRECTORY", "a file cannot replace a directory");
  }
  if (!isDirectory(target) && isDirectory(source)) {
    throw new GroveError("NOT_DIRECTORY", "a directory cannot replace a file");
  }
}

/** Throws BAD_ARGUMENT where what is to make way has the source below it. */
export function requireOutside(aboveSource: readonly Pick<InodeRow, "id">[], target: InodeRow): void {
  if (!aboveSource.some(({ id }) => id === target.id)) return;
  throw new GroveError("BAD_ARGUMENT", "an entry cannot take the place of a directory that it lies in");
}

/** The refusal of a copy that outgrows its claim. */
export function grown(): GroveError {
  return new GroveError("OVERLOADED", "the source grew while it was copied; try again");
}

/** Throws ETAG_MISMATCH unless the entry is there at the expected version; undefined expects none. */
export function requireVersion(ledger: Ledger, row: InodeRow | undefined, ifMatch: string | undefined): void {
  if (ifMatch === undefined) return;
  // A directory's row is written at the end of the unit of work alone.
  const current = row !== undefined && isDirectory(row) ? ledger.directory(row.id) : row;
  const etag = current === undefined ? undefined : etagOf(current);
  if (etag === ifMatch) return;
  throw new GroveError("ETAG_MISMATCH", "what is there is not at the expected version any more", {
    metadata: etag === undefined ? {} : { etag },
  });
}
