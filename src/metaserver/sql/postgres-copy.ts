// Copies the tables in PostgreSQL into a schema beside them, before an upgrade.
import type { ClientBase } from "pg";
import { GroveError } from "#base/errors.ts";
import { errorText } from "#base/log.ts";

/** The schema in PostgreSQL that holds the tables as they were. */
const nameOf = (version: number): string => `grove_schema_${version}`;

/** For psql: puts the copy into the place of the tables, while no MetaServer runs. */
export function commandToPutBack(version: number): string {
  return `DROP SCHEMA grove CASCADE; ALTER SCHEMA ${nameOf(version)} RENAME TO grove;`;
}

/**
 * Copies all tables with their indexes, inside the transaction that migrates them. Copies of other versions
 * go. Returns the copy's schema. Throws BAD_ARGUMENT where the database does not allow it.
 */
export async function copyTables(client: ClientBase, version: number): Promise<string> {
  const name = nameOf(version);
  try {
    const { rows: older } = await client.query(
      "SELECT nspname AS name FROM pg_namespace WHERE nspname ~ '^grove_schema_[0-9]+$' AND pg_has_role(nspowner, 'USAGE')",
    );
    for (const row of older as { name: string }[]) await client.query(`DROP SCHEMA ${row.name} CASCADE`);
    await client.query(`CREATE SCHEMA ${name}`);
    const { rows: tables } = await client.query(
      "SELECT tablename AS name FROM pg_tables WHERE schemaname = 'grove' ORDER BY tablename",
    );
    for (const { name: table } of tables as { name: string }[]) {
      await client.query(`CREATE TABLE ${name}.${table} (LIKE grove.${table} INCLUDING DEFAULTS)`);
      await client.query(`INSERT INTO ${name}.${table} SELECT * FROM grove.${table}`);
    }
    const { rows: indexes } = await client.query(
      "SELECT indexdef AS sql FROM pg_indexes WHERE schemaname = 'grove' ORDER BY indexname",
    );
    for (const { sql } of indexes as { sql: string }[]) {
      await client.query(sql.replace(" ON grove.", ` ON ${name}.`));
    }
  } catch (error) {
    throw new GroveError(
      "BAD_ARGUMENT",
      `the metadata store cannot be copied before its upgrade (${errorText(error)}): nothing has changed, and the ` +
        "Grove of before serves it. Give its user the right to create schemas in the database " +
        "(GRANT CREATE ON DATABASE … TO …), then start again",
      { cause: error },
    );
  }
  return name;
}
