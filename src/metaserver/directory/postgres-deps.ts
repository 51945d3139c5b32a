// Dependencies of the store in PostgreSQL.

/** The database, and how the store uses it. */
export interface PostgresDirectoryDeps {
  readonly url: string;
  /** The cluster that this host served before; undefined for a new one. */
  readonly clusterId?: string | undefined;
  /** False to make and migrate no tables. */
  readonly makesTables?: boolean;
  /** The database's clock in unix milliseconds as SQL; tests drive their own. */
  readonly nowSql?: () => string;
}
