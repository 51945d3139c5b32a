// Types of a service's code: each kind of handler, and interceptors.
import type {
  DescMessage,
  DescMethod,
  DescMethodBiDiStreaming,
  DescMethodClientStreaming,
  DescMethodServerStreaming,
  DescMethodUnary,
  DescService,
  MessageInitShape,
  MessageShape,
} from "@bufbuild/protobuf";
import type { EncodedReply } from "#wire/framing/encoded-reply.ts";
import type { CallContext, MaybePromise } from "./call-context.ts";
import type { SlicedClientStream, SlicedServerStream } from "./sliced.ts";

export type { CallContext, Peer } from "./call-context.ts";

export type UnaryHandler<I extends DescMessage, O extends DescMessage> = (
  request: MessageShape<I>,
  context: CallContext,
) => MaybePromise<MessageInitShape<O> | EncodedReply>;

/** A handler that nearly always answers at once, with less overhead around it. */
export interface InstantHandler<I extends DescMessage, O extends DescMessage> {
  readonly instant: UnaryHandler<I, O>;
}

/**
 * A handler with replies of megabytes: each connection makes a few at a time, and the next once one is taken.
 */
export interface BulkyHandler<I extends DescMessage, O extends DescMessage> {
  readonly bulky: UnaryHandler<I, O>;
}

export type ServerStreamHandler<I extends DescMessage, O extends DescMessage> = (
  request: MessageShape<I>,
  context: CallContext,
) => AsyncIterable<MessageInitShape<O>>;

export type ClientStreamHandler<I extends DescMessage, O extends DescMessage> = (
  requests: AsyncIterable<MessageShape<I>>,
  context: CallContext,
) => MaybePromise<MessageInitShape<O>>;

export type BidiHandler<I extends DescMessage, O extends DescMessage> = (
  requests: AsyncIterable<MessageShape<I>>,
  context: CallContext,
) => AsyncIterable<MessageInitShape<O>>;

/** The handlers that a method may have; streams of files may choose the sliced form. */
export type MethodHandler<M extends DescMethod> =
  M extends DescMethodUnary<infer I, infer O>
    ? UnaryHandler<I, O> | InstantHandler<I, O> | BulkyHandler<I, O>
    : M extends DescMethodServerStreaming<infer I, infer O>
      ? ServerStreamHandler<I, O> | SlicedServerStream<I, O>
      : M extends DescMethodClientStreaming<infer I, infer O>
        ? ClientStreamHandler<I, O> | SlicedClientStream<I, O>
        : M extends DescMethodBiDiStreaming<infer I, infer O>
          ? BidiHandler<I, O>
          : never;

/** The handlers of a service by the local names of its methods. */
export type ServiceHandlers<S extends DescService> = {
  [P in keyof S["method"]]: MethodHandler<S["method"][P]>;
};

/**
 * Code around every call, the first of the list outermost. It runs when the headers have come. `next` runs
 * the rest and the handler, and rejects with the call's StatusError. Another error of the interceptor
 * replaces the answer.
 */
export type ServerInterceptor = (context: CallContext, next: () => MaybePromise<void>) => MaybePromise<void>;
