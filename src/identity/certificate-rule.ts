// Which client certificates may speak for a node of the cluster (spec 5.6, C-07).
import type { X509Certificate } from "node:crypto";
import { GroveError } from "#base/errors.ts";

/** A peer's certificate as the TLS layer hands it over. */
export interface PeerCertificate {
  /** DER bytes or the parsed certificate; undefined when the peer sent none. */
  readonly certificate: Uint8Array | X509Certificate | undefined;
  /** `socket.authorized`: the chain leads to the cluster's authority and is in date. */
  readonly authorized: boolean;
}

/** What the rule says of a certificate. */
export interface CertificateVerdict {
  readonly allowed: boolean;
  /** The label before `.cluster.local` when there is exactly one such name: the node that the certificate speaks for. */
  readonly nodeId?: string;
  /** SHA-256 of the public key (SPKI) in hex, to know a key again (decision D20). */
  readonly keyFingerprint?: string;
  /** Why not, in words for a log. */
  readonly reason?: string;
}

/** Judges a client certificate for a cluster control call; nowWallMs is checked against its dates. */
export function judgeCertificate(peer: PeerCertificate, nowWallMs: number): CertificateVerdict {
  void peer;
  void nowWallMs;
  throw new GroveError("NOT_IMPLEMENTED", "being built");
}
