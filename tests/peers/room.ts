// The room's own client and server behind the interface of the peer tests.

import { EchoService } from "#wire/framing/gen/echo_pb.ts";
import { Metadata } from "#wire/framing/metadata.ts";
import { StatusError } from "#wire/framing/status.ts";
import { createClient, GrpcChannel } from "#wire/grpc/client.ts";
import type { CallOptions } from "#wire/grpc/client-call.ts";
import { echoHandlers } from "#wire/grpc/echo-service.ts";
import { GrpcServer } from "#wire/grpc/server.ts";
import type { Outcome, PeerKind, PeerOptions, Reply } from "./peer.ts";

const mapOf = (metadata: Metadata): Map<string, string | Uint8Array> =>
  new Map(
    [...metadata.entries()].map(([name, value]) => [
      name,
      name.endsWith("-bin") ? (metadata.getBinary(name) ?? "") : value,
    ]),
  );

const run = async (
  options: PeerOptions | undefined,
  call: (options: CallOptions, got: (reply: Reply) => void) => Promise<void>,
): Promise<Outcome> => {
  const replies: Reply[] = [];
  let headers = new Metadata();
  let trailers = new Metadata();
  let failure: StatusError | undefined;
  try {
    await call(
      {
        ...(options?.headers === undefined ? {} : { metadata: options.headers }),
        ...(options?.timeoutMs === undefined ? {} : { timeoutMs: options.timeoutMs }),
        ...(options?.signal === undefined ? {} : { signal: options.signal }),
        onHeaders: (got) => {
          headers = got;
        },
        onTrailers: (got) => {
          trailers = got;
        },
      },
      (reply) => replies.push(reply),
    );
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    failure = error;
  }
  return {
    code: failure?.code ?? 0,
    message: failure?.message ?? "",
    replies,
    headers: mapOf(headers),
    trailers: mapOf(trailers),
    details: failure?.details.map(({ value }) => value) ?? [],
  };
};

/** The room. */
export const room: PeerKind = {
  name: "the room",
  async serve() {
    let cancelled = 0;
    const server = new GrpcServer({
      interceptors: [
        async (context, next) => {
          context.signal.addEventListener("abort", () => {
            const reason = context.signal.reason as StatusError;
            if (reason.message !== "the call has ended") cancelled++;
          });
          await next();
        },
      ],
    });
    server.addService(EchoService, echoHandlers());
    const { port } = await server.listen({ host: "127.0.0.1", port: 0 });
    return { port, cancelledCalls: () => cancelled, close: () => server.close() };
  },
  connect(port) {
    const channel = new GrpcChannel({ addresses: [`127.0.0.1:${port}`] });
    const client = createClient(EchoService, channel);
    return {
      unary: (request, options) =>
        run(options, async (given, got) => got(await client.unary(request, given))),
      expand: (request, options) =>
        run(options, async (given, got) => {
          for await (const reply of client.expand(request, given)) got(reply);
        }),
      collect: (requests, options) =>
        run(options, async (given, got) => got(await client.collect(requests, given))),
      converse: (requests, options, seen) =>
        run(options, async (given, got) => {
          for await (const reply of client.converse(requests, given)) {
            got(reply);
            seen?.(reply);
          }
        }),
      close: () => channel.close(),
    };
  },
};
