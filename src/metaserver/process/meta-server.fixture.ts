// A MetaServer on a real port with a real store, and a client to speak to it, for this room's tests.
import assert from "node:assert/strict";
import { join } from "node:path";
import type { TestContext } from "node:test";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { AuditAct } from "#base/audit-act.ts";
import { ManualClock } from "#base/clock.ts";
import type { ErrorCode } from "#base/errors.ts";
import { type LogFields, type Logger, silentLogger } from "#base/log.ts";
import { systemRandom } from "#base/random.ts";
import type { Directory } from "#metaserver/directory/directory.ts";
import { openDirectory } from "#metaserver/directory/open-directory.ts";
import { readIdentitySettings } from "#security/identity/sign-in-variables.ts";
import { createTokenVerifier, type TokenVerifier } from "#security/identity/token-verifier.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { type Code, StatusError } from "#wire/framing/status.ts";
import { type Client, createClient, GrpcChannel, type GrpcChannelOptions } from "#wire/grpc/client.ts";
import type { ServerTls } from "#wire/grpc/http-server.ts";
import { MetaServer, type RegisterFileServerRequestSchema } from "#wire/proto/gen/grove/v1/meta_server_pb.ts";
import { administratorsOf } from "./administrator.ts";
import type { MetaCertificates } from "./certificates.ts";
import { openKnownNodesFile } from "./known-nodes-file.ts";
import { startMetaServer } from "./meta-server.ts";
import { openTicketSigner } from "./ticket-signer.ts";

/** A MetaServer under test. */
export interface MetaServerUnderTest {
  readonly clock: ManualClock;
  readonly directory: Directory;
  readonly port: number;
  /** Port for nodes alone; undefined unless a test wants it. */
  readonly controlPort: number | undefined;
  /** Acts that were told to its audit log. */
  readonly audited: AuditAct[];
  /** Events that were logged, with their fields. */
  readonly logged: { event: string; fields: LogFields }[];
  /** A client over a channel of its own, closed after the test. */
  connect(tls?: GrpcChannelOptions["tls"], port?: number): Client<typeof MetaServer>;
  channel(tls?: GrpcChannelOptions["tls"], port?: number): GrpcChannel;
  /** Stops it before the test's end does. */
  stop(): Promise<void>;
}

/** Starts one; plain and in mock mode unless it is given certificates. */
export async function startForTest(
  t: TestContext,
  options: {
    readonly tls?: ServerTls;
    readonly clock?: ManualClock;
    readonly certificates?: MetaCertificates;
    /** URL of its store; a new file when left out. */
    readonly store?: string;
    /** Folder of its own files; a new one when left out. */
    readonly folder?: string;
    readonly tokenVerifier?: TokenVerifier;
    readonly doorTokens?: TokenVerifier;
    /** True for a second address for nodes alone. */
    readonly hasControlListener?: boolean;
    /** Environment that names administrators; none by default. */
    readonly env?: Readonly<Record<string, string>>;
    /** Claim with the names of groups; none by default. */
    readonly groupsClaim?: string;
  } = {},
): Promise<MetaServerUnderTest> {
  const clock = options.clock ?? new ManualClock();
  const tls = options.certificates?.served() ?? options.tls;
  const mock = tls === undefined;
  const folder = scratchFolder("metaserver-");
  const directory = await openDirectory(options.store ?? `sqlite:${join(folder, "metadata.db")}`, { clock });
  const logged: MetaServerUnderTest["logged"] = [];
  const keep = (event: string, fields: LogFields = {}): number => logged.push({ event, fields });
  const log: Logger = { ...silentLogger, debug: keep, info: keep, warn: keep, error: keep };
  const audited: AuditAct[] = [];
  const { groupsClaim } = options;
  const server = await startMetaServer({
    directory,
    groupsClaim,
    tokenVerifier:
      options.tokenVerifier ?? createTokenVerifier({ clientId: "grove", mock, clock, groupsClaim }),
    doorTokens:
      options.doorTokens ?? createTokenVerifier({ clientId: "grove-door", mock, clock, groupsClaim }),
    administrators: administratorsOf(readIdentitySettings(options.env ?? {}), {
      clock,
      log,
      onSecurityEvent: () => undefined,
    }),
    rememberCluster: async () => {},
    knownNodes: await openKnownNodesFile(options.folder ?? folder),
    audit: (act) => audited.push(act),
    clock,
    log,
    listen: { host: "127.0.0.1", port: 0 },
    controlListen: options.hasControlListener === true ? { host: "127.0.0.1", port: 0 } : undefined,
    tls,
    certificates: options.certificates,
    mock,
    reflection: true,
    ticketSigner: await openTicketSigner(options.folder ?? folder, { clock, random: systemRandom }),
    random: systemRandom,
  });
  const channels: GrpcChannel[] = [];
  t.after(async () => {
    for (const channel of channels) channel.close();
    await server.stop();
  });
  const channel = (tls?: GrpcChannelOptions["tls"], port = server.address.port): GrpcChannel => {
    const made = new GrpcChannel({
      addresses: [`127.0.0.1:${port}`],
      ...(tls === undefined ? {} : { tls }),
    });
    channels.push(made);
    return made;
  };
  return {
    clock,
    audited,
    directory,
    port: server.address.port,
    controlPort: server.controlAddress?.port,
    logged,
    channel,
    stop: () => server.stop(),
    connect: (tls, port) => createClient(MetaServer, channel(tls, port)),
  };
}

/** Every message is of a process of its own by default. */
let instances = 0;

/** A registration with defaults for all facts that a test does not set. */
export function nodeMessage(
  fsId: string,
  facts: MessageInitShape<typeof RegisterFileServerRequestSchema> = {},
): MessageInitShape<typeof RegisterFileServerRequestSchema> {
  return {
    fsId,
    name: `Node ${fsId}`,
    grpcAddr: `${fsId}.example.com:50051`,
    version: "0.1.0",
    instanceId: `i${++instances}-${fsId}`,
    dataId: `d-${fsId}`,
    diskTotal: 1n << 40n,
    diskFree: 1n << 39n,
    ...facts,
  };
}

/** Call options with a mock ID token for the user. */
export function as(email: string): { metadata: { authorization: string } } {
  return { metadata: { authorization: `Bearer mock-jwt.${email}` } };
}

/** Asserts that a call ends with this status and reason (D1). */
export async function refused(call: Promise<unknown>, code: Code, reason: ErrorCode): Promise<void> {
  await assert.rejects(call, (error) => {
    assert.ok(error instanceof StatusError, String(error));
    assert.deepEqual([error.metadata.get("svc-reason"), error.code], [reason, code], error.message);
    return true;
  });
}
