// The server under test by the conformance runner: the room's server with the conformance service.

import { setTimeout as delay } from "node:timers/promises";
import { create, type DescMessage, type MessageShape } from "@bufbuild/protobuf";
import { type Any, anyPack } from "@bufbuild/protobuf/wkt";
import { type Code, StatusError } from "#wire/framing/status.ts";
import type { CallContext } from "#wire/grpc/handler.ts";
import { GrpcServer } from "#wire/grpc/server.ts";
import { readMessages, writeMessage } from "./delimited.ts";
import {
  ServerCompatRequestSchema,
  ServerCompatResponseSchema,
} from "./gen/connectrpc/conformance/v1/server_compat_pb.ts";
import {
  BidiStreamRequestSchema,
  ClientStreamRequestSchema,
  type Error as ConformanceError,
  type ConformancePayload,
  type ConformancePayload_RequestInfo,
  ConformancePayload_RequestInfoSchema,
  ConformancePayloadSchema,
  ConformanceService,
  IdempotentUnaryRequestSchema,
  ServerStreamRequestSchema,
  type StreamResponseDefinition,
  UnaryRequestSchema,
  type UnaryResponseDefinition,
} from "./gen/connectrpc/conformance/v1/service_pb.ts";
import { addHeaders, headersOf } from "./metadata.ts";

const infoOf = (context: CallContext, requests: Any[]): ConformancePayload_RequestInfo =>
  create(ConformancePayload_RequestInfoSchema, {
    requestHeaders: headersOf(context.metadata),
    ...(context.timeoutMs === undefined ? {} : { timeoutMs: BigInt(context.timeoutMs) }),
    requests,
  });

const failure = (error: ConformanceError, info: ConformancePayload_RequestInfo | undefined): StatusError => {
  const details = [...error.details];
  if (info !== undefined) details.push(anyPack(ConformancePayload_RequestInfoSchema, info));
  return new StatusError(error.code as number as Code, error.message ?? "", { details });
};

const answerOnce = async (
  definition: UnaryResponseDefinition | undefined,
  context: CallContext,
  requests: Any[],
): Promise<{ payload: ConformancePayload }> => {
  const info = infoOf(context, requests);
  const payload = create(ConformancePayloadSchema, { requestInfo: info });
  if (definition === undefined) return { payload };
  addHeaders(definition.responseHeaders, context.responseHeaders);
  addHeaders(definition.responseTrailers, context.trailers);
  await delay(definition.responseDelayMs);
  if (definition.response.case === "error") throw failure(definition.response.value, info);
  if (definition.response.case === "responseData") payload.data = definition.response.value;
  return { payload };
};

/** Sends the headers and trailers of a stream's answers. */
const begin = (definition: StreamResponseDefinition, context: CallContext): void => {
  addHeaders(definition.responseHeaders, context.responseHeaders);
  addHeaders(definition.responseTrailers, context.trailers);
};

const pack = <D extends DescMessage>(desc: D, message: MessageShape<D>): Any => anyPack(desc, message);

const serve = (server: GrpcServer): void =>
  server.addService(ConformanceService, {
    unary: (request, context) =>
      answerOnce(request.responseDefinition, context, [pack(UnaryRequestSchema, request)]),
    idempotentUnary: (request, context) =>
      answerOnce(request.responseDefinition, context, [pack(IdempotentUnaryRequestSchema, request)]),

    async clientStream(requests, context) {
      let definition: UnaryResponseDefinition | undefined;
      const seen: Any[] = [];
      for await (const request of requests) {
        if (seen.length === 0) definition = request.responseDefinition;
        seen.push(pack(ClientStreamRequestSchema, request));
      }
      return answerOnce(definition, context, seen);
    },

    async *serverStream(request, context) {
      const definition = request.responseDefinition;
      if (definition === undefined) return;
      begin(definition, context);
      if (definition.responseData.length > 0) context.sendHeaders();
      const info = infoOf(context, [pack(ServerStreamRequestSchema, request)]);
      for (const [index, data] of definition.responseData.entries()) {
        await delay(definition.responseDelayMs);
        yield { payload: { data, ...(index === 0 ? { requestInfo: info } : {}) } };
      }
      if (definition.error !== undefined) {
        throw failure(definition.error, definition.responseData.length === 0 ? info : undefined);
      }
    },

    async *bidiStream(requests, context) {
      let definition: StreamResponseDefinition | undefined;
      let isFirst = true;
      let isFullDuplex = false;
      let sent = 0;
      let seen: Any[] = [];
      for await (const request of requests) {
        seen.push(pack(BidiStreamRequestSchema, request));
        if (isFirst) {
          isFirst = false;
          isFullDuplex = request.fullDuplex;
          definition = request.responseDefinition;
          if (definition !== undefined) begin(definition, context);
          if (isFullDuplex && (definition?.responseData.length ?? 0) > 0) context.sendHeaders();
        }
        if (!isFullDuplex) continue;
        const data = definition?.responseData[sent];
        if (definition === undefined || data === undefined) break;
        const requestInfo =
          sent === 0
            ? infoOf(context, seen)
            : create(ConformancePayload_RequestInfoSchema, { requests: seen });
        await delay(definition.responseDelayMs);
        yield { payload: { data, requestInfo } };
        sent++;
        seen = [];
      }
      if (definition === undefined) return;
      if (definition.responseData.length > 0) context.sendHeaders();
      for (; sent < definition.responseData.length; sent++) {
        const data = definition.responseData[sent] as Uint8Array;
        await delay(definition.responseDelayMs);
        yield { payload: { data, ...(sent === 0 ? { requestInfo: infoOf(context, seen) } : {}) } };
      }
      if (definition.error !== undefined) {
        throw failure(definition.error, sent === 0 ? infoOf(context, seen) : undefined);
      }
    },
  });

for await (const request of readMessages(ServerCompatRequestSchema)) {
  const creds = request.serverCreds;
  const clientCa = Buffer.from(request.clientTlsCert);
  const server = new GrpcServer({
    ...(request.messageReceiveLimit === 0
      ? {}
      : { limits: { receiveMessageBytes: request.messageReceiveLimit } }),
    ...(creds === undefined
      ? {}
      : {
          tls: {
            cert: Buffer.from(creds.cert),
            key: Buffer.from(creds.key),
            ...(clientCa.length === 0 ? {} : { ca: clientCa, requestClientCertificate: true }),
          },
        }),
    interceptors:
      clientCa.length === 0
        ? []
        : [
            (context, next) => {
              if (context.peer.certificate?.authorized !== true) {
                throw new StatusError(16, "a certificate is required");
              }
              return next();
            },
          ],
  });
  serve(server);
  const { host, port } = await server.listen({ host: "127.0.0.1", port: 0 });
  writeMessage(ServerCompatResponseSchema, {
    host,
    port,
    ...(creds === undefined ? {} : { pemCert: creds.cert }),
  });
  process.once("SIGTERM", () => void server.close());
}
