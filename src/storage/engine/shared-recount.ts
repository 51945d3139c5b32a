// The recount of the shared engine: counters of the roots held here beside what PostgreSQL counts (D16, A-17).
import type pg from "pg";
import type { RecountFinding, RecountPass } from "#storage/contract/recount-types.ts";
import { PROPERTY_BYTES } from "#storage/metadata/property-rows.ts";
import { KIND_DIRECTORY, KIND_FILE } from "#storage/metadata/schema.ts";
import {
  factsOf,
  RECOUNT_SLICE_ROWS,
  type RootCount,
  type RootNumbers,
  type TreeSums,
  type Whereabouts,
} from "#storage/metadata/tree-count.ts";
import type { PassStep } from "#storage/scrub/pass-thread.ts";
import { RecountTally, type UploadCount } from "#storage/scrub/recount-tally.ts";
import type { SharedLine } from "#storage/shared/shared-line.ts";
import { type HeldRoots, nextRoot } from "./held-roots.ts";

/** Cost in rows of the look-up of a root. */
const LOOK_ROWS = 4;

/** Directories of a slice of inodes that differ from their entries; those under removal are no sums. */
const DIRECTORIES = `
  WITH slice AS (
    SELECT id, kind, size, child_count, tree_inodes, tree_files, height FROM inode
    WHERE id > $1 AND id <= $2 ORDER BY id LIMIT ${RECOUNT_SLICE_ROWS}
  ), counted AS (
    SELECT d.id, d.size, d.child_count, d.tree_inodes, d.tree_files, d.height, e.*
    FROM slice d CROSS JOIN LATERAL (
      SELECT count(*) AS entries, coalesce(sum(i.size), 0)::bigint AS bytes,
        coalesce(sum(1 + i.tree_inodes), 0)::bigint AS inodes,
        coalesce(sum(CASE i.kind WHEN ${KIND_FILE} THEN 1 ELSE i.tree_files END), 0)::bigint AS files,
        coalesce(1 + max(i.height), 0) AS levels
      FROM inode i WHERE i.parent_id = d.id
    ) e
    WHERE d.kind = ${KIND_DIRECTORY} AND NOT EXISTS (SELECT 1 FROM purging p WHERE p.inode_id = d.id)
  )
  SELECT (SELECT count(*) FROM slice) + (SELECT coalesce(sum(entries), 0)::bigint FROM counted) AS rows,
    (SELECT max(id) FROM slice) AS end,
    (SELECT json_agg(off) FROM (
       SELECT * FROM counted WHERE (size, child_count, tree_inodes, tree_files, height)
         IS DISTINCT FROM (bytes, entries, inodes, files, levels) ORDER BY id LIMIT ${RECOUNT_SLICE_ROWS}
     ) off) AS off`;

const WHEREABOUTS = `
  WITH RECURSIVE up AS (
    SELECT id, parent_id FROM inode WHERE id = $1
    UNION ALL SELECT p.id, p.parent_id FROM up JOIN inode p ON p.id = up.parent_id
  )
  SELECT CASE
    WHEN EXISTS (SELECT 1 FROM root r WHERE r.directory_id = up.id) THEN 'live'
    WHEN EXISTS (SELECT 1 FROM trash t WHERE t.inode_id = up.id) THEN 'trash'
    ELSE 'passing' END AS place FROM up WHERE parent_id IS NULL`;

const BETWEEN = "BETWEEN $1::bigint << 32 AND ($1::bigint << 32) + 4294967295";

const ROOT = `
  SELECT r.owner, r.live_bytes AS live, r.trash_bytes AS trash, r.staging_bytes AS staging,
    r.file_count AS "fileCount", r.live_inodes AS "liveInodes", r.trash_inodes AS "trashInodes",
    r.grant_count AS "grantCount", r.next_id AS "nextId", r.lock_count AS "saidLocks",
    r.property_bytes AS "saidProperties", i.size, i.tree_files AS files, i.tree_inodes AS inodes,
    (SELECT count(*) FROM share_grant WHERE inode_id ${BETWEEN}) AS grants,
    (SELECT coalesce(max(id), 0) FROM inode WHERE id ${BETWEEN}) AS "lastId",
    (SELECT count(*) FROM lock WHERE root_number = $1) AS locks,
    (SELECT coalesce(sum(${PROPERTY_BYTES}), 0)::bigint FROM property WHERE inode_id ${BETWEEN}) AS properties,
    (SELECT coalesce(sum(staged_bytes), 0)::bigint FROM upload WHERE root_number = $1) AS staged,
    (SELECT coalesce(sum(t.size), 0)::bigint FROM trash JOIN inode t ON t.id = inode_id WHERE root_number = $1)
      AS "trashedBytes",
    (SELECT coalesce(sum(1 + t.tree_inodes), 0)::bigint FROM trash JOIN inode t ON t.id = inode_id
      WHERE root_number = $1) AS "trashedInodes",
    (SELECT count(*) FROM trash WHERE root_number = $1) AS items
  FROM root r LEFT JOIN inode i ON i.id = r.directory_id WHERE r.number = $1`;

const UPLOADS = `
  SELECT u.content_id AS "contentId", u.staged_bytes AS said,
    (SELECT coalesce(sum(c.length), 0)::bigint FROM file_chunk f JOIN chunk c ON c.id = f.chunk_id
      WHERE f.content_id = u.content_id) AS is
  FROM upload u WHERE u.root_number = $1`;

interface OffRow {
  readonly id: number;
  readonly size: number;
  readonly child_count: number;
  readonly tree_inodes: number;
  readonly tree_files: number;
  readonly height: number;
  readonly entries: number;
  readonly bytes: number;
  readonly inodes: number;
  readonly files: number;
  readonly levels: number;
}

type Step = PassStep<RecountPass, readonly RecountFinding[]>;

/**
 * Counts the roots that are held here, each slice in one version of the database. A directory's difference
 * from its entries is the same in every committed state, and so is that of a root's counters.
 */
export class SharedRecount {
  readonly #line: SharedLine;
  readonly #roots: Pick<HeldRoots, "all">;

  constructor({ line, roots }: { line: SharedLine; roots: Pick<HeldRoots, "all"> }) {
    this.#line = line;
    this.#roots = roots;
  }

  /** The rest of a pass. Throws what pg throws when it does not answer. */
  async *steps(from: RecountPass): AsyncGenerator<Step> {
    const tally = new RecountTally(from);
    while (tally.pass.lastId > 0 || (await this.#beginRoot(tally))) {
      while (tally.pass.position < tally.pass.lastId) {
        yield await this.#inOneVersion(tally, (client) => directories(client, tally));
      }
      yield await this.#inOneVersion(tally, (client) => rootOf(client, tally));
    }
  }

  async #beginRoot(tally: RecountTally): Promise<boolean> {
    const number = nextRoot(this.#roots, tally.pass.root);
    if (number === undefined) return false;
    const last = await this.#line.run(async (client) => {
      const { rows } = await client.query(`SELECT max(id) AS last FROM inode WHERE id ${BETWEEN}`, [number]);
      return (rows[0] as { last: number | null }).last;
    });
    tally.beginRoot(number, last ?? undefined);
    return true;
  }

  async #inOneVersion(tally: RecountTally, count: (client: pg.Client) => Promise<number>): Promise<Step> {
    const cost = await this.#line.run(async (client) => {
      await client.query("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
      const rows = await count(client);
      await client.query("COMMIT");
      return rows;
    });
    const pass = { ...tally.pass, rows: tally.pass.rows + cost };
    tally.pass = pass;
    return { pass, cost, found: tally.take() };
  }
}

async function directories(client: pg.Client, tally: RecountTally): Promise<number> {
  const { position, lastId, root } = tally.pass;
  const { rows } = await client.query(DIRECTORIES, [position, lastId]);
  const found = rows[0] as { rows: number; end: number | null; off: OffRow[] | null };
  const owner = found.off === null ? undefined : await ownerOf(client, root);
  for (const row of found.off ?? []) {
    const placed = await client.query(WHEREABOUTS, [row.id]);
    const where = (placed.rows[0] as { place: Whereabouts } | undefined)?.place ?? "nowhere";
    tally.directory({ id: row.id, said: saidOf(row), is: sumsOf(row) }, where, owner);
  }
  tally.pass = { ...tally.pass, position: found.end ?? lastId };
  return found.rows;
}

async function rootOf(client: pg.Client, tally: RecountTally): Promise<number> {
  const { root: number } = tally.pass;
  const [row] = (await client.query(ROOT, [number])).rows as (RootNumbers & {
    owner: string;
    size: number | null;
    items: number;
  })[];
  const uploads = (await client.query(UPLOADS, [number])).rows as UploadCount[];
  const root: RootCount | undefined = row && {
    number,
    owner: row.owner,
    facts: row.size === null ? undefined : factsOf(row),
  };
  tally.root(root, uploads);
  return LOOK_ROWS + (row?.items ?? 0) + uploads.length;
}

async function ownerOf(client: pg.Client, number: number): Promise<string | undefined> {
  const { rows } = await client.query("SELECT owner FROM root WHERE number = $1", [number]);
  return (rows[0] as { owner: string } | undefined)?.owner;
}

function saidOf(row: OffRow): TreeSums {
  const { size: bytes, child_count: entries, tree_inodes: inodes, tree_files: files, height } = row;
  return { bytes, entries, inodes, files, height };
}

function sumsOf({ bytes, entries, inodes, files, levels: height }: OffRow): TreeSums {
  return { bytes, entries, inodes, files, height };
}
