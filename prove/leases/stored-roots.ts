// Rows of roots in a database of the product's own schema, changed by the product's own commands at once.
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { crc32 } from "#os/crc32.ts";
import { DEPARTED } from "#storage/metadata/moved-roots.ts";
import { migrate } from "#storage/metadata/schema.ts";
import { Ledger } from "#storage/metadata/unit-of-work.ts";
import { CommandTable } from "#storage/writer/command-table.ts";
import type { Command } from "#storage/writer/write-commands.ts";

/** Files of a root; each has the last value that was written to it. */
export const FILES = 4;
/** The latter half have chunks, small as they are. */
const CHUNKED_FROM = FILES / 2;

const NAME = (file: number): string => `f${file}`;

/** The database of a node's disk, or the shared engine's. */
export class StoredRoots {
  readonly db: DatabaseSync;
  /** Chunks by the names that rows have. */
  readonly chunks = new Map<string, Buffer>();
  readonly newName: () => string;
  #ledger: Ledger;
  #commands: CommandTable;
  readonly #files: StatementSync;
  readonly #owners: StatementSync;
  readonly #has: StatementSync;
  readonly #changes: StatementSync;
  /** What was read since rows have changed: judges look more often than anything changes. */
  readonly #read = new Map<string, number[] | undefined>();
  #readAt = -1;

  /** Ids of chunks and the like begin at `firstId`, where others give out those below. */
  constructor(newName: () => string, firstId?: number) {
    this.newName = newName;
    this.db = new DatabaseSync(":memory:", { enableForeignKeyConstraints: false });
    migrate(this.db, "simulated");
    if (firstId !== undefined) {
      this.db.exec(`
        INSERT INTO chunk (id, name, length, crc32, block_crcs, refs) VALUES (${firstId}, '', 0, 0, x'', 0);
        INSERT INTO garbage (sequence, chunk_id) VALUES (${firstId}, ${firstId});
        INSERT INTO purging (id, inode_id) VALUES (${firstId}, 1);`);
    }
    this.#ledger = new Ledger(this.db);
    this.#commands = new CommandTable(this.db, this.#ledger);
    this.db.exec("DELETE FROM garbage; DELETE FROM purging; DELETE FROM chunk");
    this.#files = this.db.prepare(
      `SELECT f.name AS file, i.data AS data, c.name AS chunk FROM root r
         JOIN inode f ON f.parent_id = r.directory_id LEFT JOIN inline_content i ON i.inode_id = f.id
         LEFT JOIN file_chunk p ON p.content_id = f.content_id LEFT JOIN chunk c ON c.id = p.chunk_id
       WHERE r.owner = ?`,
    );
    this.#changes = this.db.prepare("SELECT total_changes() AS changes");
    this.#has = this.db.prepare("SELECT 1 FROM root WHERE owner = ?");
    this.#owners = this.db.prepare(
      `SELECT owner, number, root_id AS rootId FROM root WHERE owner NOT GLOB '${DEPARTED}*' ORDER BY number`,
    );
  }

  /** Begins anew with what is stored, as the next process does. */
  reopen(): void {
    this.#ledger = new Ledger(this.db);
    this.#commands = new CommandTable(this.db, this.#ledger);
  }

  /** Runs one command as one transaction. Throws its refusal. */
  submit(command: Command): unknown {
    return this.change(() => this.#commands.apply(command));
  }

  /** Changes rows at once or not at all. */
  change<T>(run: () => T): T {
    this.db.exec("BEGIN");
    this.#ledger.begin();
    try {
      const result = run();
      this.#ledger.flush();
      this.db.exec("COMMIT");
      this.#ledger.committed();
      return result;
    } catch (error) {
      this.db.exec("ROLLBACK");
      this.#ledger.discard();
      throw error;
    }
  }

  /** Rows were changed beside the commands. */
  forget(): void {
    this.#ledger.discard();
  }

  /** Removes all that waits for it. */
  purge(): void {
    const { contents } = this.#commands;
    for (;;) {
      const next = contents.nextDetached(Number.MAX_SAFE_INTEGER);
      if (next === undefined) return;
      this.change(() => contents.purgeSlice(next));
    }
  }

  /** Removes chunks without a file, as the collector of a node's disks does. */
  collect(): void {
    const garbage = this.db.prepare("SELECT c.id, c.name FROM garbage JOIN chunk c ON c.id = chunk_id").all();
    if (garbage.length === 0) return;
    for (const { name } of garbage) this.chunks.delete(String(name));
    this.submit({ op: "dropGarbage", chunkIds: garbage.map(({ id }) => Number(id)) });
  }

  /** Makes a root under a number of the cluster, or under the next of its own; answers the number. */
  makeRoot(owner: string, number?: number): number {
    this.submit({
      op: "createRoot",
      owner,
      rootId: `id-${owner}`,
      nowMs: 1,
      ...(number === undefined ? {} : { number }),
    });
    return this.owners().find((root) => root.owner === owner)?.number ?? 0;
  }

  /** Writes a value to a file. Throws the refusal of a frozen or unknown root. */
  write(owner: string, file: number, value: number): void {
    const data = Buffer.from(`${value}`.padEnd(8 + (value % 40), "."));
    const by = { owner, by: owner, accessVersion: undefined, nowMs: 1 };
    const root = this.db.prepare("SELECT directory_id AS id FROM root WHERE owner = ?").get(owner);
    const isChunked = file >= CHUNKED_FROM;
    const name = this.newName();
    const chunk = { position: 0, name, length: data.length, crc32: crc32(data), blockCrcs: Buffer.alloc(4) };
    this.submit({
      op: "commitUpload",
      ...by,
      parentId: Number(root?.["id"] ?? 0),
      name: NAME(file),
      onExists: "replace",
      ifMatch: undefined,
      mtimeMs: 1,
      sizeBytes: data.length,
      crc32: crc32(data),
      content: isChunked ? { contentId: undefined, chunks: [chunk] } : { inline: data },
    });
    if (isChunked) this.chunks.set(name, data);
  }

  /** The values of a root's files, 0 for those that are not there; undefined without the root. */
  values(owner: string): readonly number[] | undefined {
    const { changes } = this.#changes.get() as { changes: number };
    if (changes !== this.#readAt) this.#read.clear();
    this.#readAt = changes;
    if (!this.#read.has(owner)) this.#read.set(owner, this.#valuesOf(owner));
    return this.#read.get(owner);
  }

  #valuesOf(owner: string): number[] | undefined {
    if (this.#has.get(owner) === undefined) return undefined;
    const values = Array.from({ length: FILES }, () => 0);
    for (const { file, data, chunk } of this.#files.all(owner) as unknown as FileRow[]) {
      const bytes = chunk === null ? data : this.chunks.get(chunk);
      values[Number(file.slice(1))] = bytes == null ? -1 : Number.parseInt(Buffer.from(bytes).toString(), 10);
    }
    return values;
  }

  /** True while the root is here. */
  has(owner: string): boolean {
    return this.values(owner) !== undefined;
  }

  /** Roots that are here and have not departed. */
  owners(): { readonly owner: string; readonly number: number; readonly rootId: string }[] {
    return this.#owners.all() as unknown as { owner: string; number: number; rootId: string }[];
  }

  /** What counts differently from what is counted, in words. */
  drift(): string[] {
    return (this.db.prepare(DRIFT).all() as unknown as { text: string }[]).map(({ text }) => text);
  }

  /** Rows that belong to no root, and chunks whose count is wrong, in words. */
  orphans(): string[] {
    return ORPHANS.flatMap(([what, sql]) => {
      const { count } = this.db.prepare(sql).get() as { count: number };
      return count === 0 ? [] : [`${count} ${what}`];
    });
  }
}

interface FileRow {
  readonly file: string;
  readonly data: Uint8Array | null;
  readonly chunk: string | null;
}

const DRIFT = `
  SELECT 'root ' || r.owner || ' counts ' || r.live_bytes || ' bytes and ' || r.file_count || ' files, and has '
    || coalesce(sum(i.size), 0) || ' and ' || count(i.id) AS text
  FROM root r LEFT JOIN inode i ON (i.id >> 32) = r.number AND i.kind = 0 AND i.parent_id IS NOT NULL
  GROUP BY r.number HAVING r.live_bytes <> coalesce(sum(i.size), 0) OR r.file_count <> count(i.id)`;

const WITHOUT_ROOT = (table: string, id: string): readonly [string, string] => [
  `rows of ${table} belong to no root`,
  `SELECT count(*) AS count FROM ${table} WHERE (${id} >> 32) NOT IN (SELECT number FROM root)`,
];

const ORPHANS: readonly (readonly [what: string, sql: string])[] = [
  WITHOUT_ROOT("inode", "id"),
  WITHOUT_ROOT("inline_content", "inode_id"),
  WITHOUT_ROOT("file_chunk", "content_id"),
  ["rows wait to be purged", "SELECT count(*) AS count FROM purging"],
  ["notes of moves are left", "SELECT count(*) AS count FROM move_bucket"],
  ["moves are left", "SELECT count(*) AS count FROM root_move"],
  [
    "chunks have another count than lists",
    `SELECT count(*) AS count FROM chunk
     WHERE refs <> (SELECT count(*) FROM file_chunk WHERE chunk_id = chunk.id)`,
  ],
  [
    "chunks without a list wait for no removal",
    "SELECT count(*) AS count FROM chunk WHERE refs = 0 AND id NOT IN (SELECT chunk_id FROM garbage)",
  ],
  [
    "triggers of moves are left",
    "SELECT count(*) AS count FROM sqlite_master WHERE type = 'trigger' AND name GLOB 'move_*'",
  ],
];
