// What a service's code sees: the context of a call, its peer, and the shape of each kind of handler.
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
import type { Metadata } from "./metadata.ts";
import type { SlicedClientStream, SlicedServerStream } from "./sliced.ts";

/** A certificate that a peer showed, and whether it was signed by the authority we trust. */
export interface PeerCertificate {
  /** True only when the chain verified against the server's `ca`; a handler decides what follows from false. */
  readonly authorized: boolean;
  /** As node:tls prints it; parse entry by entry, never by splitting on commas. */
  readonly subjectAltName: string | undefined;
  readonly fingerprint256: string;
  /** The certificate in DER. */
  readonly raw: Buffer;
}

/** The other end of a connection. */
export interface Peer {
  /** The address without ::ffff: and without a zone. */
  readonly address: string;
  readonly port: number;
  readonly encrypted: boolean;
  /** Undefined when the peer showed none, or one without a subject. */
  readonly certificate: PeerCertificate | undefined;
}

/** The method that was called. */
export interface CalledMethod {
  /** Full name of the service, such as grpc.health.v1.Health. */
  readonly service: string;
  readonly name: string;
  /** The request path: /service/name. */
  readonly path: string;
  readonly kind: DescMethod["methodKind"];
}

/** Everything that a handler and an interceptor know of a call. */
export interface CallContext {
  readonly method: CalledMethod;
  readonly metadata: Metadata;
  readonly peer: Peer;
  /** Aborts when the client cancels or goes away, when the deadline passes, and when the call has ended. */
  readonly signal: AbortSignal;
  /** Milliseconds that the client gave this call at its start; undefined without a deadline. */
  readonly timeoutMs: number | undefined;
  /** Sent before the first message; later additions are lost. */
  readonly responseHeaders: Metadata;
  /** Sent with the status. */
  readonly trailers: Metadata;
  /** Sends the headers now instead of with the first message; without effect once they are sent. */
  sendHeaders(): void;
  /** For interceptors to hand something on. */
  readonly values: Map<symbol, unknown>;
}

/** A reply that may be ready at once: a synchronous return spares the hot path a promise. */
export type MaybePromise<T> = T | Promise<T>;

export type UnaryHandler<I extends DescMessage, O extends DescMessage> = (
  request: MessageShape<I>,
  context: CallContext,
) => MaybePromise<MessageInitShape<O>>;

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
    ? UnaryHandler<I, O>
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
 * Code around every call, the first of the list outermost. It runs when the headers have come; `next` runs the rest and
 * the handler, and rejects with the StatusError that the call would end in. What the interceptor throws instead is the answer.
 */
export type ServerInterceptor = (context: CallContext, next: () => MaybePromise<void>) => MaybePromise<void>;
