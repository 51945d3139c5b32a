// Checks that the path a caller followed still leads to the inode of its command.
import { isGroveError } from "#base/errors.ts";
import { StaleAccessError } from "#storage/contract/inode.ts";
import { pathBelow } from "./share-rows.ts";
import type { DirectoryState } from "./unit-of-work.ts";

/**
 * Throws StaleAccessError when the path no longer leads to a name in a directory, whose chain ends with the
 * root's own.
 */
export function holdToPath(at: string | undefined, chain: readonly DirectoryState[], name: string): void {
  if (at !== undefined && pathBelow(chain, name) !== at) throw overtaken();
}

/**
 * The error to throw instead: an inode that is gone from a followed path was overtaken, and another may be
 * there.
 */
export function orOvertaken(error: unknown, at: string | undefined): unknown {
  return at !== undefined && isGroveError(error, "NO_SUCH_PATH") ? overtaken() : error;
}

const overtaken = (): StaleAccessError =>
  new StaleAccessError("what is to be changed was moved or removed; follow its path again");
