// Shared by the tests of hostile clients: a server, bare HTTP/2 streams, and an honest client beside them.
import assert from "node:assert/strict";
import { once } from "node:events";
import { type ClientHttp2Session, type ClientHttp2Stream, connect } from "node:http2";
import type { TestContext } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { create, toBinary } from "@bufbuild/protobuf";
import { type Clock, systemClock } from "#base/clock.ts";
import { frame } from "#wire/framing/frames.ts";
import { EchoRequestSchema, EchoService } from "#wire/framing/gen/echo_pb.ts";
import type { ServerLimits } from "#wire/framing/limits.ts";
import { createClient, GrpcChannel } from "./client.ts";
import { echoHandlers } from "./echo-service.ts";
import { GrpcServer } from "./server.ts";

/** Every test has a time limit. */
export const TIMEOUT = { timeout: 30_000 };
/** The path of the service, before its method names. */
export const PATH = "/grove.test.v1.EchoService/";
export const MIB = 1_048_576;

/** A server and its clients. */
export interface Lab {
  readonly server: GrpcServer;
  readonly port: number;
  readonly session: ClientHttp2Session;
  /** Fails unless an honest client on its own connection gets an answer. */
  othersGoOn(): Promise<void>;
}

/** Starts a server with these limits. */
export const setUp = async (
  t: TestContext,
  limits: Partial<ServerLimits> = {},
  clock: Clock = systemClock,
): Promise<Lab> => {
  const server = new GrpcServer({ limits, clock });
  server.addService(EchoService, echoHandlers());
  const { port } = await server.listen({ host: "127.0.0.1", port: 0 });
  const session = connect(`http://127.0.0.1:${port}`);
  session.on("error", () => undefined);
  await once(session, "remoteSettings");
  t.after(async () => {
    session.destroy();
    await server.close();
  });
  const othersGoOn = async (): Promise<void> => {
    const channel = new GrpcChannel({ addresses: [`127.0.0.1:${port}`] });
    try {
      const { text } = await createClient(EchoService, channel).unary(
        { text: "honest" },
        { timeoutMs: 10_000 },
      );
      assert.equal(text, "honest");
    } finally {
      channel.close();
    }
  };
  return { server, port, session, othersGoOn };
};

/** Opens a stream to a method of EchoService. */
export const open = (lab: Lab, method: string, headers: Record<string, string> = {}): ClientHttp2Stream => {
  const stream = lab.session.request(
    {
      ":method": "POST",
      ":path": PATH + method,
      te: "trailers",
      "content-type": "application/grpc",
      ...headers,
    },
    { endStream: false },
  );
  stream.on("error", () => undefined);
  return stream;
};

/** The answer on a stream. */
export interface Answer {
  readonly httpStatus: number | undefined;
  readonly grpcStatus: number | undefined;
  readonly bodyBytes: number;
}

/** Reads a stream to its end. */
export const answerOf = async (stream: ClientHttp2Stream): Promise<Answer> => {
  let httpStatus: number | undefined;
  let grpcStatus: number | undefined;
  let bodyBytes = 0;
  const read = (headers: Record<string, unknown>): void => {
    if (headers["grpc-status"] !== undefined) grpcStatus = Number(headers["grpc-status"]);
  };
  stream.on("response", (headers) => {
    httpStatus = Number(headers[":status"]);
    read(headers);
  });
  stream.on("trailers", read);
  stream.on("data", (chunk: Buffer) => {
    bodyBytes += chunk.length;
  });
  await Promise.race([once(stream, "end"), once(stream, "close")]);
  stream.close();
  return { httpStatus, grpcStatus, bodyBytes };
};

/** Sends bytes as the whole request, and reads the answer. */
export const send = (stream: ClientHttp2Stream, bytes: Uint8Array): Promise<Answer> => {
  const answer = answerOf(stream);
  stream.end(bytes);
  return answer;
};

/** A request with a number of data bytes, in wire form. */
export const message = (dataBytes: number): Buffer =>
  frame(toBinary(EchoRequestSchema, create(EchoRequestSchema, { data: new Uint8Array(dataBytes) })), false);

/** A message with exactly this length on the wire, without its five header bytes. */
export const messageOf = (bodyBytes: number): Buffer => {
  for (let dataBytes = bodyBytes - 12; ; dataBytes++) {
    const framed = message(dataBytes);
    if (framed.length === bodyBytes + 5) return framed;
    assert(framed.length < bodyBytes + 5, "no message has this length");
  }
};

/** Waits until the condition holds. */
export const until = async (holds: () => boolean): Promise<void> => {
  while (!holds()) await delay(5);
};
