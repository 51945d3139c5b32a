// Runs the store's contract on a real PostgreSQL, and tests what is particular to a shared store.
import { type PostgresServer, postgresOfFile } from "#testing/postgres-server.ts";
import type { Directory } from "./directory.ts";
import { testDirectoryContract } from "./directory-contract.fixture.ts";
import { openPostgresDirectory } from "./postgres-directory.ts";

let server: PostgresServer;
const skip = postgresOfFile((started) => {
  server = started;
});

testDirectoryContract(
  "postgres",
  async (clock, cleanUp) => {
    const url = server.url(await server.createDatabase());
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
