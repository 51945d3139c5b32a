// @connectrpc/connect-node, speaking gRPC, behind the interface of the peer tests.
import { createServer, type Http2Server } from "node:http2";
import type { AddressInfo } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { type CallOptions, ConnectError, createClient, type HandlerContext } from "@connectrpc/connect";
import { connectNodeAdapter, createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { type EchoRequest, EchoService } from "#wire/framing/gen/echo_pb.ts";
import type { Outcome, PeerKind, PeerOptions, Reply } from "./peer.ts";

// A failed call has headers and trailers in one, so a name has both values.
const mapOf = (headers: Headers): Map<string, string | Uint8Array> =>
  new Map(
    [...headers].map(([name, value]) => [
      name,
      name.endsWith("-bin") ? Buffer.from(value.split(",")[0] ?? "", "base64") : value,
    ]),
  );

const obey = async (request: EchoRequest, context: HandlerContext): Promise<void> => {
  for (const [name, value] of context.requestHeader) {
    if (!name.startsWith("x-")) continue;
    context.responseHeader.set(name, value);
    context.responseTrailer.set(name, value);
  }
  if (request.delayMs > 0) await delay(request.delayMs, undefined, { signal: context.signal });
  if (request.failCode !== 0) {
    const error = new ConnectError(request.text, request.failCode);
    if (request.data.length > 0) error.details = [{ type: "test", value: request.data }];
    // A unary failure takes its trailers from the error.
    for (const [name, value] of context.responseTrailer) error.metadata.set(name, value);
    throw error;
  }
};

const run = async (
  options: PeerOptions | undefined,
  call: (options: CallOptions, got: (reply: Reply) => void) => Promise<void>,
): Promise<Outcome> => {
  const replies: Reply[] = [];
  let headers = new Headers();
  let trailers = new Headers();
  let failure: ConnectError | undefined;
  const given = new Headers();
  for (const [name, value] of Object.entries(options?.headers ?? {})) {
    given.set(name, typeof value === "string" ? value : Buffer.from(value).toString("base64"));
  }
  try {
    await call(
      {
        headers: given,
        ...(options?.timeoutMs === undefined ? {} : { timeoutMs: options.timeoutMs }),
        ...(options?.signal === undefined ? {} : { signal: options.signal }),
        onHeader: (got) => {
          headers = got;
        },
        onTrailer: (got) => {
          trailers = got;
        },
      },
      (reply) => replies.push(reply),
    );
  } catch (error) {
    failure = ConnectError.from(error);
    trailers = failure.metadata;
  }
  return {
    code: failure?.code ?? 0,
    message: failure?.rawMessage ?? "",
    replies,
    headers: mapOf(headers),
    trailers: mapOf(trailers),
    details:
      failure?.details.map((one) => ("value" in one ? (one.value as Uint8Array) : new Uint8Array())) ?? [],
  };
};

const answer = (request: EchoRequest) => ({ text: request.text, count: request.count, data: request.data });

/** connect-node. */
export const connectNode: PeerKind = {
  name: "connect-node",
  async serve() {
    let cancelled = 0;
    const watch = (context: HandlerContext): void =>
      context.signal.addEventListener("abort", () => {
        cancelled++;
      });
    const adapter = connectNodeAdapter({
      routes: (router) =>
        router.service(EchoService, {
          async unary(request, context) {
            watch(context);
            await obey(request, context);
            return answer(request);
          },
          async *expand(request, context) {
            watch(context);
            for (let i = 0; i < request.count; i++) {
              if (i === 0 && request.failCode === 0) await obey(request, context);
              yield { ...answer(request), count: i };
            }
            if (request.failCode !== 0) await obey(request, context);
          },
          async collect(requests, context) {
            watch(context);
            const texts: string[] = [];
            for await (const request of requests) {
              await obey(request, context);
              texts.push(request.text);
            }
            return { text: texts.join(","), count: texts.length };
          },
          async *converse(requests, context) {
            watch(context);
            for await (const request of requests) {
              await obey(request, context);
              yield answer(request);
            }
          },
        }),
    });
    const server: Http2Server = createServer(adapter);
    const sessions = new Set<{ destroy(): void }>();
    server.on("session", (session) => sessions.add(session));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return {
      port: (server.address() as AddressInfo).port,
      cancelledCalls: () => cancelled,
      close: () =>
        new Promise<void>((resolve) => {
          server.close(() => resolve());
          for (const session of sessions) session.destroy();
        }),
    };
  },
  connect(port) {
    const baseUrl = `http://127.0.0.1:${port}`;
    const sessionManager = new Http2SessionManager(baseUrl);
    const client = createClient(EchoService, createGrpcTransport({ baseUrl, sessionManager }));
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
      close: () => sessionManager.abort(),
    };
  },
};
