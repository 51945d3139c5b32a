// One connection to the shared engine's database, checked before its first use.
import pg from "pg";
import { GroveError } from "#base/errors.ts";
import { postgresTls } from "#os/postgres-tls.ts";
import { findPassword, type PostgresSettings } from "#os/postgres-url.ts";
import { leave } from "./shared-line.ts";
import { quoted } from "./shared-schema.ts";

/** A connection; what pg needs to make it, and the schema of the cluster. */
export interface SharedAddress {
  readonly config: pg.ClientConfig;
  readonly schema: string;
}

/** Time for a new connection to the shared engine's database, and for each of its first two answers. */
const SHARED_CONNECT_TIMEOUT_MS = 2_000;

/** The schema of the cluster's rows. */
const SHARED_SCHEMA = "grove_engine";

/** Addresses of a URL, in its order. Passwords are looked up anew for each connection. */
export function sharedAddresses(
  settings: PostgresSettings,
  env: Readonly<Record<string, string | undefined>>,
): SharedAddress[] {
  return settings.hosts.map((at) => ({
    config: {
      host: at.host,
      port: at.port,
      user: settings.user,
      database: settings.database,
      password: () => findPassword(settings, at, env),
      ssl: postgresTls(settings),
    },
    schema: SHARED_SCHEMA,
  }));
}

/** Connects to the first of several servers that takes changes. Throws what the last one's failure was. */
export async function connectToPrimary(addresses: readonly SharedAddress[]): Promise<pg.Client> {
  let failure: unknown = new GroveError("STORE_UNAVAILABLE", "the shared database has no address");
  for (const address of addresses) {
    try {
      return await connectShared(address);
    } catch (error) {
      failure = error;
    }
  }
  throw failure;
}

const INTEGER_TYPES: ReadonlySet<number> = new Set([20, 21, 23]);
/** Every number of the engine is below 2^53. */
const TYPES: pg.CustomTypesConfig = {
  getTypeParser: ((id: number, format?: "text") =>
    INTEGER_TYPES.has(id)
      ? Number
      : (pg.types.getTypeParser(id, format) as unknown)) as pg.CustomTypesConfig["getTypeParser"],
};

/**
 * Connects to a server that takes changes and makes them durable before it answers. Throws STORE_UNAVAILABLE
 * for any other, and what pg throws, also for one that lets in and then says nothing.
 */
export async function connectShared({ config, schema }: SharedAddress): Promise<pg.Client> {
  const { connectionTimeoutMillis = SHARED_CONNECT_TIMEOUT_MS } = config;
  const client = new pg.Client({
    keepAlive: true,
    application_name: "grove fileserver",
    ...config,
    connectionTimeoutMillis,
    types: TYPES,
  });
  const ask = (text: string): Promise<pg.QueryResult> =>
    // Its types leave the limit out.
    client.query({ text, query_timeout: connectionTimeoutMillis } as pg.QueryConfig);
  // A connection that breaks between two calls fails the next one.
  client.on("error", () => undefined);
  await client.connect();
  try {
    // Of lists of ids PostgreSQL expects so many rows that it compiles the statement: seconds for what takes
    // milliseconds, once the tables are large.
    await ask(`SET search_path TO ${quoted(schema)}; SET jit TO off`);
    const { rows } = await ask(
      `SELECT current_setting('transaction_read_only') AS "readOnly", current_setting('synchronous_commit') AS durable,
         current_setting('transaction_isolation') AS isolation`,
    );
    const problem = problemOf(rows[0] as Record<"readOnly" | "durable" | "isolation", string>);
    if (problem !== undefined) throw new GroveError("STORE_UNAVAILABLE", `the shared database ${problem}`);
    return client;
  } catch (error) {
    leave(client);
    throw error;
  }
}

function problemOf(is: Record<"readOnly" | "durable" | "isolation", string>): string | undefined {
  if (is.readOnly === "on") return "takes no changes: it is a standby";
  if (is.durable === "off" || is.durable === "local")
    return `would answer before a change is safe: synchronous_commit is ${is.durable}`;
  return is.isolation === "read committed" ? undefined : `reads as ${is.isolation}: set it to read committed`;
}
