// The interface of every gRPC implementation in these tests, as client and server of EchoService.
import type { MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import type { EchoRequestSchema, EchoResponseSchema } from "#wire/framing/gen/echo_pb.ts";

export type Request = MessageInitShape<typeof EchoRequestSchema>;
export type Reply = MessageShape<typeof EchoResponseSchema>;

/** The options of one call. */
export interface PeerOptions {
  /** Headers by name, text; names in -bin take bytes. */
  readonly headers?: Readonly<Record<string, string | Uint8Array>>;
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

/** The outcome of a call; `code` is 0 on success. */
export interface Outcome {
  readonly code: number;
  readonly message: string;
  readonly replies: readonly Reply[];
  /** Headers and trailers under their names; binary ones as bytes. */
  readonly headers: ReadonlyMap<string, string | Uint8Array>;
  readonly trailers: ReadonlyMap<string, string | Uint8Array>;
  /** The values of the details of google.rpc.Status. */
  readonly details: readonly Uint8Array[];
}

/** A client of EchoService. */
export interface PeerClient {
  unary(request: Request, options?: PeerOptions): Promise<Outcome>;
  expand(request: Request, options?: PeerOptions): Promise<Outcome>;
  collect(requests: AsyncIterable<Request>, options?: PeerOptions): Promise<Outcome>;
  /** `seen` gets each reply as it comes. */
  converse(
    requests: AsyncIterable<Request>,
    options?: PeerOptions,
    seen?: (reply: Reply) => void,
  ): Promise<Outcome>;
  close(): void;
}

/** A server of EchoService. */
export interface PeerServer {
  readonly port: number;
  /** Counts calls whose client cancelled or ran out of time. */
  readonly cancelledCalls: () => number;
  close(): Promise<void>;
}

/** One implementation. */
export interface PeerKind {
  readonly name: string;
  serve(): Promise<PeerServer>;
  connect(port: number): PeerClient;
}

/** The value of a binary or text header as a test compares it. */
export const plain = (value: string | Uint8Array | undefined): string | undefined =>
  value === undefined || typeof value === "string" ? value : Buffer.from(value).toString("hex");
