// Statuses and peers on their way between threads.

import { Metadata } from "#wire/framing/metadata.ts";
import { type Code, StatusError } from "#wire/framing/status.ts";
import type { Peer } from "#wire/grpc/call-context.ts";
import type { PackedPeer, PackedStatus } from "./loop-messages.ts";

/** Names and values of metadata. */
export function flatOf(metadata: Metadata): string[] {
  const flat: string[] = [];
  metadata.appendTo(flat);
  return flat;
}

/** Metadata from names and values. */
export function metadataOf(flat: readonly string[]): Metadata {
  return Metadata.fromRaw(flat);
}

/** A status for another thread; its cause stays behind. */
export function packStatus({ code, message, details, metadata }: StatusError): PackedStatus {
  return { code, message, details, metadata: flatOf(metadata) };
}

/** A status from another thread. */
export function unpackStatus({ code, message, details, metadata }: PackedStatus): StatusError {
  return new StatusError(code as Code, message, { details, metadata: metadataOf(metadata) });
}

/** A peer for another thread. */
export function packPeer(peer: Peer): PackedPeer {
  const { certificate } = peer;
  return {
    ...peer,
    // A copy of exactly these bytes: a clone would take all of the buffer that they lie in.
    certificate: certificate && { ...certificate, raw: Uint8Array.from(certificate.raw) },
  };
}

/** A peer from another thread. */
export function unpackPeer(peer: PackedPeer): Peer {
  const { certificate } = peer;
  return { ...peer, certificate: certificate && { ...certificate, raw: Buffer.from(certificate.raw) } };
}
