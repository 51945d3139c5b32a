// Planted bugs that power cuts of a shared engine's places show.
import type { PlantedBug } from "#prove/rig.ts";

const PLACES = "prove/engine-power/places.ts";

/** The first two are the places' own, and not the engine's: they show what the rig sees. */
export const enginePowerBugs: readonly PlantedBug[] = [
  {
    name: "store-without-flushes",
    is: "the store acknowledges objects that its filesystem has not flushed",
    rigs: ["engine-power"],
    edits: [
      {
        file: "prove/engine-power/engine-power.fixture.ts",
        from: "const options = `${flushed.options},${FLUSHES[flushed.filesystem]}`;",
        to: "const { options } = flushed;\n  void FLUSHES;",
      },
    ],
  },
  {
    name: "database-without-flushes",
    is: "PostgreSQL runs with synchronous_commit and does not flush",
    rigs: ["engine-power"],
    edits: [{ file: PLACES, from: `"fsync = on",`, to: `"fsync = off",` }],
  },
  {
    name: "chunk-acknowledged-before-the-store-has-it",
    is: "a large file is acknowledged while its last chunks are on their way to the store",
    rigs: ["engine-power"],
    edits: [
      {
        file: "src/storage/object-store/object-chunk-writer.ts",
        from: "    const stored = await puts.requests.putNew(chunkKey(puts.prefix, this.#name), body, crc32);\n    this.#isCertain = stored.isCertain;\n",
        to: "    void puts.requests.putNew(chunkKey(puts.prefix, this.#name), body, crc32).catch(() => undefined);\n",
      },
    ],
  },
];
