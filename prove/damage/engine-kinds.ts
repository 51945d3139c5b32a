// The ways in which what a shared engine has stored is damaged: objects of the bucket and rows of PostgreSQL.
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
import type { EngineDamageStore, EngineFile } from "./engine-store.ts";

/** One way. */
export interface EngineKind {
  readonly of: "small" | "large" | "huge";
  /** Number of files, all of one size. */
  readonly files: 1 | 2;
  /** Set where all bytes that a reader asks for are right. */
  readonly isHarmless?: true;
  /** Set where `fsck -list` must name it too: it compares sizes, names and rows, and reads no objects. */
  readonly isSeenByCheck?: true;
  /** Damages files that are intact; false when these files cannot be damaged so. */
  readonly harm: (
    store: EngineDamageStore,
    files: readonly EngineFile[],
    random: SeededRandom,
  ) => Promise<boolean>;
}

type Harm = EngineKind["harm"];

/** Changes the bytes of one chunk's object. */
function inObject(change: ByteHarm): Harm {
  return async (store, files, random) => {
    const name = random.pick(files[0]?.chunks ?? []);
    const right = store.bytesOf(name);
    const wrong = change(Buffer.from(right), random);
    if (wrong.equals(right)) return false;
    await store.putObject(name, wrong);
    return true;
  };
}

/** Runs statements, in which $1 and $2 are the files' ids. */
function byStatements(...statements: readonly string[]): Harm {
  return async (store, files) => {
    let changes = 0;
    for (const statement of statements) {
      const text = statement.replaceAll("$1", `${files[0]?.id}`).replaceAll("$2", `${files[1]?.id}`);
      changes += await store.change(text);
    }
    return changes > 0;
  };
}

const CHUNK_OF = (id: string): string =>
  `(SELECT chunk_id FROM file_chunk JOIN inode USING (content_id) WHERE inode.id = ${id} ORDER BY position LIMIT 1)`;
const LIST_OF = (id: string): string => `content_id = (SELECT content_id FROM inode WHERE id = ${id})`;
const FIRST_CHUNK = CHUNK_OF("$1");
/** One bit flipped. */
const OTHER_CRC = "UPDATE inode SET crc32 = crc32 # 4096 WHERE id = $1";

/** Every kind, by name. */
export const ENGINE_KINDS: Readonly<Record<string, EngineKind>> = {
  "a flipped bit": { of: "large", files: 1, harm: inObject(flip) },
  "a flipped bit in one of two chunks": { of: "huge", files: 1, harm: inObject(flip) },
  "a sector of zeros": {
    of: "large",
    files: 1,
    harm: inObject(zeroSector),
  },
  "all zeros": { of: "large", files: 1, harm: inObject((bytes) => bytes.fill(0)) },
  "two sectors exchanged": {
    of: "large",
    files: 1,
    harm: inObject(exchangeSectors),
  },
  "one byte in front": {
    of: "large",
    files: 1,
    harm: inObject(shift),
  },
  "a cut end": {
    of: "large",
    files: 1,
    isSeenByCheck: true,
    harm: inObject(cutEnd),
  },
  "one byte less": {
    of: "large",
    files: 1,
    isSeenByCheck: true,
    harm: inObject(cutLastByte),
  },
  "bytes too many": {
    of: "large",
    files: 1,
    isHarmless: true,
    isSeenByCheck: true,
    harm: inObject(addBytes),
  },
  "no object": {
    of: "large",
    files: 1,
    isSeenByCheck: true,
    harm: async (store, files, random) => {
      await store.removeObject(random.pick(files[0]?.chunks ?? []));
      return true;
    },
  },
  "two chunks' bytes exchanged": {
    of: "large",
    files: 2,
    harm: async (store, files) => {
      const [one = "", other = ""] = files.map(({ chunks }) => chunks[0] ?? "");
      await store.putObject(one, store.bytesOf(other));
      await store.putObject(other, store.bytesOf(one));
      return true;
    },
  },
  "a flipped bit of a small file": {
    of: "small",
    files: 1,
    isSeenByCheck: true,
    harm: byStatements(
      "UPDATE inline_content SET data = set_byte(data, 0, get_byte(data, 0) # 16) WHERE inode_id = $1",
    ),
  },
  "two small files' bytes exchanged": {
    of: "small",
    files: 2,
    isSeenByCheck: true,
    harm: byStatements(
      `UPDATE inline_content t SET data = (SELECT data FROM inline_content o WHERE o.inode_id = $1 + $2 - t.inode_id)
       WHERE inode_id IN ($1, $2)`,
    ),
  },
  "a small file that lost its end": {
    of: "small",
    files: 1,
    isSeenByCheck: true,
    harm: byStatements(
      "UPDATE inline_content SET data = substr(data, 1, length(data) - 1) WHERE inode_id = $1 AND length(data) > 0",
    ),
  },
  "a small file without bytes": {
    of: "small",
    files: 1,
    isSeenByCheck: true,
    harm: byStatements("DELETE FROM inline_content WHERE inode_id = $1"),
  },
  "a wrong checksum of a small file": {
    of: "small",
    files: 1,
    isSeenByCheck: true,
    harm: byStatements(OTHER_CRC),
  },
  "a wrong size of a small file": {
    of: "small",
    files: 1,
    isSeenByCheck: true,
    harm: byStatements("UPDATE inode SET size = size + 1 WHERE id = $1"),
  },
  "a wrong checksum of a block": {
    of: "large",
    files: 1,
    harm: byStatements(
      `UPDATE chunk SET block_crcs = '\\x00112233'::bytea || substr(block_crcs, 5) WHERE id = ${FIRST_CHUNK}`,
    ),
  },
  "a lost checksum of a block": {
    of: "large",
    files: 1,
    isSeenByCheck: true,
    harm: byStatements(`UPDATE chunk SET block_crcs = substr(block_crcs, 5) WHERE id = ${FIRST_CHUNK}`),
  },
  "a wrong length of a chunk": {
    of: "large",
    files: 1,
    isSeenByCheck: true,
    harm: byStatements(`UPDATE chunk SET length = length - 1 WHERE id = ${FIRST_CHUNK}`),
  },
  "a wrong name of a chunk": {
    of: "large",
    files: 1,
    isSeenByCheck: true,
    harm: byStatements(`UPDATE chunk SET name = 'z' || substr(name, 2) WHERE id = ${FIRST_CHUNK}`),
  },
  "another file's chunk": {
    of: "large",
    files: 2,
    isSeenByCheck: true,
    harm: byStatements(
      `UPDATE file_chunk SET chunk_id = ${FIRST_CHUNK} + ${CHUNK_OF("$2")} - chunk_id
       WHERE ${LIST_OF("$1")} OR ${LIST_OF("$2")}`,
    ),
  },
  "a chunk that is not in the list": {
    of: "huge",
    files: 1,
    isSeenByCheck: true,
    harm: byStatements(`DELETE FROM file_chunk WHERE position = 1 AND ${LIST_OF("$1")}`),
  },
  "a wrong checksum of a large file": {
    of: "large",
    files: 1,
    isHarmless: true,
    isSeenByCheck: true,
    harm: byStatements(OTHER_CRC),
  },
  "a wrong size of a large file": {
    of: "large",
    files: 1,
    isSeenByCheck: true,
    harm: byStatements("UPDATE inode SET size = size + 1 WHERE id = $1"),
  },
};
