// `grove fsck` of the shared engine: one snapshot of its rows by the rules of the local engine, and the bucket
// beside them.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type pg from "pg";
import type { Clock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";
import { CHECK_DIFFERENCES_LISTED } from "#base/limits.ts";
import { silentLogger } from "#base/log.ts";
import type { StorageReport } from "#storage/check/check-report.ts";
import { checkRows } from "#storage/check/check-storage.ts";
import { migrate } from "#storage/metadata/schema.ts";
import { type BucketDifference, compareBucket } from "#storage/object-store/bucket-list.ts";
import { openRequests } from "#storage/object-store/object-store.ts";
import { StoreMarker } from "#storage/object-store/store-marker.ts";
import type { StoreSettings } from "#storage/object-store/store-settings.ts";
import { ROOT_COLUMNS } from "#storage/shared/own-roots.ts";
import { connectToPrimary, type SharedAddress } from "#storage/shared/shared-connection.ts";
import { SharedLine } from "#storage/shared/shared-line.ts";
import { SHARED_TABLES, type SharedTable } from "#storage/shared/shared-tables.ts";
import { EngineRows } from "./engine-rows.ts";
import { REMOVAL_LOCK } from "./removal-passes.ts";
import { beginAnew, clearMarks, leaveToSweeps } from "./restored-engine.ts";

const ROWS_AT_ONCE = 5_000;
/** A page of the comparison may wait for a busy database so long. */
const ANSWER_MS = 60_000;

/** What is checked. */
export interface EngineCheck {
  readonly database: readonly SharedAddress[];
  /** The bucket, to be listed and compared with the rows; undefined for rows alone. */
  readonly bucket: StoreSettings | undefined;
  /** True after the database was restored to an earlier moment: then its leases begin anew. Needs the bucket. */
  readonly isRestored?: boolean;
  readonly clock: Clock;
  readonly fraction: () => number;
}

/**
 * Checks the engine while FileServers may use it. The rows are copied to a folder for temporary files, which
 * needs room for them. Throws what pg throws, the store's errors, and DATA_IN_USE while chunks are being
 * removed.
 */
export async function checkEngine(check: EngineCheck): Promise<StorageReport> {
  const client = await connectToPrimary(check.database);
  const folder = mkdtempSync(join(tmpdir(), "grove-fsck-"));
  const db = new DatabaseSync(join(folder, "rows.db"), { enableForeignKeyConstraints: false });
  try {
    // The lock ends with the connection.
    if (check.bucket !== undefined) await requireNoRemoval(client);
    const cleared =
      check.isRestored === true && check.bucket !== undefined
        ? await restore(check, check.bucket, client)
        : [];
    const { dataId, unheld, outside } = await copyRows(client, db);
    const notes = [
      ...cleared,
      ...leftOut(outside.arriving.length, "on the way here from other nodes, and not checked yet"),
    ];
    notes.push(
      ...leftOut(outside.departed.length, "served elsewhere by now, and what is left here is not checked"),
    );
    const rows = checkRows(db);
    const more = unheld.map((owner) => `the root of ${owner} has no lease row: no FileServer can serve it`);
    if (check.bucket !== undefined) {
      const found = Map.groupBy(await differencesOfBucket(check, check.bucket), ({ kind }) =>
        kind === "orphan" && check.isRestored === true ? "left" : "wrong",
      );
      notes.push(...(await leave(client, found.get("left") ?? [])));
      more.push(...(found.get("wrong") ?? []).map(({ kind, name }) => `chunk ${name} ${SAID[kind]}`));
    }
    return {
      ...rows,
      dataId,
      differences: [...rows.differences, ...more].slice(0, CHECK_DIFFERENCES_LISTED),
      differenceCount: rows.differenceCount + more.length,
      notes: [...rows.notes, ...notes],
    };
  } finally {
    db.close();
    await client.end().catch(() => undefined);
    rmSync(folder, { recursive: true, force: true });
  }
}

async function requireNoRemoval(client: pg.Client): Promise<void> {
  const { rows } = await client.query('SELECT pg_try_advisory_lock($1) AS "isMine"', [REMOVAL_LOCK]);
  if ((rows[0] as { isMine: boolean }).isMine) return;
  throw new GroveError("DATA_IN_USE", "chunks are being removed at this moment; try again in some minutes");
}

/** FileServers begin there from now on, whatever is left of its content. What is whole again is said in words. */
async function restore(
  { clock, fraction }: EngineCheck,
  settings: StoreSettings,
  client: pg.Client,
): Promise<string[]> {
  const { rows } = await client.query("SELECT incarnation FROM identity");
  const requests = await openRequests({ settings, clock, fraction, logger: silentLogger });
  try {
    const { incarnation } = rows[0] as { incarnation: string };
    const marker = new StoreMarker(requests, settings.prefix);
    await marker.own(incarnation, false);
    await beginAnew(client);
    const { chunks, files } = await clearMarks(client, { requests, prefix: settings.prefix, marker });
    const again = `whole again, and no longer marked as damaged: ${chunks} chunks, ${files} files`;
    return chunks === 0 ? [] : [again];
  } finally {
    requests.client.close();
  }
}

async function copyRows(
  client: pg.Client,
  db: DatabaseSync,
): Promise<{
  readonly dataId: string;
  readonly unheld: readonly string[];
  readonly outside: OutsideRoots;
}> {
  db.exec("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF");
  migrate(db, "");
  db.exec("PRAGMA foreign_keys = OFF");
  await client.query("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
  const outside = await outsideRoots(client);
  for (const table of SHARED_TABLES) await copyTable(client, db, table, outside);
  const { rows } = await client.query(
    `SELECT incarnation, (SELECT json_agg(owner) FROM root
       WHERE NOT EXISTS (SELECT 1 FROM holding WHERE root_number = number)) AS unheld FROM identity`,
  );
  await client.query("COMMIT");
  const { incarnation, unheld } = rows[0] as { incarnation: string; unheld: string[] | null };
  return { dataId: incarnation, unheld: unheld ?? [], outside };
}

function leftOut(count: number, what: string): string[] {
  return count === 0 ? [] : [`${count === 1 ? "1 root is" : `${count} roots are`} ${what}`];
}

/** Numbers of roots whose rows are not whole: on their way here, or left behind by a move. */
interface OutsideRoots {
  readonly arriving: readonly number[];
  readonly departed: readonly number[];
}

async function outsideRoots(client: pg.Client): Promise<OutsideRoots> {
  const numbers = async (table: string, states: string): Promise<readonly number[]> => {
    const made = await client.query('SELECT to_regclass($1) IS NOT NULL AS "isMade"', [table]);
    if (!(made.rows[0] as { isMade: boolean }).isMade) return [];
    const { rows } = await client.query(`SELECT number FROM ${table} WHERE state IN (${states})`);
    return (rows as { number: number }[]).map(({ number }) => number);
  };
  return {
    arriving: await numbers("arrival", "'arriving'"),
    departed: await numbers("departure", "'departed', 'removing'"),
  };
}

/** The number of a row's root in SQL; undefined where a chunk's rows tell none. */
function rootInSql(table: string): string | undefined {
  if (table === "purging") return "coalesce(inode_id, content_id) >> 32";
  const [column, unit] = ROOT_COLUMNS[table] ?? [];
  return column === undefined || unit === 1 ? column : `${column} >> 32`;
}

function outsideOf({ arriving, departed }: OutsideRoots, table: string): string {
  const all = [...arriving, ...departed].join(", ");
  if (all === "") return "";
  const root = rootInSql(table);
  if (root !== undefined) return `WHERE (${root}) NOT IN (${all})`;
  const id = table === "chunk" ? "id" : "chunk_id";
  const without = (rows: string, numbers: readonly number[]): string =>
    numbers.length === 0 ? "TRUE" : `NOT EXISTS (SELECT 1 FROM ${rows} IN (${numbers.join(", ")}))`;
  const arrived = without(`arrived_chunk a WHERE a.chunk_id = ${table}.${id} AND a.number`, arriving);
  const listed = without(`file_chunk f WHERE f.chunk_id = ${table}.${id} AND f.content_id >> 32`, departed);
  return `WHERE ${arrived} AND ${listed}`;
}

async function copyTable(
  client: pg.Client,
  db: DatabaseSync,
  { name, columns }: SharedTable,
  outside: OutsideRoots,
): Promise<void> {
  const names = columns.map((column) => column.name);
  const insert = db.prepare(
    `INSERT INTO ${name} (${names.join(", ")}) VALUES (${names.map(() => "?").join(", ")})`,
  );
  await client.query(
    `DECLARE page NO SCROLL CURSOR FOR SELECT ${names.join(", ")} FROM ${name} ${outsideOf(outside, name)}`,
  );
  for (;;) {
    const { rows } = await client.query(`FETCH ${ROWS_AT_ONCE} FROM page`);
    db.exec("BEGIN");
    for (const row of rows as Record<string, string | number | Buffer | null>[]) {
      insert.run(...names.map((column) => row[column] ?? null));
    }
    db.exec("COMMIT");
    if (rows.length < ROWS_AT_ONCE) break;
  }
  await client.query("CLOSE page");
}

/** Leaves what was made after the restored moment to the sweeps. */
async function leave(client: pg.Client, strays: readonly BucketDifference[]): Promise<string[]> {
  if (strays.length === 0) return [];
  await leaveToSweeps(
    client,
    strays.map(({ name }) => name),
  );
  return [`${strays.length} objects of after the restored moment have no row, and wait for their removal`];
}

const SAID: Readonly<Record<BucketDifference["kind"], string>> = {
  foreign: "is no object of Grove's",
  orphan: "belongs to no row",
  missing: "has no object",
  length: "has an object of another length",
};

async function differencesOfBucket(
  { database, clock, fraction }: EngineCheck,
  settings: StoreSettings,
): Promise<BucketDifference[]> {
  const line = new SharedLine({ connect: () => connectToPrimary(database), clock, answerMs: ANSWER_MS });
  const requests = await openRequests({ settings, clock, fraction, logger: silentLogger });
  try {
    return await Array.fromAsync(compareBucket(requests, settings.prefix, new EngineRows(line)));
  } finally {
    requests.client.close();
    line.close();
  }
}
