// What the store in PostgreSQL is made from.

/** Which database, and how it is used. */
export interface PostgresDirectoryDeps {
  readonly url: string;
  /** The cluster that this host served before; undefined for a new one. */
  readonly clusterId?: string | undefined;
  /** False to make and migrate no tables. */
  readonly makesTables?: boolean;
  /** The database's clock in unix milliseconds as SQL; tests drive their own. */
  readonly nowSql?: () => string;
}
