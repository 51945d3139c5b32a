// A store of small and large files with known bytes, which can be damaged and restored.
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { SeededRandom } from "#prove/seeded-random.ts";
import type { InodeId } from "#storage/contract/inode.ts";
import type { Storage } from "#storage/contract/storage.ts";
import { BY_OWNER, OWNER, openTestStorage, upload } from "#storage/local/store.fixture.ts";

/** This many have the same size, so that their bytes can be exchanged. */
const EQUAL_SHARE = 3;
const EQUAL_SMALL_BYTES = 1_000;
const EQUAL_LARGE_BYTES = 100_000;
const SMALL_BYTES = 8_000;
const LARGE_BYTES = [65_537, 300_000] as const;
/** Two chunks. */
const HUGE_BYTES = 4_100_000;
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

/** How many files of each kind. */
export interface StoreSize {
  readonly small: number;
  readonly large: number;
  readonly huge: number;
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
      const count = size.small + size.large + size.huge;
      for (let index = 0; index < count; index++) {
        const bytes = random.bytes(sizeOf(index, size, random));
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

function sizeOf(index: number, { small, large }: StoreSize, random: SeededRandom): number {
  const isEqual = index % EQUAL_SHARE === 0;
  if (index < small) return isEqual ? EQUAL_SMALL_BYTES : random.between(1, SMALL_BYTES);
  if (index < small + large) return isEqual ? EQUAL_LARGE_BYTES : random.between(...LARGE_BYTES);
  return HUGE_BYTES;
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
