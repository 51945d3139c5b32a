// @grpc/grpc-js behind the interface of the peer tests.
import { setTimeout as delay } from "node:timers/promises";
import { create, type DescMessage, fromBinary as decode, fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  type CallOptions,
  Client,
  credentials,
  Metadata,
  type MethodDefinition,
  Server,
  ServerCredentials,
  type ServiceDefinition,
  type ServiceError,
  status as Status,
} from "@grpc/grpc-js";
import { type EchoRequest, EchoService } from "#wire/framing/gen/echo_pb.ts";
import { StatusSchema } from "#wire/framing/gen/google/rpc/status_pb.ts";
import type { Outcome, PeerKind, PeerOptions, Reply, Request } from "./peer.ts";

const codec = (desc: DescMessage) => ({
  serialize: (value: object) => Buffer.from(toBinary(desc, create(desc, value as never))),
  deserialize: (bytes: Buffer) => fromBinary(desc, bytes),
});

const definition = (name: string): MethodDefinition<Request, Reply> => {
  const method = EchoService.methods.find((one) => one.localName === name);
  if (method === undefined) throw new Error(`no method ${name}`);
  const kind = method.methodKind;
  const request = codec(method.input);
  const reply = codec(method.output);
  return {
    path: `/${EchoService.typeName}/${method.name}`,
    requestStream: kind === "client_streaming" || kind === "bidi_streaming",
    responseStream: kind === "server_streaming" || kind === "bidi_streaming",
    requestSerialize: request.serialize,
    requestDeserialize: request.deserialize as unknown as (bytes: Buffer) => Request,
    responseSerialize: reply.serialize,
    responseDeserialize: reply.deserialize as unknown as (bytes: Buffer) => Reply,
  };
};

const service = Object.fromEntries(
  ["unary", "expand", "collect", "converse"].map((name) => [name, definition(name)]),
) as unknown as ServiceDefinition;

const mapOf = (metadata: Metadata | undefined): Map<string, string | Uint8Array> =>
  new Map(Object.entries(metadata?.getMap() ?? {}));

interface AnyCall {
  readonly metadata: Metadata;
  readonly cancelled: boolean;
  sendMetadata(metadata: Metadata): void;
  on(event: "cancelled", listener: () => void): unknown;
}

const echoed = (call: AnyCall): Metadata => {
  const back = new Metadata();
  for (const [name, value] of Object.entries(call.metadata.getMap())) {
    if (name.startsWith("x-")) back.set(name, value);
  }
  return back;
};

const obey = async (request: EchoRequest, call: AnyCall): Promise<void> => {
  if (request.delayMs > 0) await delay(request.delayMs);
  if (request.failCode === 0) return;
  const metadata = echoed(call);
  if (request.data.length > 0) {
    const details = [{ typeUrl: "type.googleapis.com/test", value: request.data }];
    const status = create(StatusSchema, { code: request.failCode, message: request.text, details });
    metadata.set("grpc-status-details-bin", Buffer.from(toBinary(StatusSchema, status)));
  }
  throw Object.assign(new Error(request.text), { code: request.failCode, details: request.text, metadata });
};

const answer = (request: EchoRequest): object => ({
  text: request.text,
  count: request.count,
  data: request.data,
});

type Callback = (error: unknown, reply?: object | null, trailer?: Metadata) => void;
/** Leaving a loop over the call itself would destroy it before its status is sent. */
type Readable = AnyCall & { iterator(options: { destroyOnReturn: boolean }): AsyncIterable<EchoRequest> };
type Writable = AnyCall & {
  write(reply: object): void;
  end(trailer: Metadata): void;
  emit(event: "error", error: Error): boolean;
};

const implementation = (onCancelled: () => void) => {
  const begin = (call: AnyCall): Metadata => {
    call.on("cancelled", onCancelled);
    const metadata = echoed(call);
    call.sendMetadata(metadata);
    return metadata;
  };
  const reply = async (
    callback: Callback,
    make: () => Promise<object>,
    trailers: Metadata,
  ): Promise<void> => {
    let value: object;
    try {
      value = await make();
    } catch (error) {
      callback(error, null);
      return;
    }
    callback(null, value, trailers);
  };
  return {
    unary: (call: AnyCall & { request: EchoRequest }, callback: Callback) => {
      const trailers = begin(call);
      void reply(
        callback,
        async () => {
          await obey(call.request, call);
          return answer(call.request);
        },
        trailers,
      );
    },
    expand: (call: Writable & { request: EchoRequest }) => {
      const trailers = begin(call);
      void (async () => {
        if (call.request.failCode === 0) await obey(call.request, call);
        for (let i = 0; i < call.request.count; i++) call.write({ ...answer(call.request), count: i });
        await obey(call.request, call);
        call.end(trailers);
      })().catch((error: unknown) => call.emit("error", error as Error));
    },
    collect: (call: Readable, callback: Callback) => {
      const trailers = begin(call);
      void reply(
        callback,
        async () => {
          const texts: string[] = [];
          for await (const request of call.iterator({ destroyOnReturn: false })) {
            await obey(request, call);
            texts.push(request.text);
          }
          return { text: texts.join(","), count: texts.length };
        },
        trailers,
      );
    },
    converse: (call: Readable & Writable) => {
      const trailers = begin(call);
      void (async () => {
        for await (const request of call.iterator({ destroyOnReturn: false })) {
          await obey(request, call);
          call.write(answer(request));
        }
        call.end(trailers);
      })().catch((error: unknown) => call.emit("error", error as Error));
    },
  };
};

/** Runs one call; `start` makes it and passes on its replies and its end. */
const run = (
  options: PeerOptions | undefined,
  start: (metadata: Metadata, given: CallOptions) => ClientCall,
  finish: (call: ClientCall, replies: Reply[]) => void,
): Promise<Outcome> =>
  new Promise((resolve) => {
    const metadata = new Metadata();
    for (const [name, value] of Object.entries(options?.headers ?? {})) {
      metadata.set(name, typeof value === "string" ? value : Buffer.from(value));
    }
    const deadline = options?.timeoutMs === undefined ? {} : { deadline: Date.now() + options.timeoutMs };
    const replies: Reply[] = [];
    const call = start(metadata, deadline);
    let headers: Metadata | undefined;
    options?.signal?.addEventListener("abort", () => call.cancel());
    call.on("metadata", (got: Metadata) => {
      headers = got;
    });
    call.on("error", () => undefined);
    call.on("status", (end: ServiceError) => {
      const binary = end.metadata.get("grpc-status-details-bin")[0];
      const details = binary === undefined ? [] : decode(StatusSchema, binary as Buffer).details;
      resolve({
        code: end.code,
        message: end.code === Status.OK ? "" : end.details,
        replies,
        headers: mapOf(headers),
        trailers: mapOf(end.metadata),
        details: details.map(({ value }) => value),
      });
    });
    finish(call, replies);
  });

interface ClientCall {
  on(event: string, listener: (value: never) => void): unknown;
  cancel(): void;
  write?(request: Request): void;
  end?(): void;
}

const sendAll = async (call: ClientCall, requests: AsyncIterable<Request>): Promise<void> => {
  for await (const request of requests) call.write?.(request);
  call.end?.();
};

/** grpc-js. */
export const grpcJs: PeerKind = {
  name: "grpc-js",
  async serve() {
    let cancelled = 0;
    const server = new Server();
    server.addService(
      service,
      implementation(() => {
        cancelled++;
      }) as never,
    );
    const port = await new Promise<number>((resolve, reject) =>
      server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) =>
        error === null ? resolve(bound) : reject(error),
      ),
    );
    return {
      port,
      cancelledCalls: () => cancelled,
      close: async () => server.forceShutdown(),
    };
  },
  connect(port) {
    const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure(), {
      "grpc.max_receive_message_length": 16 * 1_048_576,
    });
    const methods = Object.fromEntries(
      ["unary", "expand", "collect", "converse"].map((name) => [name, definition(name)]),
    ) as Record<"unary" | "expand" | "collect" | "converse", MethodDefinition<Request, Reply>>;
    return {
      unary: (request, options) => {
        const { path, requestSerialize, responseDeserialize } = methods.unary;
        const got: Reply[] = [];
        return run(
          options,
          (metadata, given) =>
            client.makeUnaryRequest(
              path,
              requestSerialize,
              responseDeserialize,
              request,
              metadata,
              given,
              (_e, reply) => {
                if (reply !== undefined) got.push(reply);
              },
            ) as unknown as ClientCall,
          () => undefined,
        ).then((outcome) => ({ ...outcome, replies: got }));
      },
      expand: (request, options) => {
        const { path, requestSerialize, responseDeserialize } = methods.expand;
        return run(
          options,
          (metadata, given) =>
            client.makeServerStreamRequest(
              path,
              requestSerialize,
              responseDeserialize,
              request,
              metadata,
              given,
            ) as unknown as ClientCall,
          (call, replies) => call.on("data", (reply: Reply) => replies.push(reply)),
        );
      },
      collect: (requests, options) => {
        const { path, requestSerialize, responseDeserialize } = methods.collect;
        const got: Reply[] = [];
        return run(
          options,
          (metadata, given) =>
            client.makeClientStreamRequest(
              path,
              requestSerialize,
              responseDeserialize,
              metadata,
              given,
              (_e, reply) => {
                if (reply !== undefined) got.push(reply);
              },
            ) as unknown as ClientCall,
          (call) => void sendAll(call, requests),
        ).then((outcome) => ({ ...outcome, replies: got }));
      },
      converse: (requests, options, seen) => {
        const { path, requestSerialize, responseDeserialize } = methods.converse;
        return run(
          options,
          (metadata, given) =>
            client.makeBidiStreamRequest(
              path,
              requestSerialize,
              responseDeserialize,
              metadata,
              given,
            ) as unknown as ClientCall,
          (call, replies) => {
            call.on("data", (reply: Reply) => {
              replies.push(reply);
              seen?.(reply);
            });
            void sendAll(call, requests);
          },
        );
      },
      close: () => client.close(),
    };
  },
};
