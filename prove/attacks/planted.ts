// Bugs for the rig of attacks.
import type { PlantedBug } from "#prove/rig.ts";

/** Each lets a client take more than its share. */
export const attackBugs: readonly PlantedBug[] = [
  {
    name: "closed-sessions-not-kept",
    is: "a closed session may be freed before its streams, in a server with the heap that Node gives it: the launcher's makes it rare",
    rigs: ["attacks"],
    edits: [
      { file: "src/grpc/server.ts", from: "    this.#keeper.watch(session);\n", to: "" },
      {
        file: "grove",
        from: 'metaserver | up) heap="--max-semi-space-size=2 --no-parallel-scavenge"',
        to: "metaserver | up) heap=",
      },
    ],
    narrow: "trailers abuse",
    goal: 39,
  },
  {
    name: "floods-go-on",
    is: "a connection that sends headers too large for any call is noticed, and left alone",
    rigs: ["attacks"],
    edits: [
      {
        file: "src/grpc/flood-watch.ts",
        from: "      connection.destroy(constants.NGHTTP2_ENHANCE_YOUR_CALM);\n",
        to: "",
      },
    ],
    narrow: "HPACK bomb",
    goal: 40,
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
