// Connections to PostgreSQL: a bounded pool for each server, the choice of the primary, rest after failures.
import pg from "pg";
import { GroveError } from "#base/errors.ts";
import { formatHostPort } from "#base/node-id.ts";
import { overloaded } from "#metaserver/sql/postgres-errors.ts";
import { postgresTls } from "#os/postgres-tls.ts";
import { findPassword, type PostgresHost, type PostgresSettings } from "#os/postgres-url.ts";

/** Time for a new connection to the metadata store's database to be ready. */
const POSTGRES_CONNECT_TIMEOUT_MS = 2_000;
/** Time for one statement of the metadata store; below that of a whole command. */
const POSTGRES_STATEMENT_TIMEOUT_MS = 3_000;
/** Time for one lock; below that of a statement, or PostgreSQL would not say what it waited for. */
const POSTGRES_LOCK_TIMEOUT_MS = 2_500;
/** Time for one command in PostgreSQL, repetitions included; below a heartbeat's wait for its answer. */
export const POSTGRES_COMMAND_TIMEOUT_MS = 4_000;
/** The same for a registration, which may bring 100,000 roots. */
export const POSTGRES_REGISTER_TIMEOUT_MS = 15_000;
/** Repetitions of one command of the metadata store after conflicts with others or lost connections. */
export const POSTGRES_RETRIES_MAX = 10;
/** Connections of one MetaServer to PostgreSQL for users' calls, whose flood must not delay heartbeats. */
export const POSTGRES_USER_CONNECTIONS = 6;
/** Connections of one MetaServer to PostgreSQL for the control plane. */
export const POSTGRES_CONTROL_CONNECTIONS = 4;
/** The same for heartbeats alone: who waits behind a registration would look dead. */
export const POSTGRES_BEAT_CONNECTIONS = 2;
/** Interval of a MetaServer's checks that the metadata store in PostgreSQL answers. */
export const POSTGRES_PROBE_INTERVAL_MS = 2_000;

/** Dependencies of the connections. */
export interface PostgresConnectionsDeps {
  readonly settings: PostgresSettings;
  /** Connections at once, to one server. */
  readonly max: number;
  /** Checks the tables on each new connection; what it throws ends the connection. */
  readonly prepare: (client: pg.ClientBase) => Promise<void>;
}

/** Rest after the first failure; it doubles with each further one. */
const REST_FIRST_MS = 50;
/** Longest rest, and so the longest time in which a database's return goes unnoticed. */
const REST_LONGEST_MS = 500;
/** An idle connection is closed after this time. */
const IDLE_MS = 30_000;

const INTEGER_TYPES: ReadonlySet<number> = new Set([20, 21, 23]);
const TYPES: pg.CustomTypesConfig = {
  getTypeParser: ((id: number) =>
    INTEGER_TYPES.has(id) ? BigInt : (value: unknown) => value) as pg.CustomTypesConfig["getTypeParser"],
};

/** Settings of every connection: Grove's own schema, and limits for statements, locks and idle time. */
const SETTINGS = `
  SET search_path TO grove; SET statement_timeout TO ${POSTGRES_STATEMENT_TIMEOUT_MS};
  SET lock_timeout TO ${POSTGRES_LOCK_TIMEOUT_MS};
  SET idle_in_transaction_session_timeout TO ${POSTGRES_STATEMENT_TIMEOUT_MS}`;

/** A failure to connect, with the time from which another try makes sense. */
export class ConnectFailure extends Error {
  readonly restMs: number;

  constructor(cause: unknown, restMs: number) {
    super("no connection to the database", { cause });
    this.restMs = restMs;
  }
}

interface HostPool {
  readonly host: PostgresHost;
  readonly pool: pg.Pool;
}

/** A connection in use. */
export interface Acquired {
  readonly client: pg.PoolClient;
  /** Returns it; a broken one is ended, even in the middle of a statement. */
  readonly release: (isBroken: boolean) => void;
}

/** How a command uses the database. */
export interface Use {
  readonly connections: PostgresConnections;
  /**
   * "read": each statement for itself. "row": one transaction that locks what it changes. "all": one
   * transaction at a time in the whole cluster, for decisions over more than one row.
   */
  readonly holds: "read" | "row" | "all";
  readonly timeoutMs: number;
}

/** The pools of one kind of use. */
export class PostgresConnections {
  readonly #deps: PostgresConnectionsDeps;
  readonly #pools: readonly HostPool[];
  /** Calls that wait for a connection, in their order; bounded by the store's own limit of commands. */
  readonly #waiting = new Set<() => void>();
  #used = 0;
  #current = 0;
  #failures = 0;
  #restUntilMs = 0;
  #lastFailure: unknown;

  constructor(deps: PostgresConnectionsDeps) {
    this.#deps = deps;
    this.#pools = deps.settings.hosts.map((host) => ({ host, pool: this.#makePool(host) }));
  }

  /**
   * A connection to the primary, in turn when all are in use. Rejects with ConnectFailure, and with
   * OVERLOADED when none became free in time.
   */
  async acquire(waitMs: number): Promise<Acquired> {
    await this.#takeSlot(waitMs);
    try {
      const client = await this.#connect();
      let isReleased = false;
      const release = (isBroken: boolean): void => {
        if (isReleased) return;
        isReleased = true;
        client.release(isBroken);
        this.#giveSlot();
      };
      return { client, release };
    } catch (error) {
      this.#giveSlot();
      throw error;
    }
  }

  async #connect(): Promise<pg.PoolClient> {
    const restMs = this.#restUntilMs - performance.now();
    if (restMs > 0) throw new ConnectFailure(this.#lastFailure, restMs);
    const from = this.#current;
    let failure: unknown;
    for (let step = 0; step < this.#pools.length; step++) {
      const at = (from + step) % this.#pools.length;
      const { host, pool } = this.#pools[at] as HostPool;
      try {
        const client = await pool.connect();
        this.#current = at;
        this.#failures = 0;
        return client;
      } catch (error) {
        // The primary's error says more than those of standbys or silent servers.
        failure ??= described(error, host);
      }
    }
    this.#lastFailure = failure;
    const nextRestMs = Math.min(REST_FIRST_MS * 2 ** this.#failures, REST_LONGEST_MS);
    this.#failures = Math.min(this.#failures + 1, 16);
    this.#restUntilMs = performance.now() + nextRestMs;
    throw new ConnectFailure(failure, nextRestMs);
  }

  /** First come, first served: the pool's own queue would give up after the limit of a connection attempt. */
  #takeSlot(waitMs: number): Promise<void> {
    if (this.#used < this.#deps.max) {
      this.#used++;
      return Promise.resolve();
    }
    return new Promise((resolve, reject) => {
      const turn = (): void => {
        clearTimeout(timer);
        resolve();
      };
      const timer = setTimeout(() => {
        this.#waiting.delete(turn);
        reject(overloaded());
      }, waitMs);
      this.#waiting.add(turn);
    });
  }

  #giveSlot(): void {
    const [next] = this.#waiting;
    if (next === undefined) {
      this.#used--;
      return;
    }
    this.#waiting.delete(next);
    next();
  }

  /** Closes every connection; resolves when those in use have been released. */
  async close(): Promise<void> {
    await Promise.all(this.#pools.map(({ pool }) => pool.end()));
  }

  #makePool(host: PostgresHost): pg.Pool {
    const { settings, max } = this.#deps;
    const pool = new pg.Pool({
      ssl: postgresTls(settings),
      host: host.host,
      port: host.port,
      user: settings.user,
      database: settings.database,
      password: () => findPassword(settings, host, process.env),
      max,
      connectionTimeoutMillis: POSTGRES_CONNECT_TIMEOUT_MS,
      idleTimeoutMillis: IDLE_MS,
      keepAlive: true,
      application_name: "grove metaserver",
      types: TYPES,
      // oxlint-disable-next-line typescript/no-misused-promises -- the pool waits for it; only its types do not say so
      onConnect: (client) => this.#setUp(client),
    });
    // An idle connection that the server closes fails no call.
    pool.on("error", () => undefined);
    return pool;
  }

  async #setUp(client: pg.ClientBase): Promise<void> {
    // An error while a call holds the connection fails the call's own statement, which reports it.
    client.on("error", () => undefined);
    // The pool's own time limit ends where the session begins, and a server may fall asleep at any moment.
    const timer = setTimeout(() => void (client as pg.Client).end(), POSTGRES_STATEMENT_TIMEOUT_MS);
    try {
      await client.query(SETTINGS);
      const { rows } = await client.query("SHOW transaction_read_only");
      if ((rows[0] as { transaction_read_only?: string } | undefined)?.transaction_read_only === "on") {
        throw Object.assign(new Error("standby"), { code: "25006" });
      }
      await this.#deps.prepare(client);
    } finally {
      clearTimeout(timer);
    }
  }
}

/** A failure of the socket says little without the server's name. */
function described(error: unknown, { host, port }: PostgresHost): unknown {
  const code = (error as { code?: unknown } | null)?.code;
  const isSqlState = typeof code === "string" && /^[0-9A-Z]{5}$/.test(code) && code !== "EPIPE";
  if (isSqlState || error instanceof GroveError) return error;
  const at = host.startsWith("/") ? `${host}:${port}` : formatHostPort({ host, port });
  const isPlain = error instanceof Error && error.message.includes("does not support SSL");
  const silent = isPlain ? "it speaks no TLS (sslmode=disable goes without)" : "it did not answer";
  const what = typeof code === "string" ? code : silent;
  return new GroveError(
    "STORE_UNAVAILABLE",
    `the metadata store's database at ${at} cannot be reached: ${what}`,
  );
}
