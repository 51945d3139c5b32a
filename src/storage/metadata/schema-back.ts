// Takes a data directory's schema back to one that an older Grove knows, with everything that one can keep.
import type { DatabaseSync } from "node:sqlite";
import { GroveError } from "#base/errors.ts";
import { SCHEMA_VERSION, schemaVersionOf } from "./schema.ts";

/** Schemas of data directories by the version that wrote them. */
export const RELEASED_SCHEMAS: ReadonlyMap<string, number> = new Map([["0.1.0", 7]]);

/** One step back, to the schema before. */
interface StepBack {
  readonly sql: string;
  /** What is lost, for people; undefined for nothing. */
  readonly loses?: { readonly what: string; readonly count: string };
  /** What must not be lost: while its count is not 0 the step is refused. */
  readonly needsNone?: { readonly count: string; readonly refusal: string };
}

/** The newest first. */
export const STEPS_BACK: readonly StepBack[] = [
  {
    sql: "DROP TABLE root_place",
    loses: {
      what: "notes of roots that have moved away",
      count: "SELECT count(*) AS count FROM root_place WHERE is_here = 0",
    },
  },
  {
    sql: "DROP TABLE link",
    loses: { what: "links for people without an account", count: "SELECT count(*) AS count FROM link" },
  },
  {
    sql: "DROP TABLE property; ALTER TABLE root DROP COLUMN property_bytes",
    loses: { what: "properties of WebDAV programs", count: "SELECT count(*) AS count FROM property" },
  },
  {
    sql: `DROP TABLE lock; ALTER TABLE root DROP COLUMN lock_version; ALTER TABLE root DROP COLUMN lock_count`,
    loses: { what: "locks", count: "SELECT count(*) AS count FROM lock" },
  },
  {
    sql: "DROP TABLE root_move; DROP TABLE move_bucket; DROP INDEX purging_by_content",
    needsNone: {
      count: "SELECT count(*) AS count FROM root_move",
      refusal:
        "roots move, or have moved away and wait for their confirmation: the older Grove would serve them " +
        "twice. End that with 'grove root move' or 'grove node drain … -confirm' first",
    },
  },
  { sql: "ALTER TABLE root DROP COLUMN live_inodes; ALTER TABLE root DROP COLUMN trash_inodes" },
  {
    sql: "ALTER TABLE share_grant DROP COLUMN excluded; ALTER TABLE trash_grant DROP COLUMN excluded",
    needsNone: {
      count: `SELECT (SELECT count(*) FROM share_grant WHERE excluded = 1) +
        (SELECT count(*) FROM trash_grant WHERE excluded = 1) AS count`,
      refusal:
        "folders are taken out of a share above them, which the older Grove cannot do: it would open them. " +
        "Start this Grove, and have their owners end those shares ('grove share --list')",
    },
  },
  { sql: "DROP INDEX inode_by_height; ALTER TABLE inode DROP COLUMN height" },
];

/** The oldest schema that a data directory can be taken back to. */
export const OLDEST_WAY_BACK: number = SCHEMA_VERSION - STEPS_BACK.length;

/**
 * Takes the schema back in one transaction, and returns what that loses, in words. Throws BAD_ARGUMENT for a
 * schema without a way, and NOT_EMPTY where something is there that must not be lost; nothing has changed then.
 */
export function takeSchemaBack(db: DatabaseSync, to: number): readonly string[] {
  const from = schemaVersionOf(db);
  // Again, after a run that was cut behind this step.
  if (from === to && to >= OLDEST_WAY_BACK) return [];
  if (from !== SCHEMA_VERSION || to >= from || to < OLDEST_WAY_BACK) {
    throw new GroveError(
      "BAD_ARGUMENT",
      `the data has schema ${from}, and there is a way back from ${SCHEMA_VERSION} to ` +
        `${OLDEST_WAY_BACK} to ${SCHEMA_VERSION - 1}, not to ${to}`,
    );
  }
  const countOf = (sql: string): number => (db.prepare(sql).get() as { count: number }).count;
  const lost: string[] = [];
  db.exec("BEGIN IMMEDIATE");
  try {
    for (const { sql, loses, needsNone } of STEPS_BACK.slice(0, from - to)) {
      const hindering = needsNone === undefined ? 0 : countOf(needsNone.count);
      if (hindering > 0) throw new GroveError("NOT_EMPTY", `${hindering} ${needsNone?.refusal ?? ""}`);
      const lose = loses === undefined ? 0 : countOf(loses.count);
      if (lose > 0) lost.push(`${lose} ${loses?.what ?? ""}`);
      db.exec(sql);
    }
    db.exec(`PRAGMA user_version = ${to}`);
    db.exec("COMMIT");
  } catch (error) {
    if (db.isTransaction) db.exec("ROLLBACK");
    throw error;
  }
  return lost;
}
