// The client under test by the conformance runner: makes the described calls and reports outcomes.
import { setTimeout as delay } from "node:timers/promises";
import {
  create,
  type DescMessage,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
} from "@bufbuild/protobuf";
import type { Any } from "@bufbuild/protobuf/wkt";
import { Metadata } from "#wire/framing/metadata.ts";
import { StatusError } from "#wire/framing/status.ts";
import { createClient, GrpcChannel } from "#wire/grpc/client.ts";
import { type CallOptions } from "#wire/grpc/client-call.ts";
import { readMessages, writeMessage } from "./delimited.ts";
import {
  type ClientCompatRequest,
  ClientCompatRequestSchema,
  ClientCompatResponseSchema,
  ClientResponseResultSchema,
} from "./gen/connectrpc/conformance/v1/client_compat_pb.ts";
import { type Code, Compression, StreamType } from "./gen/connectrpc/conformance/v1/config_pb.ts";
import {
  BidiStreamRequestSchema,
  ClientStreamRequestSchema,
  type ConformancePayload,
  ConformancePayloadSchema,
  ConformanceService,
  IdempotentUnaryRequestSchema,
  ServerStreamRequestSchema,
  UnaryRequestSchema,
  UnimplementedRequestSchema,
} from "./gen/connectrpc/conformance/v1/service_pb.ts";
import { addHeaders, headersOf } from "./metadata.ts";

type Result = MessageInitShape<typeof ClientResponseResultSchema>;

const unpack = <D extends DescMessage>(desc: D, any: Any | undefined): MessageShape<D> => {
  if (any === undefined) throw new Error("a request is missing");
  return fromBinary(desc, any.value);
};

/** One call in progress, and its known results. */
class Run {
  readonly payloads: ConformancePayload[] = [];
  readonly options: CallOptions;
  unsent = 0;
  #headers: Metadata | undefined;
  #trailers: Metadata | undefined;
  readonly #abort = new AbortController();
  readonly #request: ClientCompatRequest;

  constructor(request: ClientCompatRequest) {
    this.#request = request;
    const metadata = new Metadata();
    addHeaders(request.requestHeaders, metadata);
    this.options = {
      metadata,
      compress: request.compression === Compression.GZIP,
      signal: this.#abort.signal,
      ...(request.timeoutMs === undefined ? {} : { timeoutMs: request.timeoutMs }),
      onHeaders: (headers) => {
        this.#headers = headers;
      },
      onTrailers: (trailers) => {
        this.#trailers = trailers;
      },
    };
  }

  cancel(): void {
    this.#abort.abort();
  }

  get cancelsBeforeCloseSend(): boolean {
    return this.#request.cancel?.cancelTiming.case === "beforeCloseSend";
  }

  /** Arranges the cancellation that follows the end of the requests. */
  requestsEnded(): void {
    const timing = this.#request.cancel?.cancelTiming;
    if (timing === undefined) return;
    if (timing.case === undefined) this.cancel();
    else if (timing.case === "afterCloseSendMs") void delay(timing.value).then(() => this.cancel());
  }

  received(payload: ConformancePayload | undefined): void {
    this.payloads.push(payload ?? create(ConformancePayloadSchema));
    const timing = this.#request.cancel?.cancelTiming;
    if (timing?.case === "afterNumResponses" && timing.value === this.payloads.length) this.cancel();
  }

  result(error: unknown): Result {
    return {
      payloads: this.payloads,
      responseHeaders: headersOf(this.#headers ?? new Metadata()),
      responseTrailers: headersOf(this.#trailers ?? new Metadata()),
      numUnsentRequests: this.unsent,
      ...(error === undefined ? {} : { error: errorOf(error) }),
    };
  }
}

const errorOf = (error: unknown): NonNullable<Result["error"]> => {
  if (!(error instanceof StatusError)) return { code: 2, message: String(error) };
  return {
    code: error.code as number as Code,
    message: error.message,
    details: error.details.map(({ typeUrl, value }) => ({ typeUrl, value })),
  };
};

/** Yields requests one by one at the runner's pace, in full duplex each only after the answer before. */
async function* requestsOf<D extends DescMessage>(
  desc: D,
  request: ClientCompatRequest,
  run: Run,
  answered?: (sent: number) => Promise<void>,
): AsyncGenerator<MessageShape<D>, void, undefined> {
  let sent = 0;
  try {
    for (const any of request.requestMessages) {
      await delay(request.requestDelayMs);
      sent++;
      yield unpack(desc, any);
      await answered?.(sent);
    }
    if (run.cancelsBeforeCloseSend) {
      run.cancel();
      return;
    }
    run.requestsEnded();
  } finally {
    run.unsent = request.requestMessages.length - sent;
  }
}

const call = async (request: ClientCompatRequest, run: Run, channel: GrpcChannel): Promise<void> => {
  const client = createClient(ConformanceService, channel);
  const first = request.requestMessages[0];
  switch (request.method) {
    case "Unary":
    case "IdempotentUnary":
    case "Unimplemented": {
      const reply =
        request.method === "Unary"
          ? client.unary(unpack(UnaryRequestSchema, first), run.options)
          : request.method === "IdempotentUnary"
            ? client.idempotentUnary(unpack(IdempotentUnaryRequestSchema, first), run.options)
            : client.unimplemented(unpack(UnimplementedRequestSchema, first), run.options);
      run.requestsEnded();
      const answer = await reply;
      run.received("payload" in answer ? answer.payload : undefined);
      return;
    }
    case "ClientStream":
      run.received(
        (await client.clientStream(requestsOf(ClientStreamRequestSchema, request, run), run.options)).payload,
      );
      return;
    case "ServerStream": {
      const replies = client.serverStream(unpack(ServerStreamRequestSchema, first), run.options);
      run.requestsEnded();
      for await (const reply of replies) run.received(reply.payload);
      return;
    }
    case "BidiStream":
      return converse(request, run, channel);
    default:
      throw new Error(`no method ${String(request.method)}`);
  }
};

const converse = async (request: ClientCompatRequest, run: Run, channel: GrpcChannel): Promise<void> => {
  const client = createClient(ConformanceService, channel);
  const isFullDuplex = request.streamType === StreamType.FULL_DUPLEX_BIDI_STREAM;
  const state = { isOver: false, wake: (): void => undefined };
  const answered = async (sent: number): Promise<void> => {
    while (!state.isOver && run.payloads.length < sent) {
      await new Promise<void>((resolve) => {
        state.wake = resolve;
      });
    }
  };
  const requests = requestsOf(BidiStreamRequestSchema, request, run, isFullDuplex ? answered : undefined);
  try {
    for await (const reply of client.bidiStream(requests, run.options)) {
      run.received(reply.payload);
      state.wake();
    }
  } finally {
    state.isOver = true;
    state.wake();
  }
};

const execute = async (request: ClientCompatRequest): Promise<Result> => {
  const tls = request.serverTlsCert.length > 0;
  const creds = request.clientTlsCreds;
  const channel = new GrpcChannel({
    addresses: [`${request.host}:${request.port}`],
    ...(request.messageReceiveLimit === 0
      ? {}
      : { limits: { receiveMessageBytes: request.messageReceiveLimit } }),
    ...(tls
      ? {
          tls: {
            ca: Buffer.from(request.serverTlsCert),
            ...(creds === undefined ? {} : { cert: Buffer.from(creds.cert), key: Buffer.from(creds.key) }),
          },
        }
      : {}),
  });
  const run = new Run(request);
  try {
    await call(request, run, channel);
    return run.result(undefined);
  } catch (error) {
    return run.result(error);
  } finally {
    channel.close();
  }
};

/** More calls at once would be late for the shorter deadlines on a busy machine. */
const CALLS_AT_ONCE = 8;

const running = new Set<Promise<void>>();
for await (const request of readMessages(ClientCompatRequestSchema)) {
  const done = execute(request).then((response) =>
    writeMessage(ClientCompatResponseSchema, {
      testName: request.testName,
      result: { case: "response", value: create(ClientResponseResultSchema, response) },
    }),
  );
  running.add(done);
  void done.finally(() => running.delete(done));
  if (running.size >= CALLS_AT_ONCE) await Promise.race(running);
}
await Promise.all(running);
