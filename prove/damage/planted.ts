// Planted bugs by which damaged bytes go unnoticed.
import type { PlantedBug } from "#prove/rig.ts";

const ENGINE_SCRUB = "src/storage/engine/store-scrub.ts";

const ofEngineScrub: readonly PlantedBug[] = [
  {
    name: "engine-scrub-without-checksum",
    is: "the scrub reads the objects of the store and does not compare their blocks with their checksums",
    rigs: ["damage-over-engine"],
    edits: [
      {
        file: ENGINE_SCRUB,
        from: "    if (crc32(block) !== view.getUint32(index * 4, true))\n",
        to: "    if (block.length === 0 && crc32(block) !== view.getUint32(index * 4, true))\n",
      },
    ],
  },
  {
    name: "engine-scrub-skips-small-files",
    is: "the scrub of the engine goes through chunks and lists, and not through the bytes in the database",
    rigs: ["damage-over-engine"],
    edits: [
      {
        file: ENGINE_SCRUB,
        from: "const problem = list === undefined ? smallFileProblem(row) : list.problem;",
        to: "const problem = list === undefined && row.size < 0 ? smallFileProblem(row) : list?.problem;",
      },
    ],
  },
  {
    name: "engine-scrub-passes-what-it-has-not-read",
    is: "the scrub takes a slice of chunks for read once it has asked for it, and the next process goes on behind it",
    rigs: ["damage-over-engine"],
    edits: [
      {
        file: ENGINE_SCRUB,
        from: "pass = { ...pass, position: row.id };\n        if (row.root",
        to: "pass = { ...pass, position: rows.at(-1)?.id ?? row.id };\n        if (row.root",
      },
    ],
    goal: 150,
  },
  {
    name: "engine-scrub-stays-at-a-root",
    is: "the scrub asks for the files of the same root for ever",
    rigs: ["damage-over-engine"],
    edits: [
      {
        file: ENGINE_SCRUB,
        from: "position: isEnd ? range[1] - 1 : pass.position,",
        to: "position: isEnd ? Math.min(pass.position, range[1] - 1) : pass.position,",
      },
    ],
  },
  {
    name: "engine-scrub-does-not-say-whose",
    is: "the scrub finds a damaged chunk and does not say whose it is, so that nothing is marked",
    rigs: ["damage-over-engine"],
    edits: [
      {
        file: ENGINE_SCRUB,
        from: "        this.#deps.noteDamaged(row.id, row.root * ROOT_STRIDE);\n",
        to: "",
      },
    ],
  },
];

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
  ...ofEngineScrub,
];
