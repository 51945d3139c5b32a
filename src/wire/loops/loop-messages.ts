// Messages between the main thread, which decides, and a loop, which serves connections.
import type { Peer, PeerCertificate } from "#wire/grpc/call-context.ts";
import type { CrossingBytes } from "./batched-port.ts";

/** A status as it crosses threads. */
export interface PackedStatus {
  readonly code: number;
  readonly message: string;
  readonly details: readonly { readonly typeUrl: string; readonly value: Uint8Array }[];
  /** Its metadata: name, value, … */
  readonly metadata: readonly string[];
}

/** A peer as it crosses threads. */
export type PackedPeer = Omit<Peer, "certificate"> & {
  readonly certificate: (Omit<PeerCertificate, "raw"> & { readonly raw: Uint8Array }) | undefined;
};

/** A call with its headers, and its request where that came in the same turn. */
export interface JudgeMessage {
  readonly op: "judge";
  readonly call: number;
  readonly connection: number;
  readonly path: string;
  readonly timeoutMs: number | undefined;
  readonly headers: readonly string[];
  /** True where the loop takes the caller for its connection's user meanwhile, so that a refusal is an answer. */
  readonly isAssumed: boolean;
  body: CrossingBytes | undefined;
}

/** From a loop to the main thread. Connections and calls have numbers of the loop. */
export type FromLoop =
  | {
      readonly op: "open";
      readonly connection: number;
      readonly key: string;
      readonly address: string;
      /** Connections that the loop turned away since its last question, for it had asked for so many. */
      readonly unasked: number;
    }
  /** After the handshake. */
  | { readonly op: "met"; readonly connection: number; readonly peer: PackedPeer }
  | { readonly op: "closed"; readonly connection: number }
  | JudgeMessage
  /** A call that the loop refused by its headers. */
  | {
      readonly op: "turnedAway";
      readonly connection: number;
      readonly path: string;
      readonly headers: readonly string[];
      readonly status: PackedStatus;
    }
  /** The one request of a call. */
  | { readonly op: "request"; readonly call: number; readonly body: CrossingBytes }
  /** The next message of a request stream, without its payload. */
  | {
      readonly op: "message";
      readonly call: number;
      readonly body: CrossingBytes;
      readonly payloadBytes: number;
    }
  | { readonly op: "end"; readonly call: number }
  /** The request stream breaks the protocol. */
  | { readonly op: "broken"; readonly call: number; readonly status: PackedStatus }
  /** From the loop's half of a call to the other. */
  | { readonly op: "tell"; readonly call: number; readonly message: unknown }
  /** The client has left, or its deadline has passed. */
  | { readonly op: "cancel"; readonly call: number; readonly status: PackedStatus }
  /** A call's number alone: its stream is closed, and its answer was given or is no longer wanted. */
  | number
  /** Wasted work of unproven callers. */
  | { readonly op: "load"; readonly network: string; readonly bytes: number }
  | {
      readonly op: "report";
      readonly kind: "handler" | "connection" | "listener" | "overload";
      readonly text: string;
      readonly address: string | undefined;
      readonly path: string | undefined;
    }
  | { readonly op: "listening"; readonly port: number }
  | { readonly op: "notListening"; readonly text: string; readonly code: string | undefined }
  | { readonly op: "drained" };

/** A message with a name. */
export type LoopMessage = Exclude<FromLoop, number>;

/** Certificates as they cross threads. */
export interface PackedTls {
  readonly cert: string;
  readonly key: string;
  readonly ca: string | undefined;
}

/** From the main thread to a loop. */
export type ToLoop =
  | { readonly op: "opened"; readonly connection: number; readonly isTaken: boolean }
  /** The connection gives way to another. */
  | { readonly op: "evict"; readonly connection: number }
  | {
      readonly op: "standing";
      readonly call: number;
      readonly kind: "unproven" | "user" | "node";
      readonly party: string;
      /** True where the connection now counts for that party. */
      readonly provesConnection: boolean;
    }
  | {
      readonly op: "refused";
      readonly call: number;
      readonly status: PackedStatus;
      /** Headers for the status: name, value, … */
      readonly extra: readonly string[];
    }
  | {
      readonly op: "answer";
      readonly call: number;
      /** Undefined for OK. */
      readonly status: PackedStatus | undefined;
      readonly headers: readonly string[];
      readonly trailers: readonly string[];
      /** The one reply, behind the free bytes of an EncodedReply. */
      readonly body: CrossingBytes | undefined;
    }
  /** Bytes of a reply stream, framed. */
  | { readonly op: "write"; readonly call: number; readonly bytes: Uint8Array }
  | { readonly op: "headers"; readonly call: number; readonly headers: readonly string[] }
  /** As many further messages of a request stream are wanted. */
  | { readonly op: "pull"; readonly call: number; readonly count: number }
  | { readonly op: "tell"; readonly call: number; readonly message: unknown }
  | { readonly op: "cancel"; readonly call: number; readonly status: PackedStatus }
  | { readonly op: "listen"; readonly host: string; readonly port: number }
  | { readonly op: "tls"; readonly tls: PackedTls }
  /** A setting of the product's half. */
  | { readonly op: "set"; readonly message: unknown }
  | { readonly op: "drain"; readonly graceMs: number };
