// A lock that ends with the process that holds it, whatever ends that process.
import { closeSync, existsSync, openSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { GroveError } from "#base/errors.ts";

/**
 * Takes the lock of a file, making the file when it is missing. Throws STORE_UNAVAILABLE with the sentence when another process, or
 * this one, holds it. The returned function lets go.
 */
export function lockFile(path: string, sentence: string): () => void {
  // Closing any descriptor of a file ends this process's locks on it, so that an existing file is left to SQLite alone.
  if (!existsSync(path)) closeSync(openSync(path, "a", 0o600));
  const database = new DatabaseSync(path, { timeout: 0 });
  try {
    database.exec("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE");
  } catch (cause) {
    database.close();
    throw new GroveError("STORE_UNAVAILABLE", sentence, { cause });
  }
  return () => {
    if (database.isOpen) database.close();
  };
}
