// Files that only their owner may read: tokens, profiles, keys.
import { GroveError } from "#base/errors.ts";

/** Reads a file that must be the owner's alone; undefined when there is none. Throws BAD_ARGUMENT when group or others may read it. */
export async function readPrivateFile(path: string): Promise<string | undefined> {
  void path;
  throw new GroveError("NOT_IMPLEMENTED", "being built");
}

/** Replaces a file as a whole with mode 0600, making its folder with mode 0700 when there is none. */
export async function writePrivateFile(path: string, content: string | Uint8Array): Promise<void> {
  void path;
  void content;
  throw new GroveError("NOT_IMPLEMENTED", "being built");
}

/** Removes a file; one that is not there is no error. */
export async function removePrivateFile(path: string): Promise<void> {
  void path;
  throw new GroveError("NOT_IMPLEMENTED", "being built");
}
