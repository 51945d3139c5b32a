// The shared engine's two places: PostgreSQL with a synchronous standby that can take over, and a real store.
import { setTimeout as sleep } from "node:timers/promises";
import type { Campaign } from "#prove/campaign.ts";
import { startStore, type TestStore, USUAL_STORE } from "#testing/object-stores.ts";
import { type PostgresServer, startPostgres, startSynchronousStandby } from "#testing/postgres-server.ts";

/** Both servers of the database, on ports that stay, and the store. */
export class EnginePlaces {
  readonly store: TestStore;
  /** Name of the engine's database. */
  readonly database: string;
  #primary: PostgresServer;
  #standby: PostgresServer;
  readonly #cleanUp: (end: () => Promise<void>) => void;

  private constructor(
    campaign: Campaign,
    parts: { store: TestStore; database: string; primary: PostgresServer; standby: PostgresServer },
  ) {
    this.store = parts.store;
    this.database = parts.database;
    this.#primary = parts.primary;
    this.#standby = parts.standby;
    this.#cleanUp = (end) => campaign.atEnd(end);
  }

  /** Starts them; they end with the campaign. */
  static async start(campaign: Campaign): Promise<EnginePlaces> {
    const cleanUp = (end: () => Promise<void>): void => campaign.atEnd(end);
    const [primary, store] = await Promise.all([startPostgres(cleanUp), startStore(USUAL_STORE, cleanUp)]);
    const database = await primary.createDatabase();
    const standby = await startSynchronousStandby(primary, cleanUp);
    return new EnginePlaces(campaign, { store, database, primary, standby });
  }

  /** The two ports of the database, whichever of them takes changes. */
  get ports(): readonly [number, number] {
    const [first = 0, second = 0] = [this.#primary.port, this.#standby.port].toSorted((a, b) => a - b);
    return [first, second];
  }

  /** A URL of both servers, reached over these ports. */
  urlOver(ports: readonly number[]): string {
    const hosts = ports.map((port) => `127.0.0.1:${port}`).join(",");
    return `postgres://grove:${encodeURIComponent(this.#primary.password)}@${hosts}/${this.database}`;
  }

  get storeUrl(): string {
    const query = new URLSearchParams({
      endpoint: `http://127.0.0.1:${this.store.port}`,
      credentials: this.store.credentialsFile,
    });
    return `s3://${this.store.bucket}/rig?${query.toString()}`;
  }

  /** Ends the primary as a power cut would, and has the standby take over after a while. */
  async failOver(pauseMs: number): Promise<void> {
    await this.#primary.stop("immediate");
    await sleep(pauseMs);
    await this.#standby.sql("postgres", "SELECT pg_promote()");
  }

  /** Makes a new synchronous standby in the dead one's place, so that the next one may die. */
  async mend(): Promise<void> {
    const dead = this.#primary;
    this.#primary = this.#standby;
    this.#standby = await startSynchronousStandby(this.#primary, this.#cleanUp, dead.port);
  }

  /** Runs SQL at the server that takes changes, and returns what psql prints. */
  sql(text: string): Promise<string> {
    return this.#primary.sql(this.database, text);
  }
}
