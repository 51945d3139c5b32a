// Whether the path that a caller followed still leads to what is to be changed: commands name inodes, and callers paths.
import { isGroveError } from "#base/errors.ts";
import { StaleAccessError } from "#storage/contract/inode.ts";
import { pathBelow } from "./share-rows.ts";
import type { DirectoryState } from "./unit-of-work.ts";

/** Throws StaleAccessError when a name in a directory, whose chain ends with the root's own, is not what the path leads to (any more). */
export function holdToPath(at: string | undefined, chain: readonly DirectoryState[], name: string): void {
  if (at !== undefined && pathBelow(chain, name) !== at) throw overtaken();
}

/**
 * What to throw instead of an error: where a path was followed to an inode that is gone, something came between, and may have put another
 * one there.
 */
export function orOvertaken(error: unknown, at: string | undefined): unknown {
  return at !== undefined && isGroveError(error, "NO_SUCH_PATH") ? overtaken() : error;
}

const overtaken = (): StaleAccessError =>
  new StaleAccessError("what is to be changed was moved or removed; follow its path again");
