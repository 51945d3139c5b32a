// The view of a call for handlers, interceptors and the sliced form: method, metadata, peer, end.
import type { DescMethod } from "@bufbuild/protobuf";
import type { Metadata } from "#wire/framing/metadata.ts";
import type { Standing } from "./standing.ts";

/** A peer's certificate, and whether the trusted authority signed it. */
export interface PeerCertificate {
  /** True only when the chain verified against the server's `ca`; handlers decide what false means. */
  readonly authorized: boolean;
  /** The TLS layer's code of the failure, such as CERT_HAS_EXPIRED; undefined for a verified certificate. */
  readonly problem: string | undefined;
  /** As node:tls prints it; parse it entry by entry, never by splitting on commas. */
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
  /** True when its handler answers synchronously. */
  readonly isInstant: boolean;
}

/** The way between the two halves of a call whose connection another thread serves. */
export interface CallLink {
  /** Sends a message to the other half, after all earlier ones. */
  tell(message: unknown, transfer?: readonly ArrayBuffer[]): void;
  /** From now on the other half sends messages of a request stream before it is asked for each. */
  flow(): void;
  /** Receives the messages of the other half; set it before the first can come. */
  onTold: ((message: unknown) => void) | undefined;
  /** Called once when the other half is gone, with its thread or without. */
  onLost: (() => void) | undefined;
}

/** The view of a call for handlers and interceptors. */
export interface CallContext {
  readonly method: CalledMethod;
  readonly metadata: Metadata;
  readonly peer: Peer;
  /** The party on whose account the call runs. */
  readonly standing: Standing;
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
  /** The other half of the call; undefined where this thread serves the connection and runs the handler. */
  readonly link?: CallLink | undefined;
  /** Values that interceptors pass on. */
  readonly values: Map<symbol, unknown>;
}

/** A reply that may be ready at once: a synchronous return spares the hot path a promise. */
export type MaybePromise<T> = T | Promise<T>;
