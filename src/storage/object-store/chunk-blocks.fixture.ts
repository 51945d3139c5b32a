// Rows of blocks and dropped chunks for tests, in SQLite: what the shared engine keeps in its database.
import { DatabaseSync } from "node:sqlite";
import type { ListedChunk, ListedChunks } from "./bucket-list.ts";
import type { ChunkBlock, ChunkBlocks, EndedBlock, EndedSelect } from "./chunk-blocks.ts";
import type { DroppedChunk, DroppedChunks } from "./dropped-chunks.ts";

type Row = Record<string, string | number | null>;

/** Rows of one database; a file outlives a process that is killed. */
export class ChunkRows implements ChunkBlocks, DroppedChunks, ListedChunks {
  readonly #sql: DatabaseSync;
  /** Called before a block's row is written. */
  beforeAdd: () => Promise<void> = () => Promise.resolve();

  constructor(path = ":memory:") {
    this.#sql = new DatabaseSync(path);
    this.#sql.exec(`
      PRAGMA journal_mode = WAL;
      CREATE TABLE IF NOT EXISTS block (
        id TEXT PRIMARY KEY, root_id TEXT, epoch INTEGER, since_ms INTEGER, ended_ms INTEGER, swept INTEGER DEFAULT 0
      );
      CREATE TABLE IF NOT EXISTS chunk (
        id INTEGER PRIMARY KEY, name TEXT UNIQUE, length INTEGER, dropped_ms INTEGER
      );
    `);
  }

  async add({ id, rootId, epoch, sinceMs }: ChunkBlock): Promise<void> {
    await this.beforeAdd();
    this.#sql
      .prepare("INSERT INTO block (id, root_id, epoch, since_ms) VALUES (?, ?, ?, ?)")
      .run(id, rootId, epoch, sinceMs);
  }

  async drop(id: string): Promise<void> {
    this.#sql.prepare("DELETE FROM block WHERE id = ?").run(id);
  }

  async close(id: string): Promise<void> {
    this.#sql.prepare("UPDATE block SET ended_ms = since_ms WHERE id = ?").run(id);
  }

  async ended(select: EndedSelect): Promise<EndedBlock[]> {
    return this.#all(
      `SELECT * FROM block WHERE ended_ms < ? AND swept = ? AND (ended_ms, id) > (?, ?)
       ORDER BY ended_ms, id LIMIT ?`,
      select.beforeMs,
      select.isSweptOnce ? 1 : 0,
      select.after?.endedMs ?? -1,
      select.after?.id ?? "",
      select.limit,
    ).map((row) => ({
      id: String(row["id"]),
      rootId: String(row["root_id"]),
      epoch: Number(row["epoch"]),
      sinceMs: Number(row["since_ms"]),
      endedMs: Number(row["ended_ms"]),
      isSweptOnce: row["swept"] === 1,
    }));
  }

  async kept(names: readonly string[]): Promise<ReadonlySet<string>> {
    const rows = this.#all(
      "SELECT name FROM chunk WHERE name IN (SELECT value FROM json_each(?))",
      JSON.stringify(names),
    );
    return new Set(rows.map(({ name }) => String(name)));
  }

  async sweptOnce(id: string): Promise<void> {
    this.#sql.prepare("UPDATE block SET swept = 1 WHERE id = ?").run(id);
  }

  async due(select: { beforeMs: number; afterId: number; limit: number }): Promise<DroppedChunk[]> {
    const { beforeMs, afterId, limit } = select;
    return this.#all(
      "SELECT id, name FROM chunk WHERE dropped_ms < ? AND id > ? ORDER BY id LIMIT ?",
      beforeMs,
      afterId,
      limit,
    ).map((row) => ({ id: Number(row["id"]), name: String(row["name"]) }));
  }

  async gone(ids: readonly number[]): Promise<void> {
    this.#sql
      .prepare("DELETE FROM chunk WHERE id IN (SELECT value FROM json_each(?))")
      .run(JSON.stringify(ids));
  }

  async page(afterName: string, limit: number): Promise<ListedChunk[]> {
    return this.#all(
      "SELECT name, length FROM chunk WHERE dropped_ms IS NULL AND name > ? ORDER BY name LIMIT ?",
      afterName,
      limit,
    ).map((row) => ({ name: String(row["name"]), length: Number(row["length"]) }));
  }

  async explained(names: readonly string[]): Promise<ReadonlySet<string>> {
    const rows = this.#all(
      `SELECT value AS name FROM json_each(?) WHERE EXISTS (SELECT 1 FROM block WHERE id = substr(value, 1, 32))
       OR EXISTS (SELECT 1 FROM chunk WHERE chunk.name = value)`,
      JSON.stringify(names),
    );
    return new Set(rows.map(({ name }) => String(name)));
  }

  /** Gives a chunk its row, as a commit does. */
  commit(name: string, length: number): void {
    this.#sql.prepare("INSERT INTO chunk (name, length) VALUES (?, ?)").run(name, length);
  }

  /** Drops a chunk, as the removal of its last file does. */
  dropChunk(name: string, atMs: number): void {
    this.#sql.prepare("UPDATE chunk SET dropped_ms = ? WHERE name = ?").run(atMs, name);
  }

  /** Ends an epoch, as a take-over does. */
  endEpoch(epoch: number, atMs: number): void {
    this.#sql.prepare("UPDATE block SET ended_ms = ? WHERE epoch = ? AND ended_ms IS NULL").run(atMs, epoch);
  }

  /** Ids of all blocks. */
  get blocks(): string[] {
    return this.#all("SELECT id FROM block ORDER BY id").map(({ id }) => String(id));
  }

  /** Names of all chunks with a row. */
  get chunks(): string[] {
    return this.#all("SELECT name FROM chunk ORDER BY name").map(({ name }) => String(name));
  }

  end(): void {
    this.#sql.close();
  }

  #all(sql: string, ...values: (string | number)[]): Row[] {
    return this.#sql.prepare(sql).all(...values) as Row[];
  }
}
