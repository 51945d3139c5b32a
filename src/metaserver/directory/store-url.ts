// Resolves the store's URL from the flags, and keeps its password off the command line.
import { GroveError } from "#base/errors.ts";
import { hasPassword, readUrlFile } from "#os/postgres-url.ts";

/**
 * The URL of the store: `-meta`, or the first line of `-meta_file`; undefined when neither is given. Throws
 * BAD_ARGUMENT when both are, when `-meta` holds a password, and when others may read the file.
 */
export async function storeUrl(flags: {
  readonly meta?: string;
  readonly metaFile?: string;
}): Promise<string | undefined> {
  const { meta, metaFile } = flags;
  if (meta !== undefined && metaFile !== undefined) throw bad("give -meta or -meta_file, not both");
  if (metaFile !== undefined) return readUrlFile(metaFile);
  if (meta === undefined || !hasPassword(meta)) return meta;
  throw bad(
    "a password in -meta can be read by everybody on this machine: put the URL into a file for -meta_file, " +
      "or leave the password out and set PGPASSFILE or PGPASSWORD",
  );
}

function bad(message: string): GroveError {
  return new GroveError("BAD_ARGUMENT", message);
}
