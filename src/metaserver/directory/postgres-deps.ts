// Dependencies of the store in PostgreSQL.
import type { OnUpgraded } from "#os/schema-copy.ts";

/** The database, and how the store uses it. */
export interface PostgresDirectoryDeps {
  readonly url: string;
  /** The cluster that this host served before; undefined for a new one. */
  readonly clusterId?: string | undefined;
  /** False to make and migrate no tables. */
  readonly makesTables?: boolean;
  /** Called when a connection has brought the tables to a newer schema. */
  readonly onUpgraded?: OnUpgraded | undefined;
  /** The database's clock in unix milliseconds as SQL; tests drive their own. */
  readonly nowSql?: () => string;
}
