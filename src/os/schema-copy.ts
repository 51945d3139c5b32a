// Copies of databases from before an upgrade: made before the schema changes, found when an older Grove starts.
import { closeSync, existsSync, fsyncSync, openSync, readdirSync, renameSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { GroveError } from "#base/errors.ts";
import { errorText } from "#base/log.ts";
import { shellWord } from "#base/shell-word.ts";

/** A database that was brought to a newer schema. */
export interface SchemaUpgrade {
  readonly from: number;
  readonly to: number;
  /** Where the database of before lies. */
  readonly copy: string;
}

/** Takes an upgrade that an opening has made; in PostgreSQL the copy is a schema's name. */
export type OnUpgraded = (upgrade: SchemaUpgrade) => void;

/** A copy from before an upgrade. */
export interface SchemaCopy {
  readonly schema: number;
  readonly path: string;
}

/**
 * Copies a database as it is before its schema changes, and puts the copy on stable storage. Copies of other
 * schemas go. Returns the copy's path. Throws STORAGE_FAILED where there is no room; nothing has changed then.
 */
export function copyBeforeUpgrade(db: DatabaseSync, path: string, schema: number): string {
  const copy = `${path}.schema-${schema}`;
  const partial = `${copy}.tmp`;
  try {
    rmSync(partial, { force: true });
    // Made before SQLite does, since it holds e-mail addresses and the umask may be lenient.
    closeSync(openSync(partial, "wx", 0o600));
    db.prepare("VACUUM INTO ?").run(partial);
    flush(partial);
    renameSync(partial, copy);
    for (const other of schemaCopies(path)) if (other.path !== copy) rmSync(other.path);
    flush(dirname(path));
  } catch (error) {
    rmSync(partial, { force: true });
    throw new GroveError(
      "STORAGE_FAILED",
      `${path} cannot be copied before the upgrade (${errorText(error)}): nothing has changed, and the Grove ` +
        "of before serves it. Make room beside it, then start again",
      { cause: error },
    );
  }
  return copy;
}

/** The copies beside a database, the newest schema first. */
export function schemaCopies(path: string): SchemaCopy[] {
  const start = `${basename(path)}.schema-`;
  if (!existsSync(dirname(path))) return [];
  return readdirSync(dirname(path))
    .filter((name) => name.startsWith(start) && /^[1-9]\d{0,5}$/.test(name.slice(start.length)))
    .map((name) => ({ schema: Number(name.slice(start.length)), path: join(dirname(path), name) }))
    .toSorted((a, b) => b.schema - a.schema);
}

/** The command that puts a copy into its place while no process has the database. */
export function commandToPutBack(path: string, copy: string): string {
  const [file, log, index] = [path, `${path}-wal`, `${path}-shm`].map(shellWord);
  return `rm -f ${log} ${index} && cp ${shellWord(copy)} ${file}`;
}

/** For a refused start: where a copy is that this Grove can open; empty without one. */
export function copyInWords(path: string, known: number): string {
  const copy = schemaCopies(path).find(({ schema }) => schema <= known);
  if (copy === undefined) return "";
  return `. The copy from before the upgrade is ${copy.path}: ${commandToPutBack(path, copy.path)}`;
}

function flush(path: string): void {
  const descriptor = openSync(path, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
