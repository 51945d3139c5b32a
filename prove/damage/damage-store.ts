// A store of small and large files with known bytes, which can be damaged and restored.
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { SeededRandom } from "#prove/seeded-random.ts";
import type { InodeId } from "#storage/contract/inode.ts";
import type { Storage } from "#storage/contract/storage.ts";
import { BY_OWNER, OWNER, openTestStorage, upload } from "#storage/local/store.fixture.ts";
import { contentsOf, SMALL_BYTES, type StoreSize } from "./stored-sizes.ts";

const TRASHED_EVERY = 12;

/** One file of the store. */
export interface StoredFile {
  readonly id: InodeId;
  readonly name: string;
  readonly bytes: Buffer;
  readonly isTrashed: boolean;
  /** Names of its chunks; none for a file whose bytes lie in the database. */
  readonly chunks: readonly string[];
}

/** See above. */
export class DamageStore {
  readonly directory: string;
  readonly databasePath: string;
  readonly files: readonly StoredFile[];
  readonly #database: Buffer;
  readonly #chunks: ReadonlyMap<string, Buffer>;
  readonly #changed = new Set<string>();

  private constructor(directory: string, files: readonly StoredFile[], chunks: ReadonlyMap<string, Buffer>) {
    this.directory = directory;
    this.databasePath = join(directory, "inodes.db");
    this.files = files;
    this.#chunks = chunks;
    this.#database = readFileSync(this.databasePath);
  }

  /** Makes one. */
  static async make(directory: string, size: StoreSize, random: SeededRandom): Promise<DamageStore> {
    const storage = await openTestStorage(directory);
    const files: Omit<StoredFile, "chunks">[] = [];
    try {
      const { directoryId: parentId } = await storage.createRoot({ owner: OWNER, rootId: "01ROOT" });
      for (const bytes of contentsOf(size, random)) {
        const index = files.length;
        files.push(
          await put(
            storage,
            { parentId, name: `f${index}`, bytes },
            index % TRASHED_EVERY === TRASHED_EVERY - 1,
          ),
        );
      }
    } finally {
      await storage.close();
    }
    const chunks = new Map<string, Buffer>();
    const db = new DatabaseSync(join(directory, "inodes.db"), { readOnly: true });
    const names = db.prepare(
      `SELECT chunk.name AS name FROM inode JOIN file_chunk USING (content_id) JOIN chunk ON chunk.id = chunk_id
       WHERE inode.id = ? ORDER BY position`,
    );
    const whole = files.map((file) => {
      const own = (names.all(file.id) as { name: string }[]).map(({ name }) => name);
      for (const name of own)
        chunks.set(name, readFileSync(join(directory, "chunks", name.slice(0, 2), name)));
      return { ...file, chunks: own };
    });
    db.close();
    return new DamageStore(directory, whole, chunks);
  }

  pathOf(chunk: string): string {
    this.#changed.add(chunk);
    return join(this.directory, "chunks", chunk.slice(0, 2), chunk);
  }

  /** Returns a chunk's right bytes. */
  bytesOf(chunk: string): Buffer {
    return this.#chunks.get(chunk) ?? Buffer.alloc(0);
  }

  /** The undamaged database. */
  get database(): Buffer {
    return this.#database;
  }

  /** Writes a database file, without a WAL. */
  putDatabase(bytes: Buffer): void {
    // A new file each time: an opening that failed on a damaged page may have left a connection behind, with
    // locks on the old file.
    for (const suffix of ["", "-wal", "-shm"]) rmSync(this.databasePath + suffix, { force: true });
    writeFileSync(this.databasePath, bytes, { mode: 0o600 });
  }

  /** Restores everything. */
  restore(): void {
    this.putDatabase(this.#database);
    for (const chunk of this.#changed) {
      const path = join(this.directory, "chunks", chunk.slice(0, 2), chunk);
      rmSync(path, { recursive: true, force: true });
      writeFileSync(path, this.bytesOf(chunk), { mode: 0o600 });
    }
    this.#changed.clear();
  }

  /** Returns the files that are marked as damaged. */
  marked(): Set<InodeId> {
    const db = new DatabaseSync(this.databasePath, { readOnly: true });
    try {
      const rows = db.prepare("SELECT id FROM inode WHERE (flags & 1) <> 0").all() as { id: InodeId }[];
      return new Set(rows.map(({ id }) => id));
    } finally {
      db.close();
    }
  }
}

async function put(
  storage: Storage,
  file: { parentId: InodeId; name: string; bytes: Buffer },
  isTrashed: boolean,
): Promise<Omit<StoredFile, "chunks">> {
  const { name, bytes, parentId } = file;
  const { inode } =
    bytes.length <= SMALL_BYTES
      ? await storage.createFile({ ...BY_OWNER, parentId, name, data: bytes, mtimeMs: 0 })
      : await upload(storage, file);
  if (isTrashed) await storage.trash({ ...BY_OWNER, inodeId: inode.id });
  return { id: inode.id, name, bytes, isTrashed };
}
