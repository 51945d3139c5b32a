// The tables that a commit writes: names, keys and columns, as SQLite's schema has them.

/** Type of a column in PostgreSQL; the tables of SQLite are STRICT, so that nothing else is in them. */
export type ColumnType = "BIGINT" | "TEXT" | "BYTEA";

/** One column. */
export interface SharedColumn {
  readonly name: string;
  readonly type: ColumnType;
  readonly isNullable: boolean;
}

/** One table. Its rows are written by their keys only, as the last state of each. */
export interface SharedTable {
  readonly name: string;
  readonly key: readonly string[];
  readonly columns: readonly SharedColumn[];
}

/** All of them; a test compares them with SQLite's. */
export const SHARED_TABLES: readonly SharedTable[] = [
  table(
    "root",
    "number",
    `number, owner text, root_id text, directory_id, access_version, live_bytes, trash_bytes, staging_bytes,
     file_count, next_id, grant_count, live_inodes, trash_inodes, lock_version, lock_count, property_bytes`,
  ),
  table(
    "inode",
    "id",
    `id, parent_id?, name text, kind, size, crc32, version, mtime_ms, ctime_ms, flags, content_id?,
     created_by? text, child_count, tree_inodes, tree_files, height`,
  ),
  table("inline_content", "inode_id", "inode_id, data bytea"),
  table("chunk", "id", "id, name text, length, crc32, block_crcs bytea, refs"),
  table("file_chunk", "content_id, position", "content_id, position, chunk_id"),
  table("staging", "content_id", "content_id, root_number"),
  table("copying", "inode_id", "inode_id"),
  table("purging", "id", "id, inode_id?, content_id?"),
  table("garbage", "sequence", "sequence, chunk_id"),
  table(
    "share_grant",
    "inode_id, username",
    "inode_id, username text, granted_by text, granted_at_ms, owner text, path text, excluded",
  ),
  table(
    "trash",
    "root_number, id",
    "root_number, id text, inode_id, original_path text, trashed_at_ms, trashed_by? text",
  ),
  table(
    "trash_grant",
    "root_number, trash_id, inode_id, username",
    "root_number, trash_id text, inode_id, username text, path text, excluded",
  ),
  table("damaged_chunk", "chunk_id", "chunk_id, found_at_ms, problem text"),
  table(
    "upload",
    "content_id",
    `content_id, upload_id text, root_number, username text, path text, size, replaces, if_match? text, mtime_ms,
     staged_bytes, crc32, touched_at_ms`,
  ),
  table(
    "lock",
    "token",
    `token text, root_number, inode_id, username text, credential text, is_exclusive, is_deep, note text,
     expires_at_ms`,
  ),
  table("property", "inode_id, namespace, name", "inode_id, namespace text, name text, xml text"),
  table(
    "link",
    "id",
    `id text, root_number, inode_id, token_hash text, kind text, password text, pass_key text, created_ms, ends_ms,
     max_downloads, max_bytes, max_files, downloads, bytes, files, recent text`,
  ),
];

/** Columns as `name`, `name text`, and `name?` for what may be missing. */
export function table(name: string, key: string, columns: string): SharedTable {
  return { name, key: key.split(", "), columns: columns.split(/,\s+/).map(column) };
}

function column(text: string): SharedColumn {
  const [word = "", type = "bigint"] = text.split(" ");
  const isNullable = word.endsWith("?");
  const name = isNullable ? word.slice(0, -1) : word;
  return { name, type: type.toUpperCase() as ColumnType, isNullable };
}

/** Deletes first, so that a name may go to another row; then each row in its last state. */
export function writesOf({ name, key, columns }: SharedTable): string {
  const names = columns.map((column) => column.name);
  const others = names.filter((column) => !key.includes(column));
  const set = others.map((column) => `${column} = excluded.${column}`).join(", ");
  const same = key.map((column) => `t.${column} = gone.${column}`).join(" AND ");
  return `WHEN '${name}' THEN
        IF p_gone[at] IS NOT NULL THEN
          DELETE FROM ${name} t USING json_populate_recordset(NULL::${name}, p_gone[at]) gone WHERE ${same};
        END IF;
        IF p_rows[at] IS NOT NULL THEN
          INSERT INTO ${name} (${names.join(", ")})
          SELECT ${names.join(", ")} FROM json_populate_recordset(NULL::${name}, p_rows[at])
          ON CONFLICT (${key.join(", ")}) DO ${set === "" ? "NOTHING" : `UPDATE SET ${set}`};
        END IF;`;
}
