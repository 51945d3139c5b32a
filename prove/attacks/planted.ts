// Planted bugs for the rig of attacks.
import type { PlantedBug } from "#prove/rig.ts";

/** Each lets a client take more than its share. */
export const attackBugs: readonly PlantedBug[] = [
  {
    name: "closed-sessions-not-kept",
    is: "a closed session may be freed before its streams",
    rigs: ["attacks"],
    edits: [{ file: "src/wire/grpc/server.ts", from: "    this.#closedSessions.watch(session);\n", to: "" }],
    narrow: "trailers abuse",
    goal: 2,
  },
  {
    name: "floods-go-on",
    is: "a connection that sends headers too large for any call is noticed, and left alone",
    rigs: ["attacks"],
    edits: [
      {
        file: "src/wire/grpc/flood-watch.ts",
        from: "      connection.destroy(constants.NGHTTP2_ENHANCE_YOUR_CALM);\n",
        to: "",
      },
    ],
    narrow: "HPACK bomb",
    goal: 2,
  },
  {
    name: "few-handshakes-of-an-address",
    is: "people behind one address share a handshake a second",
    rigs: ["peaks"],
    edits: [
      {
        file: "src/wire/framing/limits.ts",
        from: "HANDSHAKES_OF_NETWORK: BucketRate = { burst: 256, perSecond: 20 };",
        to: "HANDSHAKES_OF_NETWORK: BucketRate = { burst: 4, perSecond: 1 };",
      },
    ],
  },
  {
    name: "nobody-gives-way",
    is: "when connections run out, idle ones of nobody keep theirs and newcomers are turned away",
    rigs: ["unproven"],
    edits: [
      {
        file: "src/wire/grpc/connection-table.ts",
        from: "      evicted = this.#isGated ? this.#firstToGo() : undefined;\n",
        to: "",
      },
    ],
    narrow: "idle connections",
    goal: 1,
  },
  {
    name: "refusals-without-end",
    is: "a connection that is refused everything may go on asking",
    rigs: ["unproven"],
    edits: [
      {
        file: "src/wire/framing/limits.ts",
        from: "REFUSALS_PER_CONNECTION = 20;",
        to: "REFUSALS_PER_CONNECTION = 2_000_000;",
      },
    ],
    narrow: "refusals",
    goal: 1,
  },
  {
    name: "handshakes-unlimited",
    is: "a network may begin as many handshakes as it likes",
    rigs: ["unproven"],
    edits: [
      {
        file: "src/wire/grpc/doorkeeper.ts",
        from: "    if (!this.#handshakes.mayBegin(connection)) return false;\n",
        to: "",
      },
    ],
    narrow: "handshakes",
    goal: 1,
  },
  {
    name: "headers-awaited-for-ever",
    is: "an upload that says nothing keeps its place, also when its session has ended",
    rigs: ["unproven"],
    edits: [
      {
        file: "src/fileserver/operations/abandoned-streams.ts",
        from: "coming instanceof Promise ? await this.#whileLive(caller, coming) : coming",
        to: "await coming",
      },
    ],
    narrow: "uploads without header",
    goal: 1,
  },
  {
    name: "tokens-verified-without-end",
    is: "the provider is asked about every unknown token of an address, however many it has refused",
    rigs: ["unproven"],
    edits: [
      {
        file: "src/security/identity/verification-budget.ts",
        from: "  if (waitMs === 0) return;\n",
        to: "  if (waitMs >= 0) return;\n",
      },
    ],
    narrow: "unknown tokens",
    goal: 1,
  },
  {
    name: "bombs-decoded",
    is: "requests that anybody may send are as large as any, and what no message has is kept",
    rigs: ["unproven", "siege"],
    edits: [
      {
        file: "src/wire/framing/limits.ts",
        from: "{ receiveMessageBytes: 4 * 1_024, receiveFields: 64 }",
        to: "{ receiveMessageBytes: 8 * MIB, receiveFields: 8 * MIB }",
      },
      {
        file: "src/wire/framing/inbox.ts",
        from: "fromBinary(desc, body, { readUnknownFields: false })",
        to: "fromBinary(desc, body)",
      },
    ],
    narrow: "packed unknown fields",
    goal: 1,
  },
  {
    name: "door-sends-without-waiting",
    is: "a door does not wait until a reader takes what it has sent",
    rigs: ["door-attacks"],
    edits: [
      {
        file: "src/door/webdav/outlet.ts",
        from: "  return outlet.writeAll(parts) ? true : roomIn(outlet);\n",
        to: "  outlet.writeAll(parts);\n  return true;\n",
      },
    ],
    narrow: "slow readers",
    goal: 3,
  },
  {
    name: "missed-await-on-drain",
    is: "a download does not wait until the socket has room",
    rigs: ["attacks"],
    edits: [
      {
        file: "src/fileserver/transfers/download-pump.ts",
        from: "        const written = this.#writer.slice(bytes.subarray(done, done + PIECE_BYTES));\n        if (written !== true) await written;",
        to: "        const written = this.#writer.slice(Buffer.from(bytes.subarray(done, done + PIECE_BYTES)));\n        if (written !== true) written.catch(() => undefined);",
      },
    ],
  },
];
