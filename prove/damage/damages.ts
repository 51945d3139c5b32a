// The ways in which stored bytes are damaged.
import { mkdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import type { SeededRandom } from "#prove/seeded-random.ts";
import {
  addBytes,
  type ByteHarm,
  cutEnd,
  cutLastByte,
  exchangeSectors,
  flip,
  shift,
  zeroSector,
} from "./byte-harms.ts";
import type { DamageStore, StoredFile } from "./damage-store.ts";

/** Bytes of a file by which it is found in the database: they lie in one page. */
const NEEDLE_BYTES = 24;

/** What was damaged. */
export interface Damage {
  readonly kind: string;
  readonly files: readonly StoredFile[];
  /**
   * True when all bytes that a reader asks for are right: the damage is to surplus bytes, or to a checksum of
   * the whole.
   */
  readonly isHarmless: boolean;
}

/** Damages files that are intact; undefined when these files cannot be damaged so. */
type Harm = (store: DamageStore, files: readonly StoredFile[], random: SeededRandom) => boolean;

interface Kind {
  readonly of: "small" | "large" | "huge";
  /** Number of files, all of one size. */
  readonly files: 1 | 2;
  readonly isHarmless?: true;
  readonly harm: Harm;
}

function first(files: readonly StoredFile[]): StoredFile {
  const [file] = files;
  if (file === undefined) throw new Error("there is no file");
  return file;
}

function chunkOf({ chunks }: StoredFile, random: SeededRandom): string {
  return random.pick(chunks);
}

/** Changes the bytes of one chunk's file. */
function inChunk(change: ByteHarm): Harm {
  return (store, files, random) => {
    const chunk = chunkOf(first(files), random);
    const right = store.bytesOf(chunk);
    const wrong = change(Buffer.from(right), random);
    if (wrong.equals(right)) return false;
    writeFileSync(store.pathOf(chunk), wrong);
    return true;
  };
}

/** Changes the bytes of a small file in the database's file, without SQLite. */
function inDatabase(change: (bytes: Buffer, random: SeededRandom) => void): Harm {
  return (store, files, random) => {
    const { bytes } = first(files);
    if (bytes.length < NEEDLE_BYTES) return false;
    const database = readFileSync(store.databasePath);
    const at = database.indexOf(bytes.subarray(0, NEEDLE_BYTES));
    // SQLite leaves old copies where it moves a row: which one counts is unknown here.
    if (at < 0 || database.includes(bytes.subarray(0, NEEDLE_BYTES), at + 1)) return false;
    change(database.subarray(at, at + NEEDLE_BYTES), random);
    writeFileSync(store.databasePath, database);
    return true;
  };
}

/** Runs statements, each of which takes the files' ids in order. */
function byStatements(...statements: readonly string[]): Harm {
  return (store, files) => {
    const db = new DatabaseSync(store.databasePath);
    try {
      db.exec("PRAGMA foreign_keys = OFF");
      let changes = 0;
      for (const statement of statements) {
        const text = statement.replaceAll("$1", String(files[0]?.id)).replaceAll("$2", String(files[1]?.id));
        changes += Number(db.prepare(text).run().changes);
      }
      return changes > 0;
    } finally {
      db.close();
    }
  };
}

const FIRST_CHUNK =
  "(SELECT chunk_id FROM file_chunk JOIN inode USING (content_id) WHERE inode.id = $1 ORDER BY position LIMIT 1)";
const LIST = "content_id = (SELECT content_id FROM inode WHERE id = $1)";

/** One bit flipped. */
const OTHER_CRC = "UPDATE inode SET crc32 = (crc32 | 4096) - (crc32 & 4096) WHERE id = $1";

/** Every kind, by name. */
export const KINDS: Readonly<Record<string, Kind>> = {
  "a flipped bit": { of: "large", files: 1, harm: inChunk(flip) },
  "a flipped bit in one of two chunks": { of: "huge", files: 1, harm: inChunk(flip) },
  "some flipped bits": {
    of: "large",
    files: 1,
    harm: inChunk((bytes, random) => flip(flip(flip(bytes, random), random), random)),
  },
  "a sector of zeros": {
    of: "large",
    files: 1,
    harm: inChunk(zeroSector),
  },
  "all zeros": { of: "large", files: 1, harm: inChunk((bytes) => bytes.fill(0)) },
  "two sectors exchanged": {
    of: "large",
    files: 1,
    harm: inChunk(exchangeSectors),
  },
  "a cut end": {
    of: "large",
    files: 1,
    harm: inChunk(cutEnd),
  },
  "one byte less": { of: "large", files: 1, harm: inChunk(cutLastByte) },
  "one byte in front": {
    of: "large",
    files: 1,
    harm: inChunk(shift),
  },
  "bytes too many": {
    of: "large",
    files: 1,
    isHarmless: true,
    harm: inChunk(addBytes),
  },
  "no bytes": {
    of: "large",
    files: 1,
    harm: (store, files, random) => {
      truncateSync(store.pathOf(chunkOf(first(files), random)), 0);
      return true;
    },
  },
  "no file": {
    of: "large",
    files: 1,
    harm: (store, files, random) => {
      rmSync(store.pathOf(chunkOf(first(files), random)));
      return true;
    },
  },
  "a folder instead of a file": {
    of: "large",
    files: 1,
    harm: (store, files, random) => {
      const path = store.pathOf(chunkOf(first(files), random));
      rmSync(path);
      mkdirSync(path);
      return true;
    },
  },
  "two chunks' bytes exchanged": {
    of: "large",
    files: 2,
    harm: (store, files, random) => {
      const [one, other] = files.map((file) => chunkOf(file, random)) as [string, string];
      writeFileSync(store.pathOf(one), store.bytesOf(other));
      writeFileSync(store.pathOf(other), store.bytesOf(one));
      return true;
    },
  },
  "a flipped bit in the database": { of: "small", files: 1, harm: inDatabase(flip) },
  "zeros in the database": { of: "small", files: 1, harm: inDatabase((bytes) => bytes.fill(0)) },
  "two small files' bytes exchanged": {
    of: "small",
    files: 2,
    harm: byStatements(
      "CREATE TEMP TABLE kept AS SELECT data FROM inline_content WHERE inode_id = $1",
      "UPDATE inline_content SET data = (SELECT data FROM inline_content WHERE inode_id = $2) WHERE inode_id = $1",
      "UPDATE inline_content SET data = (SELECT data FROM kept) WHERE inode_id = $2",
    ),
  },
  "a small file that lost its end": {
    of: "small",
    files: 1,
    harm: byStatements(
      "UPDATE inline_content SET data = substr(data, 1, length(data) - 1) WHERE inode_id = $1",
    ),
  },
  "a small file without bytes": {
    of: "small",
    files: 1,
    harm: byStatements("DELETE FROM inline_content WHERE inode_id = $1"),
  },
  "a wrong checksum of a small file": { of: "small", files: 1, harm: byStatements(OTHER_CRC) },
  "a wrong size of a small file": {
    of: "small",
    files: 1,
    harm: byStatements("UPDATE inode SET size = size + 1 WHERE id = $1"),
  },
  "a wrong checksum of a block": {
    of: "large",
    files: 1,
    harm: byStatements(
      `UPDATE chunk SET block_crcs = CAST(x'00112233' || substr(block_crcs, 5) AS BLOB) WHERE id = ${FIRST_CHUNK}`,
    ),
  },
  "a lost checksum of a block": {
    of: "large",
    files: 1,
    harm: byStatements(`UPDATE chunk SET block_crcs = substr(block_crcs, 5) WHERE id = ${FIRST_CHUNK}`),
  },
  "a wrong length of a chunk": {
    of: "large",
    files: 1,
    harm: byStatements(`UPDATE chunk SET length = length - 1 WHERE id = ${FIRST_CHUNK}`),
  },
  "a wrong name of a chunk": {
    of: "large",
    files: 1,
    harm: byStatements(`UPDATE chunk SET name = substr(name, 1, 31) || 'z' WHERE id = ${FIRST_CHUNK}`),
  },
  "another file's chunk": {
    of: "large",
    files: 2,
    harm: byStatements(
      `CREATE TEMP TABLE kept AS SELECT ${FIRST_CHUNK} AS one, ${FIRST_CHUNK.replace("$1", "$2")} AS other`,
      `UPDATE file_chunk SET chunk_id = (SELECT other FROM kept) WHERE ${LIST}`,
      `UPDATE file_chunk SET chunk_id = (SELECT one FROM kept) WHERE ${LIST.replace("$1", "$2")}`,
    ),
  },
  "a chunk that is not in the list": {
    of: "huge",
    files: 1,
    harm: byStatements(`DELETE FROM file_chunk WHERE position = 1 AND ${LIST}`),
  },
  "a wrong checksum of a large file": {
    of: "large",
    files: 1,
    isHarmless: true,
    harm: byStatements(OTHER_CRC),
  },
  "a wrong size of a large file": {
    of: "large",
    files: 1,
    harm: byStatements("UPDATE inode SET size = size + 1 WHERE id = $1"),
  },
};
