// Fixtures of the shared engine's tests: a database with its tables, held roots, and rows in it.
import type { TestContext } from "node:test";
import type pg from "pg";
import { systemClock } from "#base/clock.ts";
import { systemRandom } from "#base/random.ts";
import { ulid } from "#base/ulid.ts";
import type { PostgresServer } from "#testing/postgres-server.ts";
import { until } from "#testing/until.ts";
import { CommitClient, type HeldRoot } from "./commit-client.ts";
import { connectShared, type SharedAddress } from "./shared-connection.ts";
import { makeSharedTables } from "./shared-schema.ts";

const SCHEMA = "grove_test";

/** A database of a test's own. */
export interface SharedDatabase {
  readonly name: string;
  readonly address: SharedAddress;
  /** A plain connection, as another process has it; ended after the test. */
  connect(): Promise<pg.Client>;
  /** A commit client; closed after the test. */
  client(options?: { answerMs?: number; connect?: () => Promise<pg.Client> }): CommitClient;
}

/** Makes a database with the engine's tables. */
export async function makeSharedDatabase(t: TestContext, server: PostgresServer): Promise<SharedDatabase> {
  const name = await server.createDatabase();
  const address = addressOf(server, name);
  const maker = await connectShared(address);
  await makeSharedTables(maker, SCHEMA);
  await maker.end();
  return {
    name,
    address,
    async connect() {
      const client = await connectShared(address);
      t.after(() => client.end());
      return client;
    },
    client({ answerMs = 30_000, connect = () => connectShared(address) } = {}) {
      const groupId = (): string => ulid(systemClock, systemRandom);
      const client = new CommitClient({ connect, clock: systemClock, groupId, answerMs, pauseMs: 20 });
      t.after(() => client.close());
      return client;
    },
  };
}

/** The engine's schema on a server. */
export function addressOf(server: PostgresServer, database: string): SharedAddress {
  return {
    config: { host: server.socketFolder, port: server.port, user: "grove", database },
    schema: SCHEMA,
  };
}

/** Gives a root to a holder, as a take-over does, and tells its state there. */
export async function hold(client: pg.Client, number: number, epoch = 1): Promise<HeldRoot> {
  await client.query(
    `INSERT INTO holding (root_number, instance, epoch, last_batch, last_group, prior_epoch, prior_group)
     VALUES ($1, 'a process', $2, 0, '', 0, '')
     ON CONFLICT (root_number) DO UPDATE SET epoch = $2, prior_epoch = holding.epoch, prior_group = holding.last_group`,
    [number, epoch],
  );
  const { rows } = await client.query("SELECT last_batch AS batch FROM holding WHERE root_number = $1", [
    number,
  ]);
  return { number, epoch, batch: (rows[0] as { batch: number }).batch };
}

/** The content of a small file, as an effect that is easy to see. */
export function content(inodeId: number, text: string): { table: string; gone: object[]; rows: object[] } {
  return { table: "inline_content", gone: [], rows: [{ inode_id: inodeId, data: Buffer.from(text) }] };
}

/** What the table holds, by inode. */
export async function contents(client: pg.Client): Promise<Record<string, string>> {
  const { rows } = await client.query("SELECT inode_id AS id, data FROM inline_content ORDER BY inode_id");
  return Object.fromEntries(
    (rows as { id: number; data: Buffer }[]).map(({ id, data }) => [id, data.toString()]),
  );
}

/** Connections of the product that wait for something of a kind. */
export async function waiting(at: PostgresServer, kind: string): Promise<number[]> {
  const found = await at.sql(
    "postgres",
    `SELECT pid FROM pg_stat_activity WHERE application_name = 'grove fileserver'
     AND (wait_event = '${kind}' OR wait_event_type = '${kind}')`,
  );
  return found.split("\n").filter(Boolean).map(Number);
}

/** The first of them, once there is one. */
export const firstWaiting = (at: PostgresServer, kind: string): Promise<number> =>
  until(async () => (await waiting(at, kind))[0], `a connection that waits for ${kind}`);
