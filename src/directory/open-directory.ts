// Opens the metadata store that a `-meta` URL names (D19).

import { dirname, resolve } from "node:path";
import type { Clock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";
import { makePrivateFolder } from "#os/private-folder.ts";
import type { Directory } from "./directory.ts";
import { openSqliteDirectory } from "./sqlite-directory.ts";

/** What a store is opened with. */
export interface OpenDirectoryDeps {
  readonly clock: Clock;
}

/**
 * Opens `sqlite:PATH`, making file and folder when they are missing. Throws BAD_ARGUMENT for any other URL and for a file of a newer
 * Grove, STORE_UNAVAILABLE when the store cannot be reached. The URL is never quoted: it may hold a password.
 */
export async function openDirectory(url: string, deps: OpenDirectoryDeps): Promise<Directory> {
  if (/^postgres(?:ql)?:/.test(url)) {
    throw new GroveError(
      "BAD_ARGUMENT",
      "this version of Grove has no PostgreSQL metadata store yet; use -meta sqlite:PATH",
    );
  }
  const path = /^sqlite:(.+)$/s.exec(url)?.[1];
  if (path === undefined) {
    throw new GroveError("BAD_ARGUMENT", "the metadata store is given as -meta sqlite:PATH");
  }
  const absolute = resolve(path);
  makePrivateFolder(dirname(absolute));
  return openSqliteDirectory({ path: absolute, clock: deps.clock });
}
