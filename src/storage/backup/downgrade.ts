// Takes the data directory of a stopped node back to the schema of an older Grove.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { GroveError } from "#base/errors.ts";
import { lockDataDirectory, readIdentity } from "#storage/metadata/data-directory.ts";
import { closeWriter, DATABASE_FILE, openWriter, refuseForeignSchema } from "#storage/metadata/schema.ts";
import { RELEASED_SCHEMAS, takeSchemaBack } from "#storage/metadata/schema-back.ts";
import { whyNotRead } from "#storage/metadata/sqlite-errors.ts";

/** The schema that a version of Grove wrote. Throws BAD_ARGUMENT for one that is not known. */
export function schemaOfRelease(version: string): number {
  const schema = RELEASED_SCHEMAS.get(version);
  if (schema !== undefined) return schema;
  throw new GroveError(
    "BAD_ARGUMENT",
    `the schema of ${version} is not known here, only that of ${[...RELEASED_SCHEMAS.keys()].join(", ")}: ` +
      "start that Grove on the data, which says the schema that it knows, and name it with -schema",
  );
}

/**
 * Takes a data directory back, and returns what that has lost, in words. Throws NO_SUCH_PATH where there is
 * none, DATA_IN_USE while a node serves it, BAD_ARGUMENT for a schema without a way back, and NOT_EMPTY where
 * something is there that must not be lost. A refusal has changed nothing.
 */
export function downgradeData(directory: string, schema: number): readonly string[] {
  const path = join(directory, DATABASE_FILE);
  if (!existsSync(path) || readIdentity(directory) === undefined) {
    throw new GroveError("NO_SUCH_PATH", `${directory} is no data directory of a FileServer`);
  }
  const release = lockDataDirectory(directory);
  try {
    const db = openWriter(path);
    try {
      refuseForeignSchema(db, path);
      return takeSchemaBack(db, schema);
    } finally {
      closeWriter(db);
    }
  } catch (error) {
    throw whyNotRead(directory, error);
  } finally {
    release();
  }
}
