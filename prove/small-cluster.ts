// Starts a MetaServer, a FileServer and a console as processes with rate limits out of the way, for rigs that
// attack their ports.
import { join } from "node:path";
import { freeGrpcPorts } from "#testing/free-ports.ts";
import { type GroveProcess, startGroveProcess } from "./grove-process.ts";

/** A limit that no rig reaches. */
const BOUNDLESS = "1000000000";

/** The password of its operators and administrators. */
export const CLUSTER_PASSWORD = "a password of the rigs";

/** One of its servers. */
export interface ClusterServer {
  readonly name: "metaserver" | "second metaserver" | "fileserver" | "admin";
  /** host:port of its first listener. */
  readonly address: string;
  readonly process: GroveProcess;
}

/** The three servers. */
export interface SmallCluster {
  readonly metaserver: ClusterServer;
  readonly fileserver: ClusterServer;
  readonly console: ClusterServer;
  /** The second MetaServer where there is one, else the same as `metaserver`. */
  readonly loneMetaserver: ClusterServer;
  readonly all: readonly ClusterServer[];
  stop(): Promise<void>;
}

/** Options of the cluster. */
export interface SmallClusterSettings {
  readonly env?: Readonly<Record<string, string>>;
  /** Adds a MetaServer with a store of its own, for requests that would upset the other servers. */
  readonly hasSecondMetaServer?: boolean;
  /** Keeps the rate limits at their defaults. */
  readonly keepsLimits?: boolean;
  /** Further flags of the FileServer. */
  readonly fileServerFlags?: readonly string[];
  readonly nodeFlags?: readonly string[];
}

/** Starts them in a folder, in mock mode; the console polls the FileServer. */
export async function startSmallCluster(
  folder: string,
  settings: SmallClusterSettings = {},
): Promise<SmallCluster> {
  const ports = (await freeGrpcPorts(4)).map((port) => `127.0.0.1:${port}`);
  const [meta = "", file = "", web = "", lone = ""] = ports;
  const env = { ADMIN_PASSWORD: CLUSTER_PASSWORD, SVC_ADMIN_EMAIL: "admin@example.com", ...settings.env };
  const nodeFlags = settings.nodeFlags ?? [];
  const start = async (
    name: ClusterServer["name"],
    address: string,
    words: readonly string[],
  ): Promise<ClusterServer> => ({
    name,
    address,
    process: await startGroveProcess([name.replace("second ", ""), "-listen", address, ...words], {
      env,
      nodeFlags,
    }),
  });
  const metaFolder = join(folder, "metaserver");
  const metaserver = await start("metaserver", meta, ["-data", metaFolder, "-advertise", meta]);
  const limits = [
    "-register_per_minute",
    BOUNDLESS,
    "-password_failures",
    BOUNDLESS,
    "-streams_per_user",
    "1000",
  ];
  const rates = ["-rate_visitor", BOUNDLESS, "-rate_operator", BOUNDLESS, "-login_failures", BOUNDLESS];
  const [fileserver, console, second] = await Promise.all([
    start("fileserver", file, [
      "-data",
      join(folder, "n1"),
      "-id",
      "n1",
      "-advertise",
      file,
      "-metaserver",
      meta,
      "-reserve",
      "1MiB",
      ...(settings.keepsLimits === true ? [] : limits),
      ...(settings.fileServerFlags ?? []),
    ]),
    start("admin", web, [
      "-data",
      join(folder, "console"),
      "-meta",
      `sqlite:${join(metaFolder, "metadata.db")}`,
      "-allow_nodes",
      "127.0.0.1",
      ...(settings.keepsLimits === true ? [] : rates),
    ]),
    settings.hasSecondMetaServer === true
      ? start("second metaserver", lone, ["-data", join(folder, "second"), "-advertise", lone])
      : undefined,
  ]);
  const all = [metaserver, fileserver, console, ...(second === undefined ? [] : [second])];
  return {
    metaserver,
    fileserver,
    console,
    loneMetaserver: second ?? metaserver,
    all,
    async stop() {
      await Promise.all(all.map((server) => server.process.end("SIGKILL")));
    },
  };
}
