// Asks PostgreSQL for the rows behind facts, in one statement and so in one version.
import type pg from "pg";
import { ROOT_STRIDE } from "#storage/contract/inode.ts";
import type { FetchedRows } from "./row-cache.ts";
import type { Fact } from "./row-facts.ts";

/** A root's holder as the database has it. */
export interface Holding {
  readonly number: number;
  readonly instance: string;
  readonly epoch: number;
  readonly batch: number;
}

/** Rows, and the holders of all roots that they belong to. */
export interface Fetched extends FetchedRows {
  readonly holdings: readonly Holding[];
}

/** `$1` to `$18` are lists of what is asked for, empty for what is not. Half-keys come in pairs of lists. */
const FETCH = `
  WITH RECURSIVE
  asked AS (
    SELECT * FROM root WHERE owner = ANY ($1) OR number = ANY ($2)
  ),
  up AS (
    SELECT i.* FROM inode i WHERE i.id = ANY ($3)
    UNION SELECT p.* FROM up JOIN inode p ON p.id = up.parent_id
  ),
  paths AS (
    SELECT q.owner, ARRAY(SELECT json_array_elements_text(q.names::json)) AS names
    FROM unnest($16::text[], $17::text[]) AS q (owner, names)
  ),
  walk AS (
    SELECT i.id, paths.names, 1 AS next FROM paths JOIN root r ON r.owner = paths.owner JOIN inode i ON i.id = r.directory_id
    UNION ALL SELECT i.id, walk.names, walk.next + 1 FROM walk
      JOIN inode i ON i.parent_id = walk.id AND i.name = walk.names[walk.next]
  ),
  items AS (
    SELECT t.* FROM unnest($12::bigint[], $13::text[]) AS q (root, item) JOIN trash t ON t.root_number = q.root AND t.id = q.item
    UNION SELECT t.* FROM trash t WHERE t.root_number = ANY ($15)
  ),
  positions AS (
    SELECT f.* FROM file_chunk f WHERE f.content_id = ANY ($9) OR f.chunk_id = ANY ($11)
  ),
  chunks AS (
    SELECT c.* FROM chunk c
    WHERE c.id = ANY ($10) OR c.id IN (SELECT chunk_id FROM file_chunk WHERE content_id = ANY ($9))
  ),
  answers AS (
    SELECT 'root' AS "table", row_to_json(asked) AS row FROM asked
    UNION ALL SELECT 'share_grant', row_to_json(g) FROM asked JOIN share_grant g ON g.owner = asked.owner
    UNION ALL SELECT 'lock', row_to_json(l) FROM asked JOIN lock l ON l.root_number = asked.number
    UNION ALL SELECT 'link', row_to_json(l) FROM asked JOIN link l ON l.root_number = asked.number
    UNION ALL SELECT 'upload', row_to_json(u) FROM asked JOIN upload u ON u.root_number = asked.number
    UNION ALL SELECT 'staging', row_to_json(s) FROM asked JOIN staging s ON s.root_number = asked.number
    UNION ALL SELECT 'copying', row_to_json(c) FROM asked JOIN copying c ON (c.inode_id >> 32) = asked.number
    UNION ALL SELECT 'purging', row_to_json(p) FROM asked
      JOIN purging p ON (coalesce(p.inode_id, p.content_id) >> 32) = asked.number
    UNION ALL SELECT 'inode', row_to_json(up) FROM up
    UNION ALL SELECT 'inode', row_to_json(i) FROM unnest($4::bigint[], $5::text[]) AS q (parent, name)
      JOIN inode i ON i.parent_id = q.parent AND i.name = q.name
    UNION ALL SELECT 'inode', row_to_json(i) FROM inode i WHERE i.parent_id = ANY ($6)
    UNION ALL SELECT 'inode', row_to_json(i) FROM inode i WHERE i.parent_id = ANY ($7) AND i.height > 0
    UNION ALL SELECT 'inode', row_to_json(i) FROM walk JOIN inode i ON i.id = walk.id
    UNION ALL SELECT 'inline_content', row_to_json(c) FROM inline_content c WHERE c.inode_id = ANY ($8)
    UNION ALL SELECT 'property', row_to_json(p) FROM property p WHERE p.inode_id = ANY ($18)
    UNION ALL SELECT 'file_chunk', row_to_json(positions) FROM positions
    UNION ALL SELECT 'chunk', row_to_json(chunks) FROM chunks
    UNION ALL SELECT 'garbage', row_to_json(g) FROM chunks JOIN garbage g ON g.chunk_id = chunks.id
    UNION ALL SELECT 'damaged_chunk', row_to_json(d) FROM chunks JOIN damaged_chunk d ON d.chunk_id = chunks.id
    UNION ALL SELECT 'inode', row_to_json(i) FROM file_chunk f JOIN inode i ON i.content_id = f.content_id
      WHERE f.chunk_id = ANY ($11)
    UNION ALL SELECT 'trash', row_to_json(items) FROM items
    UNION ALL SELECT 'inode', row_to_json(i) FROM items JOIN inode i ON i.id = items.inode_id
    UNION ALL SELECT 'trash_grant', row_to_json(g) FROM items
      JOIN trash_grant g ON g.root_number = items.root_number AND g.trash_id = items.id
    UNION ALL SELECT 'holding', row_to_json(h) FROM holding h
      WHERE h.root_number = ANY ($14) OR h.root_number IN (SELECT number FROM asked)
  )
  SELECT "table", row FROM answers`;

/** Reads the rows of facts. Throws what pg throws. */
export async function fetchRows(client: pg.ClientBase, facts: readonly Fact[]): Promise<Fetched> {
  const ids = (kind: Fact["kind"]): number[] =>
    facts.flatMap((fact) => (fact.kind === kind && "id" in fact ? [fact.id] : []));
  const names = facts.filter((fact) => fact.kind === "name");
  const paths = facts.filter((fact) => fact.kind === "path");
  const items = facts.filter((fact) => fact.kind === "trash");
  const owners = facts.flatMap((fact) => (fact.kind === "root" ? [fact.owner] : []));
  const { rows } = await client.query(FETCH, [
    owners,
    ids("number"),
    ids("inode"),
    names.map(({ id }) => id),
    names.map(({ name }) => name),
    ids("children"),
    ids("heights"),
    ids("inline"),
    ids("list"),
    ids("chunk"),
    ids("users"),
    items.map(({ id }) => id),
    items.map(({ item }) => item),
    facts.flatMap(rootNumbersOf),
    ids("trashes"),
    paths.map(({ owner }) => owner),
    paths.map(({ names: path }) => JSON.stringify(path)),
    ids("properties"),
  ]);
  const found = rows as { table: string; row: Record<string, unknown> }[];
  return {
    facts: [...facts, ...otherNames(found)],
    rows: found.filter(({ table }) => table !== "holding"),
    holdings: found.filter(({ table }) => table === "holding").map(({ row }) => holdingOf(row)),
  };
}

/** Who asks by one name of a root need not ask again by the other. */
function otherNames(rows: readonly { table: string; row: Record<string, unknown> }[]): Fact[] {
  return rows.flatMap(({ table, row }) =>
    table === "root"
      ? [
          { kind: "root", owner: String(row["owner"]) },
          { kind: "number", id: Number(row["number"]) },
        ]
      : [],
  );
}

function holdingOf(row: Record<string, unknown>): Holding {
  return {
    number: Number(row["root_number"]),
    instance: String(row["instance"]),
    epoch: Number(row["epoch"]),
    batch: Number(row["last_batch"]),
  };
}

/** The root of a fact, where its number tells; a chunk's does not. */
function rootNumbersOf(fact: Fact): number[] {
  switch (fact.kind) {
    case "root":
    case "path":
    case "chunk":
    case "users":
      return [];
    case "number":
    case "trash":
    case "trashes":
      return [fact.id];
    default:
      return [Math.floor(fact.id / ROOT_STRIDE)];
  }
}
