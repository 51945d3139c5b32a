// Commands of the metadata store in PostgreSQL, each one transaction: repeated until the database decides it.
import { isDeepStrictEqual } from "node:util";
import type { ClientBase, PoolClient, QueryResult } from "pg";
import { GroveError, isGroveError } from "#base/errors.ts";
import { systemFraction } from "#base/random.ts";
import {
  commit,
  outcomeUnknown,
  TRANSACTION,
  tookPlace,
  UnknownCommit,
} from "#metaserver/sql/postgres-commits.ts";
import {
  asLocked,
  isLocked,
  isRefusal,
  otherStore,
  overloaded,
  remedyOf,
  toStoreError,
  unavailable,
} from "#metaserver/sql/postgres-errors.ts";
import { PostgresStatements, rolledBack } from "#metaserver/sql/postgres-statements.ts";
import type { Plan } from "#metaserver/sql/sql-plan.ts";
import { parsePostgresUrl, withPasswordOf } from "#os/postgres-url.ts";
import type { OnUpgraded } from "#os/schema-copy.ts";
import { DIRECTORY_QUEUE_MAX, type StoreState } from "./directory.ts";
import { adoptClusterId, clusterId, type Moment } from "./node-commands.ts";
import {
  ConnectFailure,
  POSTGRES_BEAT_CONNECTIONS,
  POSTGRES_COMMAND_TIMEOUT_MS,
  POSTGRES_CONTROL_CONNECTIONS,
  POSTGRES_PROBE_INTERVAL_MS,
  POSTGRES_REGISTER_TIMEOUT_MS,
  POSTGRES_RETRIES_MAX,
  POSTGRES_USER_CONNECTIONS,
  PostgresConnections,
  type Use,
} from "./postgres-connections.ts";
import { momentOf } from "./postgres-moment.ts";
import { migrate, requireTables } from "./postgres-schema.ts";

const DATABASE_NOW = "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)";
/** A server may take seconds to notice that a connection is gone, and to end what was begun over it. */
const COMMIT_ASKED_EVERY_MS = 50;
/** A younger outage is waited out, since most are a restart; in an older one calls fail at once. */
const WAITED_OUT_MS = 10_000;

/** The database, and how the store uses it. */
export interface PostgresDirectoryDeps {
  readonly url: string;
  /** The file that holds the URL: each connection has the password that stands there by then. */
  readonly urlFile?: string | undefined;
  /** The cluster that this host served before; undefined for a new one. */
  readonly clusterId?: string | undefined;
  /** False to make and migrate no tables. */
  readonly makesTables?: boolean;
  /** Called when a connection has brought the tables to a newer schema. */
  readonly onUpgraded?: OnUpgraded | undefined;
  /** The database's clock in unix milliseconds as SQL; tests drive their own. */
  readonly nowSql?: () => string;
}

/** What a command learns as it begins. */
interface Opened {
  readonly now_ms: bigint;
  readonly cluster_id: string | null;
  /** Of a transaction that decides over more than one row. */
  readonly transaction?: string;
}

/** What is known of a command. */
interface Asked {
  /** The commit of an earlier attempt whose outcome is not known. */
  unknown: UnknownCommit | undefined;
  /** True while it waits for the lock of all decisions. */
  isWaiting: boolean;
}

/** A command as a plan of statements. */
type Command<Result> = (now: Moment) => Plan<Result>;

/** The database behind a directory: its connections, and whether it answers. */
export class PostgresStore {
  /** Resolves when a newer Grove has changed the tables: this one must end. */
  readonly failed: Promise<Error>;
  readonly #fail: (error: Error) => void;
  readonly #nowSql: () => string;
  readonly #makesTables: boolean;
  readonly #onUpgraded: OnUpgraded | undefined;
  readonly #read: Use;
  readonly #decide: Use;
  readonly #beat: Use;
  readonly #control: Use;
  readonly #statements = new PostgresStatements();
  readonly #listeners = new Set<(state: StoreState) => void>();
  readonly #probe: NodeJS.Timeout;
  #state: StoreState = { available: false, reason: "the metadata store has not answered yet" };
  #clusterId: string | undefined;
  #closing: Promise<unknown> | undefined;
  #running = 0;
  #answeredMs = Number.NEGATIVE_INFINITY;
  #awaySinceMs: number | undefined;
  /** True when the database has refused Grove, which only an operator can change. */
  isRefused = false;

  constructor(deps: PostgresDirectoryDeps) {
    const { url, urlFile } = deps;
    const given = parsePostgresUrl(url, process.env);
    const settings = urlFile === undefined ? given : withPasswordOf(urlFile, given, process.env);
    const prepare = (client: ClientBase): Promise<void> => this.#prepare(client);
    const connections = (max: number): PostgresConnections =>
      new PostgresConnections({ settings, max, prepare });
    const users = connections(POSTGRES_USER_CONNECTIONS);
    const nodes = connections(POSTGRES_CONTROL_CONNECTIONS);
    const beats = connections(POSTGRES_BEAT_CONNECTIONS);
    const timeoutMs = POSTGRES_COMMAND_TIMEOUT_MS;
    this.#read = { connections: users, holds: "read", timeoutMs };
    this.#decide = { connections: users, holds: "all", timeoutMs };
    this.#beat = { connections: beats, holds: "row", timeoutMs };
    this.#control = { connections: nodes, holds: "all", timeoutMs: POSTGRES_REGISTER_TIMEOUT_MS };
    this.#clusterId = deps.clusterId;
    this.#makesTables = deps.makesTables ?? true;
    this.#onUpgraded = deps.onUpgraded;
    this.#nowSql = deps.nowSql ?? (() => DATABASE_NOW);
    const failed = Promise.withResolvers<Error>();
    this.failed = failed.promise;
    this.#fail = failed.resolve;
    this.#probe = setInterval(() => this.#look(), POSTGRES_PROBE_INTERVAL_MS);
    this.#probe.unref();
  }

  /** Calls back with the state now, and after each change of it. */
  watch(listener: (state: StoreState) => void): () => void {
    this.#listeners.add(listener);
    listener(this.#state);
    return () => this.#listeners.delete(listener);
  }

  /** The cluster that the database must be of, once it is known. */
  belongsTo(cluster: string): void {
    this.#clusterId = cluster;
  }

  /** For users' calls that change nothing. */
  read<Result>(command: Command<Result>): Promise<Result> {
    return this.#run(this.#read, command);
  }

  /** For users' calls that decide something: one at a time over all MetaServers. */
  decide<Result>(command: Command<Result>): Promise<Result> {
    return this.#run(this.#decide, command);
  }

  /** For heartbeats, which wait for nothing else. */
  beat<Result>(command: Command<Result>): Promise<Result> {
    return this.#run(this.#beat, command);
  }

  /** For the nodes' other calls, with the time that a registration takes. */
  control<Result>(command: Command<Result>): Promise<Result> {
    return this.#run(this.#control, command);
  }

  /** Ends all connections. */
  async close(): Promise<void> {
    clearInterval(this.#probe);
    this.#closing ??= Promise.all(
      [this.#read, this.#control, this.#beat].map(({ connections }) => connections.close()),
    );
    await this.#closing;
  }

  /**
   * Runs a command until the database decides it or its time is up. It is repeated where it has changed nothing;
   * of a commit without an answer the database is asked first.
   */
  async #run<Result>(use: Use, command: Command<Result>): Promise<Result> {
    if (this.#closing !== undefined) throw unavailable("the metadata store is closed");
    if (this.#running >= DIRECTORY_QUEUE_MAX) {
      throw overloaded();
    }
    this.#running++;
    try {
      const result = await this.#repeat(use, command);
      this.#answered();
      return result;
    } catch (error) {
      throw this.#judged(error);
    } finally {
      this.#running--;
    }
  }

  async #repeat<Result>(use: Use, command: Command<Result>): Promise<Result> {
    const endMs = performance.now() + use.timeoutMs;
    const asked: Asked = { unknown: undefined, isWaiting: false };
    for (let retries = 0; ; retries++) {
      try {
        return await this.#attempt(use, command, endMs, asked);
      } catch (error) {
        const waitMs = this.#waitBefore(error, retries);
        if (waitMs === undefined || performance.now() + waitMs >= endMs) {
          throw asked.unknown ?? error;
        }
        await new Promise((resolve) => setTimeout(resolve, waitMs));
      }
    }
  }

  /** How long to wait before the next attempt; undefined when there is none. */
  #waitBefore(error: unknown, retries: number): number | undefined {
    if (error instanceof UnknownCommit && this.#closing === undefined) return COMMIT_ASKED_EVERY_MS;
    if (retries >= POSTGRES_RETRIES_MAX || this.#closing !== undefined) return undefined;
    if (error instanceof ConnectFailure) {
      this.#awaySinceMs ??= performance.now();
      const isYoung = performance.now() - this.#awaySinceMs < WAITED_OUT_MS;
      return isYoung && this.#answeredMs > 0 && !isRefusal(error.cause) ? error.restMs + 1 : undefined;
    }
    if (isGroveError(error)) return undefined;
    // Between half and the whole, so that conflicting commands do not meet again.
    return remedyOf(error) === "none" ? undefined : 2 ** Math.min(retries, 7) * (0.5 + systemFraction() / 2);
  }

  async #attempt<Result>(use: Use, command: Command<Result>, endMs: number, asked: Asked): Promise<Result> {
    const { client, release } = await use.connections.acquire(Math.max(endMs - performance.now(), 1));
    const begunMs = performance.now();
    let isLate = false;
    // To end a connection in a statement fails the statement, even when the server has fallen asleep.
    const timer = setTimeout(
      () => {
        isLate = true;
        release(true);
      },
      Math.max(endMs - performance.now(), 1),
    );
    try {
      const { unknown } = asked;
      const result =
        unknown !== undefined && (await tookPlace(client, unknown))
          ? (unknown.result as Result)
          : await this.#transact(client, use.holds, command, asked);
      release(false);
      return result;
    } catch (error) {
      if (error instanceof UnknownCommit) asked.unknown = error;
      // Who has spent the time in a line says nothing of the database.
      const hasQueued = asked.isWaiting || performance.now() - begunMs < use.timeoutMs / 2;
      if (isLate && hasQueued) throw overloaded();
      if (isLate) throw unavailable("the metadata store's database did not answer in time");
      const isSound = isGroveError(error) || remedyOf(error) !== "reconnect";
      release(!(isSound && (use.holds === "read" || (await rolledBack(client)))));
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  async #transact<Result>(
    client: PoolClient,
    holds: Use["holds"],
    command: Command<Result>,
    asked: Asked,
  ): Promise<Result> {
    asked.unknown = undefined;
    const now = `SELECT ${this.#nowSql()} AS now_ms, (SELECT value FROM settings WHERE key = 'cluster_id') AS cluster_id`;
    const id = holds === "all" ? `, ${TRANSACTION}` : "";
    const begin = holds === "read" ? "" : "BEGIN ISOLATION LEVEL READ COMMITTED; ";
    const lock = holds === "all" ? "SELECT value FROM settings WHERE key = 'mutex' FOR UPDATE; " : "";
    asked.isWaiting = holds === "all";
    // Each statement after the lock sees the results of earlier holders.
    const answers = await client.query(begin + lock + now + id).catch((error: unknown) => {
      throw asked.isWaiting ? asLocked(error) : error;
    });
    asked.isWaiting = false;
    const last = (Array.isArray(answers) ? answers.at(-1) : answers) as QueryResult;
    const { now_ms, cluster_id, transaction } = last.rows[0] as Opened;
    // Another database stands in this one's place.
    if (this.#clusterId !== undefined && cluster_id !== this.#clusterId) throw otherStore();
    const result = await this.#follow(client, command(momentOf(Number(now_ms))));
    if (transaction !== undefined) await commit(client, transaction, result);
    // What changes one row alone may be repeated.
    else if (holds === "row") await client.query("COMMIT");
    return result;
  }

  async #follow<Result>(client: ClientBase, plan: Plan<Result>): Promise<Result> {
    let step = plan.next();
    while (step.done !== true) step = plan.next(await this.#statements.ask(client, step.value));
    return step.value;
  }

  /** Checks a new connection's tables: they are this cluster's; an empty store becomes its own again. */
  async #prepare(client: ClientBase): Promise<void> {
    try {
      const upgrade = await (this.#makesTables ? migrate(client) : requireTables(client));
      if (upgrade !== undefined) this.#onUpgraded?.(upgrade);
    } catch (error) {
      // A newer Grove has been here: this one must not touch a schema that it does not know.
      if (isGroveError(error, "BAD_ARGUMENT")) this.#fail(error);
      throw error;
    }
    const { rows } = await client.query("SELECT value FROM settings WHERE key = 'cluster_id'");
    const found = (rows[0] as { value: string } | undefined)?.value;
    if (found === undefined && this.#clusterId !== undefined) await this.#adopt(client, this.#clusterId);
    else if (found !== undefined && this.#clusterId !== undefined && found !== this.#clusterId) {
      throw new GroveError("CLUSTER_MISMATCH", "this metadata store belongs to another cluster", {
        metadata: { cluster_id: found },
      });
    } else this.#clusterId ??= found;
  }

  async #adopt(client: ClientBase, clusterId: string): Promise<void> {
    await client.query("BEGIN; SELECT value FROM settings WHERE key = 'mutex' FOR UPDATE");
    try {
      const { rows } = await client.query(`SELECT ${this.#nowSql()} AS now_ms`);
      const nowMs = Number((rows[0] as { now_ms: bigint }).now_ms);
      await this.#follow(client, adoptClusterId(momentOf(nowMs), clusterId));
      await client.query("COMMIT");
    } catch (error) {
      await rolledBack(client);
      throw error;
    }
  }

  /** Queries the database when no call has done so lately, so that outages and recoveries are noticed. */
  #look(): void {
    const isFresh = performance.now() - this.#answeredMs < POSTGRES_PROBE_INTERVAL_MS;
    if (!isFresh || !this.#state.available) this.read(clusterId).catch(() => undefined);
  }

  #answered(): void {
    this.#answeredMs = performance.now();
    this.#awaySinceMs = undefined;
    this.isRefused = false;
    this.#tell({ available: true });
  }

  /** The failure for the caller; reports the database's state to the listeners. */
  #judged(error: unknown): GroveError {
    if (isGroveError(error, "OVERLOADED")) return error;
    const isUnknown = error instanceof UnknownCommit;
    const cause = error instanceof ConnectFailure || isUnknown ? error.cause : error;
    if (isGroveError(cause) && !(error instanceof ConnectFailure) && cause.code !== "STORE_UNAVAILABLE") {
      // The rules of the store have refused, so the database works.
      this.#answered();
      return cause;
    }
    const failure = toStoreError(cause);
    if (isLocked(cause) && !(error instanceof ConnectFailure)) {
      // Another transaction is in the way, so the database works. Who cannot even look at the tables knows less.
      this.#answered();
      return failure;
    }
    if (this.#closing !== undefined) return unavailable("the metadata store is closed");
    this.isRefused = isRefusal(cause);
    this.#tell({ available: false, reason: failure.message });
    if (isUnknown) return outcomeUnknown();
    // At the start these end the process; later a caller could do nothing about them.
    const isCallers = this.#answeredMs === Number.NEGATIVE_INFINITY || failure.code === "STORE_UNAVAILABLE";
    return isCallers ? failure : unavailable(failure.message);
  }

  #tell(state: StoreState): void {
    const isSame = isDeepStrictEqual(this.#state, state);
    this.#state = state;
    if (!isSame) for (const listener of this.#listeners) listener(state);
  }
}
