// Bugs for the rig of attacks.
import type { PlantedBug } from "#prove/rig.ts";

/** Each lets a client take more than its share. */
export const attackBugs: readonly PlantedBug[] = [
  {
    name: "closed-sessions-not-kept",
    is: "a closed session may be freed before its streams",
    rigs: ["attacks"],
    edits: [{ file: "src/grpc/server.ts", from: "    this.#keeper.watch(session);\n", to: "" }],
    narrow: "trailers abuse",
    goal: 39,
  },
  {
    name: "missed-await-on-drain",
    is: "a download does not wait until the socket has room",
    rigs: ["attacks"],
    edits: [
      {
        file: "src/fileserver/download.ts",
        from: "        const written = this.#writer.slice(bytes.subarray(done, done + PIECE_BYTES));\n        if (written !== true) await written;",
        to: "        const written = this.#writer.slice(Buffer.from(bytes.subarray(done, done + PIECE_BYTES)));\n        if (written !== true) written.catch(() => undefined);",
      },
    ],
  },
];
