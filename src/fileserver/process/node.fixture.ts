// A FileServer in a temporary folder with mock sign-in, and a client with free choice of every message.
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Clock } from "#base/clock.ts";
import { type Logger, silentLogger } from "#base/log.ts";
import { readIdentitySettings } from "#security/identity/sign-in-variables.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { Metadata } from "#wire/framing/metadata.ts";
import { StatusError } from "#wire/framing/status.ts";
import { type Client, createClient, GrpcChannel } from "#wire/grpc/client.ts";
import {
  type DownloadResponse,
  FileServer,
  type RegisterClientResponse,
  type UploadRequestSchema,
  type UploadResponse,
} from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { type RunningFileServer, startFileServer } from "./file-server.ts";
import type { FileServerOptions } from "./file-server-options.ts";

/** Settings that a test may change. */
export interface TestNodeSettings {
  readonly env?: Readonly<Record<string, string>>;
  readonly options?: Partial<FileServerOptions>;
  readonly clock?: Clock;
  /** The log; none by default. */
  readonly log?: Logger;
  /** A folder of an earlier node, kept when this one stops. */
  readonly dataFolder?: string;
}

/** A running node whose free space the test controls. */
export interface TestNode {
  readonly node: RunningFileServer;
  readonly dataFolder: string;
  readonly address: string;
  readonly disk: { freeBytes: bigint; totalBytes: bigint };
  /** A client without a session. */
  readonly anonymous: Client<typeof FileServer>;
  /** Signs a user in. */
  signIn(email: string): Promise<TestUser>;
  /** Opens another connection. */
  channel(): GrpcChannel;
  stop(): Promise<void>;
}

/** One signed-in user. */
export interface TestUser {
  readonly email: string;
  readonly registered: RegisterClientResponse;
  readonly token: string;
  readonly metadata: Metadata;
  readonly channel: GrpcChannel;
  /** The typed client; every call carries the session. */
  readonly call: Client<typeof FileServer>;
  upload(requests: Iterable<UploadPart> | AsyncIterable<UploadPart>): Promise<UploadResponse>;
  download(request: {
    path: string;
    root?: string;
    offset?: bigint;
    length?: bigint;
    ifMatch?: string;
  }): Promise<DownloadResponse[]>;
}

/** A message of an upload. */
export type UploadPart = MessageInitShape<typeof UploadRequestSchema>;

/** Starts a node. */
export async function startTestNode(settings: TestNodeSettings = {}): Promise<TestNode> {
  const dataFolder = settings.dataFolder ?? scratchFolder("grove-fileserver-");
  const disk = { freeBytes: 2n ** 45n, totalBytes: 2n ** 46n };
  const node = await startFileServer(
    {
      dataFolder,
      id: "n1",
      name: "n1",
      listen: { host: "127.0.0.1", port: 0 },
      metricsPort: 0,
      advertise: undefined,
      metaservers: [],
      reserveBytes: 21_474_836_480n,
      tls: undefined,
      reflection: true,
      passwordPath: true,
      identity: readIdentitySettings({ SVC_AUTH_MOCK: "1", ...settings.env }),
      metricsToken: undefined,
      limits: { registerPerMinute: 10_000, streamsPerUser: 256 },
      loops: Number(process.env["GROVE_TEST_LOOPS"] ?? 1),
      ...settings.options,
    },
    {
      log: settings.log ?? silentLogger,
      diskSpace: () => disk,
      ...(settings.clock === undefined ? {} : { clock: settings.clock }),
    },
  );
  const address = `127.0.0.1:${node.grpcPort}`;
  const channels: GrpcChannel[] = [];
  const channel = () => {
    const opened = new GrpcChannel({ addresses: [address] });
    channels.push(opened);
    return opened;
  };
  return {
    node,
    dataFolder,
    address,
    disk,
    anonymous: createClient(FileServer, channel()),
    signIn: (email) => signIn(channel(), email),
    channel,
    async stop() {
      for (const opened of channels) opened.close();
      await node.stop(1_000);
    },
  };
}

async function signIn(channel: GrpcChannel, email: string): Promise<TestUser> {
  const registered = await createClient(FileServer, channel).registerClient(
    { clientId: "test", clientVersion: "0", deviceName: "test" },
    { metadata: { authorization: `Bearer mock-jwt.${email}` } },
  );
  const metadata = new Metadata({ authorization: `Bearer ${registered.sessionToken}` });
  const call = withSession(createClient(FileServer, channel), metadata);
  return {
    email,
    registered,
    token: registered.sessionToken,
    metadata,
    channel,
    call,
    upload: (parts) => call.uploadFile(toAsync(parts)),
    async download(request) {
      const replies: DownloadResponse[] = [];
      for await (const reply of call.downloadFile(request)) replies.push(reply);
      return replies;
    },
  };
}

type AnyCall = (request: unknown, options?: object) => unknown;

function withSession(client: Client<typeof FileServer>, metadata: Metadata): Client<typeof FileServer> {
  const wrapped: Record<string, AnyCall> = {};
  for (const [name, call] of Object.entries(client as unknown as Record<string, AnyCall>)) {
    wrapped[name] = (request, options) => call(request, { metadata, ...options });
  }
  return wrapped as unknown as Client<typeof FileServer>;
}

async function* toAsync(parts: Iterable<UploadPart> | AsyncIterable<UploadPart>): AsyncGenerator<UploadPart> {
  yield* parts;
}

/** The header of an upload. */
export function header(path: string, rest: object = {}): UploadPart {
  return { part: { case: "header", value: { path, ...rest } } };
}

/** One chunk of an upload. */
export function chunk(offset: number, data: Uint8Array, crc32?: number): UploadPart {
  const value = { offset: BigInt(offset), data, ...(crc32 === undefined ? {} : { crc32 }) };
  return { part: { case: "chunk", value } };
}

/** A whole upload in chunks of the given size, with its size announced by default. */
export function* parts(
  path: string,
  data: Uint8Array,
  chunkBytes: number,
  rest: object = {},
): Generator<UploadPart> {
  yield header(path, { size: BigInt(data.length), sizeKnown: true, ...rest });
  for (let at = 0; at < data.length; at += chunkBytes) yield chunk(at, data.subarray(at, at + chunkBytes));
}

/** The reason and message of a refused call; fails the test when the call succeeds. */
export async function refusal(
  call: Promise<unknown>,
): Promise<{ code: number; reason: string; message: string; error: StatusError }> {
  try {
    await call;
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    return {
      code: error.code,
      reason: error.metadata.get("svc-reason") ?? "",
      message: error.message,
      error,
    };
  }
  throw new Error("the call was not refused");
}

/** The bytes of all chunks of a download, joined. */
export function bytesOf(replies: readonly DownloadResponse[]): Buffer {
  return Buffer.concat(replies.flatMap(({ part }) => (part.case === "chunk" ? [part.value.data] : [])));
}
