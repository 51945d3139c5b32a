// Reads of damage on the main thread: number of damaged files, their paths, and the saved progress of passes.
import type { InodeId } from "#storage/contract/inode.ts";
import { rootNumberOf } from "#storage/contract/inode.ts";
import type { PassName } from "#storage/contract/pass-types.ts";
import type { DamagedFile, DamagedFiles } from "#storage/contract/storage.ts";
import { FLAG_DAMAGED } from "#storage/metadata/schema.ts";
import type { SnapshotTables } from "#storage/metadata/snapshot-reader.ts";
import { CHAIN_MAX } from "#storage/metadata/unit-of-work.ts";

/** Damaged files listed one by one, in the metrics document and elsewhere; the rest is only counted. */
export const DAMAGED_FILES_LISTED = 100;

type Statement = ReturnType<SnapshotTables["prepare"]>;

/** Owns the statements that find damage; the index of damaged inodes answers them at any number of inodes. */
export class DamageReader {
  readonly #tables: SnapshotTables;
  readonly #count: Statement;
  readonly #files: Statement;
  readonly #place: Statement;
  readonly #trashed: Statement;
  readonly #owner: Statement;
  readonly #saved: Statement;
  readonly #lastChunk: Statement;

  constructor(tables: SnapshotTables) {
    this.#tables = tables;
    this.#count = tables.prepare(`SELECT count(*) FROM inode WHERE (flags & ${FLAG_DAMAGED}) <> 0`);
    this.#files = tables.prepare(
      `SELECT id, size FROM inode WHERE (flags & ${FLAG_DAMAGED}) <> 0 ORDER BY id LIMIT ?`,
    );
    this.#place = tables.prepare("SELECT parent_id, name FROM inode WHERE id = ?");
    this.#trashed = tables.prepare("SELECT original_path FROM trash WHERE inode_id = ?");
    this.#owner = tables.prepare("SELECT owner FROM root WHERE number = ?");
    this.#saved = tables.prepare("SELECT value FROM meta WHERE key = ?");
    this.#lastChunk = tables.prepare("SELECT max(id) FROM chunk");
  }

  /** See Storage.damagedFiles. */
  files(): DamagedFiles {
    return this.#tables.read(() => {
      const [count] = this.#count.get() as unknown as [number];
      if (count === 0) return { count, listed: [] };
      const rows = this.#files.all(DAMAGED_FILES_LISTED) as unknown as [InodeId, number][];
      return { count, listed: rows.flatMap(([id, sizeBytes]) => this.#file(id, sizeBytes) ?? []) };
    });
  }

  /** Saved record of a pass; undefined when there is none. */
  savedPass(name: PassName): string | undefined {
    return this.#tables.read(() => (this.#saved.get(name) as unknown as [string] | undefined)?.[0]);
  }

  /** Number of the newest chunk, 0 when there is none. */
  lastChunk(): number {
    return this.#tables.read(() => (this.#lastChunk.get() as unknown as [number | null])[0] ?? 0);
  }

  /** Undefined for a removed file that waits for its purge. */
  #file(id: InodeId, sizeBytes: number): DamagedFile | undefined {
    const owner = (this.#owner.get(rootNumberOf(id)) as unknown as [string] | undefined)?.[0];
    if (owner === undefined) return undefined;
    let path = "";
    let at = id;
    for (let level = 0; level < CHAIN_MAX; level++) {
      const row = this.#place.get(at) as unknown as [InodeId | null, string] | undefined;
      if (row === undefined) return undefined;
      const [parentId, name] = row;
      if (parentId === null) {
        if (name === "") return { owner, path, isTrashed: false, inode: id, sizeBytes };
        const trashed = this.#trashed.get(at) as unknown as [string] | undefined;
        return trashed && { owner, path: trashed[0] + path, isTrashed: true, inode: id, sizeBytes };
      }
      path = `/${name}${path}`;
      at = parentId;
    }
    return undefined;
  }
}
