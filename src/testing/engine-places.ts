// PostgreSQL and an object store for the tests of one file, which share them: each test has a database of its own.
import { after, before } from "node:test";
import { startStore, type TestStore, USUAL_STORE, withoutStore } from "./object-stores.ts";
import { type PostgresServer, startPostgres, withoutPostgres } from "./postgres-server.ts";

/** The places of the shared engine. */
export interface EnginePlaces {
  readonly database: PostgresServer;
  readonly store: TestStore;
}

/**
 * Starts both before the file's first test, and ends them after its last. `skip` is the value for a test's
 * `skip`: with a reason nothing is started, and there are no places.
 */
export function enginePlaces(): EnginePlaces & { readonly skip: string | false } {
  const skip = withoutPostgres() || withoutStore(USUAL_STORE);
  const ends: (() => Promise<void>)[] = [];
  let started: EnginePlaces | undefined;
  before(async () => {
    if (skip !== false) return;
    const database = await startPostgres((end) => ends.push(end));
    started = { database, store: await startStore(USUAL_STORE, (end) => ends.push(end)) };
  });
  after(async () => {
    for (const end of ends.toReversed()) await end();
  });
  const places = (): EnginePlaces => {
    if (started === undefined) throw new Error("the engine's places have not started");
    return started;
  };
  return {
    skip,
    get database() {
      return places().database;
    },
    get store() {
      return places().store;
    },
  };
}
