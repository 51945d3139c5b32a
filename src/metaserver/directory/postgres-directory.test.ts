// Runs the store's contract on a real PostgreSQL, and tests what is particular to a shared store.
import { after, test } from "node:test";
import pg from "pg";
import { type PostgresServer, postgresOfFile } from "#testing/postgres-server.ts";
import { until } from "#testing/until.ts";
import type { Directory } from "./directory.ts";
import { testDirectoryContract } from "./directory-contract.fixture.ts";
import { openPostgresDirectory } from "./postgres-directory.ts";

let server: PostgresServer;
/** One database for all tests, each of which begins without its schema: making one costs five times as much. */
let maker: pg.Client | undefined;
// Declared before that of the server, which would end it.
after(() => maker?.end());
const skip = postgresOfFile((started) => {
  server = started;
});
async function connected(url: string): Promise<pg.Client> {
  const client = new pg.Client(url);
  await client.connect();
  return client;
}

testDirectoryContract(
  "postgres",
  async (clock, cleanUp) => {
    maker ??= await connected(server.url(await server.createDatabase()));
    await maker.query("DROP SCHEMA IF EXISTS grove CASCADE");
    const url = server.url(maker.database ?? "");
    const open = (): Promise<Directory> =>
      // The tests' clock is the database's, which runs on while MetaServers come and go.
      openPostgresDirectory({ url, nowSql: () => String(1_790_000_000_000 + clock.steadyMs()) });
    let directory = await open();
    cleanUp(() => directory.close());
    return {
      directory,
      async reopen(): Promise<Directory> {
        await directory.close();
        directory = await open();
        return directory;
      },
    };
  },
  { skip },
);

test("a MetaServer starts while its database is slow, and uses it once that is faster", {
  skip,
}, async (t) => {
  const url = server.url(await server.createDatabase());
  const other = await connected(url);
  t.after(() => other.end());
  // Its table takes half of a command's time, and its first statement the rest.
  await other.query("BEGIN; CREATE SCHEMA grove");
  const isFaster = other.query("SELECT pg_sleep(2.4); ROLLBACK");
  let statements = 0;
  const nowSql = (): string => `(SELECT 1790000000000 FROM pg_sleep(${statements++ === 0 ? 10 : 0}))`;
  const directory = await openPostgresDirectory({ url, nowSql });
  t.after(() => directory.close());
  await isFaster;
  await until(() =>
    directory.clusterId().then(
      () => true,
      () => false,
    ),
  );
});
