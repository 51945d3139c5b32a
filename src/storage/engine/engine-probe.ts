// What a database and a bucket must do for the shared engine, tried from outside a FileServer.
import type { ClientBase } from "pg";
import type { Clock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";
import { silentLogger } from "#base/log.ts";
import type { Random } from "#base/random.ts";
import { crc32 } from "#os/crc32.ts";
import { checkBucket } from "#storage/object-store/bucket-check.ts";
import { openRequests } from "#storage/object-store/object-store.ts";
import { bytesBody } from "#storage/object-store/s3-client.ts";
import { StoreMarker } from "#storage/object-store/store-marker.ts";
import type { StoreSettings } from "#storage/object-store/store-settings.ts";
import { connectToPrimary, type SharedAddress, sharedAddresses } from "#storage/shared/shared-connection.ts";
import { SharedLine } from "#storage/shared/shared-line.ts";
import type { EngineSettings } from "./engine-settings.ts";

/** How long a probe repeats a request that a busy store refused. */
const TRIES_MS = 3_000;
/** How long the database may take for all that is asked of it. */
const PROBE_ANSWER_MS = 10_000;

/** What was seen of the database. */
export interface DatabaseFacts {
  /** The database's clock minus ours. */
  readonly skewMs: number;
  /** False where a commit waits for no standby: its machine's loss loses what came last. */
  readonly waitsForStandby: boolean;
  /** Undefined before the first FileServer has made the tables. */
  readonly engine:
    | { readonly incarnation: string; readonly servers: number; readonly roots: number }
    | undefined;
}

/** What was seen of the bucket. */
export interface BucketProbe {
  /** The store's clock minus ours; undefined where it tells no time. */
  readonly skewMs: number | undefined;
  /** Whether the store itself refuses bytes that do not match their checksum. */
  readonly checksBytes: boolean;
  /** The database whose servers may remove chunks there; undefined without a marker. */
  readonly incarnation: string | undefined;
}

/** Connects as a FileServer does and tries a change, which it takes back. Throws what that throws. */
export async function probeDatabase(
  addresses: readonly SharedAddress[],
  clock: Clock,
): Promise<DatabaseFacts> {
  const connect = () => connectToPrimary(addresses);
  const line = new SharedLine({ connect, clock, answerMs: PROBE_ANSWER_MS });
  try {
    return await line.run((client) => seenOf(client, clock));
  } finally {
    line.close();
  }
}

async function seenOf(client: ClientBase, clock: Clock): Promise<DatabaseFacts> {
  const askedAtMs = clock.wallMs();
  const { rows } = await client.query(
    `SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS "nowMs",
         current_setting('synchronous_standby_names') <> ''
           AND current_setting('synchronous_commit') IN ('on', 'remote_apply') AS "waitsForStandby",
         to_regclass('identity') IS NOT NULL AS "hasTables",
         has_database_privilege(current_database(), 'CREATE') AS "mayMake"`,
  );
  const seen = rows[0] as { nowMs: number } & Record<"waitsForStandby" | "hasTables" | "mayMake", boolean>;
  const skewMs = seen.nowMs - (askedAtMs + clock.wallMs()) / 2;
  const { waitsForStandby } = seen;
  if (!seen.hasTables) {
    if (!seen.mayMake)
      throw new GroveError("BAD_ARGUMENT", "this user may not make the engine's schema in the database");
    return { skewMs, waitsForStandby, engine: undefined };
  }
  await client.query("BEGIN");
  try {
    await client.query("UPDATE identity SET incarnation = incarnation");
    const counted = await client.query(
      `SELECT incarnation, (SELECT count(*) FROM instance WHERE NOT is_ended) AS servers,
           (SELECT count(*) FROM root) AS roots FROM identity`,
    );
    return { skewMs, waitsForStandby, engine: counted.rows[0] as NonNullable<DatabaseFacts["engine"]> };
  } finally {
    await client.query("ROLLBACK").catch(() => undefined);
  }
}

/** Writes, reads and removes objects of its own. Throws BAD_ARGUMENT for a bucket that must not be used. */
export async function probeBucket(
  settings: StoreSettings,
  deps: { readonly clock: Clock; readonly random: Random; readonly fraction: () => number },
): Promise<BucketProbe> {
  const requests = await openRequests({ ...deps, settings, logger: silentLogger, triesMs: TRIES_MS });
  try {
    const { checksBytes } = await checkBucket(requests, settings.prefix, deps.random);
    const key = `${settings.prefix}probe/${deps.random.bytes(16).toString("hex")}`;
    const bytes = deps.random.bytes(64);
    await requests.putNew(key, bytesBody([bytes], bytes.length), crc32(bytes));
    const unconfirmed = await requests.deleteMany([key]);
    if (unconfirmed.size > 0 || (await requests.headOf(key)) !== undefined) {
      throw new GroveError("BAD_ARGUMENT", "the bucket keeps an object that was removed");
    }
    const incarnation = await new StoreMarker(requests, settings.prefix).incarnation();
    return { skewMs: requests.client.clockSkewMs, checksBytes, incarnation };
  } finally {
    requests.client.close();
  }
}

/** The servers of an engine's database. */
export function probedAddresses(
  { database }: EngineSettings,
  env: Readonly<Record<string, string | undefined>>,
): SharedAddress[] {
  return sharedAddresses(database, env);
}
