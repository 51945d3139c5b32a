// The room plan: which rooms the house has, on which floor, and what each may import. Checked by rooms.test.ts.

/** One folder below src/, and everything that it may reach. */
export interface Room {
  /** Imports run downwards only: never to a room on the same floor, never up. */
  readonly floor: number;
  /** What the room holds, in a few words. */
  readonly holds: string;
  /** The rooms that it may import, all of them on lower floors. */
  readonly imports: readonly string[];
  /** The npm packages that it may import. */
  readonly packages: readonly string[];
  /** Those of SENSITIVE_BUILTINS that it may import; all other modules of Node are free. */
  readonly builtins: readonly string[];
}

/** Modules of Node through which a room reaches the disk, the network, other processes or a database. */
export const SENSITIVE_BUILTINS: readonly string[] = [
  "node:child_process",
  "node:cluster",
  "node:dgram",
  "node:fs",
  "node:fs/promises",
  "node:http",
  "node:http2",
  "node:https",
  "node:net",
  "node:sqlite",
  "node:tls",
  "node:worker_threads",
];

const FILES: readonly string[] = ["node:fs", "node:fs/promises"];
const PROCESS_ROOM: readonly string[] = ["base", "proto", "grpc", "os"];

/** The rooms of src/ by name. */
export const ROOMS: Readonly<Record<string, Room>> = {
  base: {
    floor: 0,
    holds: "words, limits, errors, clocks, exact JSON, queues and buckets; no I/O",
    imports: [],
    packages: ["lru-cache"],
    builtins: [],
  },
  proto: {
    floor: 2,
    holds: "the generated messages and services of proto/grove/v1, and what a refusal is in gRPC",
    imports: ["base", "grpc"],
    packages: ["@bufbuild/protobuf"],
    builtins: [],
  },
  grpc: {
    floor: 1,
    holds: "gRPC over node:http2; generic, knows no Grove",
    imports: ["base"],
    packages: ["@bufbuild/protobuf", "lru-cache"],
    builtins: ["node:http2", "node:net", "node:perf_hooks", "node:tls"],
  },
  os: {
    floor: 1,
    holds: "the machine: files made durable, locks, free space, signals, logs",
    imports: ["base"],
    packages: ["pino"],
    builtins: [...FILES, "node:child_process", "node:http", "node:https", "node:net", "node:sqlite"],
  },
  webapi: {
    floor: 1,
    holds: "what the console's HTTP and WebSocket interfaces say, as schemas; runs in a browser too",
    imports: ["base"],
    packages: ["zod"],
    builtins: [],
  },
  testing: {
    floor: 1,
    holds: "what tests share; never part of the product",
    imports: ["base"],
    packages: [],
    builtins: [...FILES, "node:child_process", "node:https", "node:net", "node:tls"],
  },
  storage: {
    floor: 2,
    holds: "inodes in SQLite, chunk files, uploads, the check; knows no quota rule and no permission",
    imports: ["base", "os"],
    packages: [],
    builtins: ["node:fs", "node:sqlite", "node:worker_threads"],
  },
  quota: {
    floor: 2,
    holds: "headroom and reserve rules (pure) and the book of quotas",
    imports: ["base", "os"],
    packages: [],
    builtins: ["node:fs/promises"],
  },
  sessions: {
    floor: 2,
    holds: "the table of server session tokens; in memory only",
    imports: ["base"],
    packages: ["lru-cache"],
    builtins: [],
  },
  identity: {
    floor: 2,
    holds: "ID-token verification and its cache, mock tokens, PKCE, the administrator's password",
    imports: ["base", "os"],
    packages: ["lru-cache", "oauth4webapi", "zod"],
    builtins: ["node:fs/promises"],
  },
  policy: {
    floor: 2,
    holds: "the one authorization decision; pure",
    imports: ["base"],
    packages: [],
    builtins: [],
  },
  telemetry: {
    floor: 2,
    holds: "counters, latency windows, host gauges, the /metrics document",
    imports: ["base"],
    packages: ["negotiator"],
    builtins: ["node:fs/promises", "node:child_process"],
  },
  audit: {
    floor: 2,
    holds: "the audit log: one line per act, each with the hash of the line before",
    imports: ["base", "os"],
    packages: [],
    builtins: FILES,
  },
  alerts: {
    floor: 2,
    holds: "thresholds and the book of alerts, what is told to whom and when, its delivery",
    imports: ["base", "os", "webapi"],
    packages: ["nodemailer", "re2js", "zod"],
    builtins: ["node:fs/promises", "node:http", "node:https"],
  },
  history: {
    floor: 2,
    holds: "the last hour of every node as columns, rates, its snapshot, what is kept for forecasts, CSV",
    imports: ["base", "os", "webapi"],
    packages: ["csv-stringify"],
    builtins: ["node:fs/promises", "node:worker_threads"],
  },
  orchestration: {
    floor: 2,
    holds: "actions on nodes over SSH: their arguments, records, locks, connections, runs",
    imports: ["base", "os", "webapi"],
    packages: ["zod"],
    builtins: [...FILES, "node:child_process", "node:string_decoder"],
  },
  directory: {
    floor: 2,
    holds: "the shared metadata store behind one interface",
    imports: ["base", "os"],
    packages: ["pg"],
    builtins: [...FILES, "node:sqlite", "node:worker_threads"],
  },
  authority: {
    floor: 2,
    holds: "the cluster's own certificate authority",
    imports: ["base", "os"],
    packages: ["@peculiar/x509", "reflect-metadata"],
    builtins: ["node:fs/promises", "node:net"],
  },
  fileserver: {
    floor: 3,
    holds: "policy, quota, storage, telemetry in that order, once; its gRPC routes and metrics listener",
    imports: [
      ...PROCESS_ROOM,
      "storage",
      "quota",
      "sessions",
      "identity",
      "policy",
      "telemetry",
      "audit",
      "authority",
    ],
    packages: ["@bufbuild/protobuf", "commander", "lru-cache", "zod"],
    builtins: [...FILES, "node:http"],
  },
  metaserver: {
    floor: 3,
    holds: "routing, placement, registration; its gRPC routes",
    imports: [...PROCESS_ROOM, "identity", "telemetry", "directory", "authority"],
    packages: ["@bufbuild/protobuf", "commander", "lru-cache", "zod"],
    builtins: [...FILES, "node:http", "node:net", "node:tls"],
  },
  console: {
    floor: 3,
    holds: "`grove admin`: poller, state of the cluster, views, desks; its HTTP and WebSocket routes",
    imports: [
      ...PROCESS_ROOM,
      "webapi",
      "identity",
      "telemetry",
      "audit",
      "directory",
      "authority",
      "alerts",
      "history",
      "orchestration",
    ],
    packages: [
      "@fastify/cookie",
      "@fastify/static",
      "@fastify/swagger",
      "@fastify/websocket",
      "commander",
      "fastify",
      "fastify-type-provider-zod",
      "lru-cache",
      "ws",
      "zod",
    ],
    builtins: [...FILES, "node:http", "node:https", "node:net", "node:tls"],
  },
  client: {
    floor: 3,
    holds: "sign-in, session cache, routing, transfers, the commands people type",
    imports: [...PROCESS_ROOM, "identity"],
    packages: ["@bufbuild/protobuf", "commander", "env-paths", "oauth4webapi"],
    builtins: [...FILES, "node:child_process", "node:http", "node:net", "node:tls"],
  },
  devcluster: {
    floor: 4,
    holds: "`grove up`: all processes, a local identity provider, demo users",
    imports: [...PROCESS_ROOM, "identity", "authority"],
    packages: ["commander", "oidc-provider", "zod"],
    builtins: [...FILES, "node:child_process", "node:http", "node:net"],
  },
  doctor: {
    floor: 4,
    holds: "`grove doctor`: what is wrong with a client machine or a server's host, and what to do about it",
    imports: [...PROCESS_ROOM, "identity", "directory", "authority", "client"],
    packages: ["commander"],
    builtins: [...FILES, "node:net", "node:tls"],
  },
  bin: {
    floor: 5,
    holds: "argv and environment in, exit code out",
    imports: ["base", "fileserver", "metaserver", "console", "client", "devcluster", "doctor"],
    packages: ["commander"],
    builtins: [],
  },
};

/** Folders of generated code, which no rule of style is applied to. */
export const GENERATED: readonly string[] = ["src/proto/gen", "src/grpc/gen", "tests/conformance/gen"];

/** Lines that a file may have without being listed below. */
export const MAX_FILE_LINES = 400;

/** Files that are longer, each with the reason why one file reads better than two. */
export const LONG_FILES: Readonly<Record<string, string>> = {
  "src/alerts/alert-book.test.ts": "the book's rules are shown on one key and one clock",
  "src/alerts/rules.test.ts": "every threshold at both of its sides, from one healthy node",
  "src/sessions/session-table.test.ts": "one table seen from outside, by one way to set it up",
  "src/directory/postgres-directory.ts": "one short method for each command of the store",
};

/** Files of a room that may import one another in a row: so many one has to know to change the last of them. */
export const MAX_ROOM_LEVELS = 12;

/** Rooms with more levels, each with what becomes of it. */
export const DEEP_ROOMS: Readonly<Record<string, string>> = {
  storage: "becomes a wing, with the contract and the rows below the writer",
  fileserver: "becomes a wing, with the operations below the process",
  client: "becomes a wing, with sign-in and connections below transfers",
};

/** The folders of web/ by their floors: words know nobody, what is live knows no part, and parts know no page. */
export const PAGE_FLOORS: Readonly<Record<string, number>> = {
  words: 0,
  live: 1,
  parts: 2,
  frame: 3,
  pages: 3,
};

/** SHA-256 of docs/specification.md: the contract is cited by section, so the copy stays as it was given. */
export const SPECIFICATION_SHA256 = "dd4cec9f5e54c5caf460abc8b04901af8a8e8fe72744c5fc1ed3dac3f3388c6c";
