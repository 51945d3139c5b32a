// The database and the store of one engine, each on a filesystem whose power can be cut.
import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { CUT_FLAGS, type Disk, type PowerSwitch } from "#prove/power/disk.ts";
import { type StoreSettings, storeSettings } from "#storage/object-store/store-settings.ts";
import type { SharedAddress } from "#storage/shared/shared-connection.ts";
import { freePort } from "#testing/free-ports.ts";
import { type ObjectStoreKind, TestStore } from "#testing/object-stores.ts";
import { PostgresServer, postgresPrograms } from "#testing/postgres-server.ts";

const DATABASE = "grove";
/** PostgreSQL as it is by default: the other tests leave flushes out. */
const FLUSHED = [
  "fsync = on",
  "shared_buffers = '32MB'",
  "checkpoint_timeout = '30s'",
  "max_wal_size = '32MB'",
];

/** Both servers and their disks. */
export class PoweredPlaces {
  readonly #disks: { readonly database: Disk; readonly store: Disk };
  readonly #database: PostgresServer;
  readonly #store: TestStore;

  private constructor(disks: { database: Disk; store: Disk }, database: PostgresServer, store: TestStore) {
    this.#disks = disks;
    this.#database = database;
    this.#store = store;
  }

  /** Makes and starts both on mounted disks. */
  static async start(disks: { database: Disk; store: Disk }, kind: ObjectStoreKind): Promise<PoweredPlaces> {
    const programs = postgresPrograms();
    if (programs === undefined) throw new Error("PostgreSQL is not installed");
    for (const disk of [disks.database, disks.store]) disk.mount();
    const [databaseFolder, storeFolder] = [join(disks.database.path, "pg"), join(disks.store.path, "store")];
    for (const folder of [databaseFolder, storeFolder]) mkdirSync(folder);
    chmodSync(disks.database.path, 0o755);
    const database = new PostgresServer(programs, databaseFolder, await freePort());
    await database.make({ settings: FLUSHED });
    const store = new TestStore(kind, storeFolder, await freePort(), {});
    await store.make();
    const places = new PoweredPlaces(disks, database, store);
    await Promise.all([database.start(), store.start()]);
    await database.sql("postgres", `CREATE DATABASE ${DATABASE} TEMPLATE template0`);
    return places;
  }

  get address(): SharedAddress {
    const { password, port } = this.#database;
    return {
      config: { host: "127.0.0.1", port, user: "grove", password, database: DATABASE },
      schema: "grove_engine",
    };
  }

  get settings(): StoreSettings {
    const { port, bucket, credentialsFile } = this.#store;
    const query = new URLSearchParams({ endpoint: `http://127.0.0.1:${port}`, credentials: credentialsFile });
    return storeSettings(`s3://${bucket}/rig?${query.toString()}`);
  }

  /** Has all that the making left flushed, which it does not do by itself. */
  settle(): void {
    for (const { path } of [this.#disks.database, this.#disks.store]) spawnSync("sync", ["-f", path]);
  }

  /**
   * Cuts the power of one or both and kills the servers. They are stopped first: the kernel would report
   * success for flushes that the cut overtakes.
   */
  async cut(what: "database" | "store" | "both", power: PowerSwitch): Promise<void> {
    const { database, store } = this.#disks;
    if (what !== "store") this.#database.signal("SIGSTOP");
    if (what !== "database") this.#store.signal("SIGSTOP");
    if (what !== "store") await power.cut(database, CUT_FLAGS.noLogFlush);
    if (what !== "database") await power.cut(store, CUT_FLAGS.noLogFlush);
    if (what !== "store") await this.#database.kill();
    if (what !== "database") await this.#store.kill();
    if (what !== "store") await database.unmount();
    if (what !== "database") await store.unmount();
  }

  /** Mounts the disks again; their journals are replayed. */
  mount(what: "database" | "store" | "both"): void {
    if (what !== "store") {
      this.#disks.database.mount();
      // An empty one, of a start that was cut off, is for the operator to remove.
      rmSync(join(this.#disks.database.path, "pg", "data", "postmaster.pid"), { force: true });
    }
    if (what !== "database") this.#disks.store.mount();
  }

  /** Begins the start of the database, which recovers from its log; resolves when it answers. */
  startDatabase(): Promise<void> {
    return this.#database.start();
  }

  startStore(): Promise<void> {
    return this.#store.start();
  }

  /** Ends both, and gives the disks back. */
  async end(): Promise<void> {
    await this.#database.kill();
    await this.#store.kill();
    await this.#disks.database.unmount();
    await this.#disks.store.unmount();
  }
}
