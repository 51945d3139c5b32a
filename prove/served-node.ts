// Starts one FileServer as a process, its data in memory if there is room, and clients signed in to it.
import { join } from "node:path";
import { StatusError } from "#wire/framing/status.ts";
import { type Client, createClient, GrpcChannel } from "#wire/grpc/client.ts";
import { FileServer } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { REPLY_DECODERS } from "#wire/proto/listing-decoder.ts";
import type { Campaign } from "./campaign.ts";
import { freeFileServerAddress } from "./file-server.ts";
import { type GroveProcess, startGroveProcess } from "./grove-process.ts";
import { type RigEngine, startRigEngine } from "./rig-engine.ts";

const MEMORY_NEEDED_BYTES = 4 * 2 ** 30;
const ADMIN = "admin@example.com";
/** Limits for each address, out of the way: all clients of a rig come from this machine. */
const LIMITS = ["-register_per_minute", "1000000", "-sessions", "10000"];

/** A signed-in user; calls take the connections in turn. */
export interface SignedIn {
  readonly email: string;
  readonly token: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly channels: readonly GrpcChannel[];
  readonly calls: Client<typeof FileServer>;
}

/** A FileServer that has started. */
export interface ServedNode {
  readonly address: string;
  readonly dataFolder: string;
  readonly process: GroveProcess;
  /** Opens a session of this user with connections of its own. */
  signIn(email: string, connections?: number): Promise<SignedIn>;
  /** The shared engine; undefined where the data folder has everything. */
  readonly engine: RigEngine | undefined;
  /** Of the MetaServer; undefined where the node stands alone. */
  readonly metaserver: string | undefined;
  /** Username of the administrator. */
  readonly admin: string;
  /** Sets a quota as the administrator. @throws Error when it is refused */
  setQuota(username: string, quotaBytes: bigint): Promise<void>;
}

/**
 * Starts it; it ends with the campaign. In memory flushes cost nothing; on a disk there is time between two
 * of them. Power cuts are for other rigs. A rig over the engine gets a node of a shared engine, and one that names
 * flags of a MetaServer gets that too.
 */
export async function serveNode(
  campaign: Campaign,
  where: "memory" | "disk",
  metaServer?: readonly string[],
): Promise<ServedNode> {
  const dataFolder = join(await campaign.folder(where, MEMORY_NEEDED_BYTES), "node");
  const address = await freeFileServerAddress();
  const place = ["-id", "n1", "-listen", address, "-data", dataFolder];
  const settings = ["-mock", "-reserve", "1MiB", "-log_level", "warn", ...LIMITS];
  const metaserver = metaServer && (await serveMetaServer(campaign, `${dataFolder}-meta`, metaServer));
  const known = metaserver === undefined ? [] : ["-metaserver", metaserver, "-advertise", address];
  const engine = await startRigEngine(campaign);
  const words = [...place, ...settings, ...known, ...(engine?.flags ?? [])];
  const process = await startGroveProcess(["fileserver", ...words], {
    env: { SVC_ADMIN_EMAIL: ADMIN },
  });
  campaign.atEnd(() => process.end("SIGKILL"));
  const channels: GrpcChannel[] = [];
  campaign.atEnd(() => channels.forEach((channel) => channel.close()));
  const signIn = async (email: string, connections = 1): Promise<SignedIn> => {
    const own = Array.from({ length: connections }, () => new GrpcChannel({ addresses: [address] }));
    channels.push(...own);
    const [first] = own;
    if (first === undefined) throw new RangeError("at least one connection");
    const calls = createClient(FileServer, first, REPLY_DECODERS);
    const idToken = { authorization: `Bearer mock-jwt.${email}` };
    const { sessionToken: token } = await calls.registerClient(
      { clientId: "rig", deviceName: "rig" },
      { metadata: idToken, waitForReady: true },
    );
    return { email, token, metadata: { authorization: `Bearer ${token}` }, channels: own, calls };
  };
  let admin: Promise<SignedIn> | undefined;
  return {
    address,
    dataFolder,
    process,
    engine,
    metaserver,
    admin: ADMIN,
    signIn,
    async setQuota(username, quotaBytes) {
      // The promise is kept: clients that ask at once would end each other's sessions beyond the fifth.
      admin ??= signIn(ADMIN);
      const { calls, metadata } = await admin;
      const { success, error } = await calls.setQuota({ username, quotaBytes }, { metadata });
      if (!success) throw new Error(`the quota of ${username} was not set: ${error}`);
    },
  };
}

async function serveMetaServer(
  campaign: Campaign,
  dataFolder: string,
  flags: readonly string[],
): Promise<string> {
  const address = await freeFileServerAddress();
  const words = ["-listen", address, "-advertise", address, "-data", dataFolder, ...flags];
  const process = await startGroveProcess(["metaserver", "-mock", ...words], {
    env: { SVC_ADMIN_EMAIL: ADMIN },
  });
  campaign.atEnd(() => process.end("SIGKILL"));
  return address;
}

/**
 * Returns "ok", the reason of a refusal, or its status where a call failed without a reason.
 * @throws errors that are no answer of a server
 */
export async function answerOf(call: Promise<unknown>): Promise<string> {
  try {
    await call;
    return "ok";
  } catch (error) {
    return reasonOf(error);
  }
}

/**
 * Returns the reason of a refusal, or its status where there is none.
 * @throws the error when it is no answer of a server
 */
export function reasonOf(error: unknown): string {
  if (!(error instanceof StatusError)) throw error;
  return error.metadata.get("svc-reason") ?? `status ${error.code}: ${error.message}`;
}
