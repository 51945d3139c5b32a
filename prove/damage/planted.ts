// Planted bugs by which damaged bytes go unnoticed.
import type { PlantedBug } from "#prove/rig.ts";

/** What the rig must find. */
export const damageBugs: readonly PlantedBug[] = [
  {
    name: "read-without-checksum",
    is: "the checksum of a block is not looked at when it is read",
    rigs: ["damage"],
    edits: [
      {
        file: "src/storage/local/pinned-content.ts",
        from: 'if (crc32(block) !== blockCrc) throw this.#corrupt("a block does not match its checksum", chunk);',
        to: "void blockCrc;",
      },
    ],
  },
  {
    name: "small-read-without-checksum",
    is: "the checksum of a small file is not looked at when it is read",
    rigs: ["damage"],
    edits: [
      {
        file: "src/storage/local/pinned-content.ts",
        from: "bytes.length !== this.inode.sizeBytes || crc32(bytes) !== this.inode.crc32",
        to: "bytes.length !== this.inode.sizeBytes",
      },
    ],
  },
  {
    name: "scrub-skips-small-files",
    is: "the scrub goes through chunks only and not through the bytes in the database",
    rigs: ["damage"],
    edits: [
      {
        file: "src/storage/scrub/scrub-reader.ts",
        from: "if (data === null || crc32(data) === wanted) return undefined;",
        to: "if (data === null || wanted !== undefined) return undefined;",
      },
    ],
  },
  {
    name: "scrub-without-length",
    is: "the scrub does not compare the length of a chunk's file",
    rigs: ["damage"],
    edits: [
      {
        file: "src/storage/chunks/chunk-check.ts",
        from: "return file.size === length ? undefined",
        to: "return file.size >= length ? undefined",
      },
    ],
  },
  {
    name: "list-without-checksum",
    is: "a file's list of chunks is believed without its checksum",
    rigs: ["damage"],
    edits: [
      {
        file: "src/storage/local/pinned-content.ts",
        from: "checksum.endBytes > sizeBytes || checksum.crcOf(sizeBytes) !== whole",
        to: "checksum.endBytes > sizeBytes",
      },
    ],
  },
  {
    name: "engine-read-without-checksum",
    is: "a block of the object store is handed on without a look at its checksum",
    rigs: ["damage-over-engine"],
    edits: [
      {
        file: "src/storage/object-store/chunk-reads.ts",
        from: "      if (!isBlock(chunk, index, bytes)) continue;\n",
        to: "",
      },
      {
        file: "src/storage/local/pinned-content.ts",
        from: 'if (crc32(block) !== blockCrc) throw this.#corrupt("a block does not match its checksum", chunk);',
        to: "void blockCrc;",
      },
    ],
  },
];
