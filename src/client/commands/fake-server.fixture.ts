// A FileServer that gives a test's answers, true or false, over a real connection.
import { createHash } from "node:crypto";
import { crc32 } from "node:zlib";
import { type MessageInitShape } from "@bufbuild/protobuf";
import { type Code, StatusError } from "#wire/framing/status.ts";
import type { ServiceHandlers } from "#wire/grpc/handler.ts";
import { GrpcServer } from "#wire/grpc/server.ts";
import { type AttrSchema, Kind } from "#wire/proto/gen/grove/v1/common_pb.ts";
import { FileServer } from "#wire/proto/gen/grove/v1/file_server_pb.ts";

/** The handlers of a test; missing ones are not implemented. */
export type FakeHandlers = Partial<ServiceHandlers<typeof FileServer>>;

/** Attributes as a server sends them. */
export type AttrInit = MessageInitShape<typeof AttrSchema>;

/** A running server. */
export interface FakeServer {
  readonly address: string;
  /** ID tokens of RegisterClient calls, in order. */
  readonly registrations: string[];
  /** Session tokens that are accepted; a test may empty it. */
  readonly sessions: Set<string>;
  stop(): Promise<void>;
}

/** Starts a server on a free or the given port. Registration works unless the handlers override it. */
export async function startFakeServer(handlers: FakeHandlers, port = 0): Promise<FakeServer> {
  const registrations: string[] = [];
  const sessions = new Set<string>();
  const server = new GrpcServer({
    interceptors: [
      async (context, next) => {
        const token = context.metadata.get("authorization") ?? "";
        const isOpen = context.method.name === "RegisterClient" || context.method.name === "SetQuota";
        if (!isOpen && !sessions.has(token)) throw refusal(16, "SESSION_UNKNOWN");
        await next();
      },
    ],
  });
  server.addService(FileServer, {
    registerClient: (_request, context) => {
      registrations.push(context.metadata.get("authorization") ?? "");
      const sessionToken = `sst_${createHash("sha256").update(String(registrations.length)).digest("base64url")}`;
      sessions.add(`Bearer ${sessionToken}`);
      const username = (registrations.at(-1) ?? "").replace("Bearer mock-jwt.", "");
      return {
        sessionToken,
        expiresAt: BigInt(Math.trunc(Date.now() / 1_000) + 43_200),
        username,
        rootId: "r",
      };
    },
    endSession: () => ({ ended: 1 }),
    ...handlers,
  });
  const { port: bound } = await server.listen({ host: "127.0.0.1", port });
  return { address: `127.0.0.1:${bound}`, registrations, sessions, stop: () => server.close() };
}

/** A refusal with Grove's reason, as servers send it to simple clients. */
export function refusal(code: number, reason: string, trailers: Record<string, string> = {}): StatusError {
  const error = new StatusError(code as Code, "refused");
  error.metadata.set("svc-reason", reason);
  for (const [name, value] of Object.entries(trailers)) error.metadata.set(name, value);
  return error;
}

/** Attributes of a file with the given content. */
export function fileAttr(name: string, content: Uint8Array, over: AttrInit = {}): AttrInit {
  return {
    name,
    path: `/${name}`,
    kind: Kind.FILE,
    size: BigInt(content.length),
    mtimeMs: 1_700_000_000_123n,
    crc32: crc32(content),
    ...over,
  };
}

/** Attributes of a folder. */
export function folderAttr(name: string, over: AttrInit = {}): AttrInit {
  return { name, path: `/${name}`, kind: Kind.DIRECTORY, mtimeMs: 1_700_000_000_000n, ...over };
}
