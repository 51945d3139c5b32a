// Decides which client certificates may act for a node of the cluster (spec 5.6, C-07).
import { createHash, type KeyObject, X509Certificate } from "node:crypto";

/** A peer's certificate from the TLS layer. */
export interface PeerCertificate {
  /** DER bytes or the parsed certificate; undefined when the peer sent none. */
  readonly certificate: Uint8Array | X509Certificate | undefined;
  /** `socket.authorized`: the chain leads to the cluster's authority and is in date. */
  readonly authorized: boolean;
  /** The TLS layer's code of the failure (`socket.authorizationError`), for the reason only. */
  readonly problem?: string | undefined;
}

/** The verdict on a certificate. */
export interface CertificateVerdict {
  readonly allowed: boolean;
  /** The label before `.cluster.local` when there is exactly one such name: the node's id. */
  readonly nodeId?: string;
  /** SHA-256 of the public key (SPKI) in hex, to recognise a key (decision D20). */
  readonly keyFingerprint?: string;
  /** Reason of the refusal, as the end of a sentence that begins with "the certificate". */
  readonly reason?: string;
}

const CLIENT_AUTH = "1.3.6.1.5.5.7.3.2";
const ANY_USAGE = "2.5.29.37.0";
const NODE_NAME = /^([a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?|\*)\.cluster\.local$/;
/** Texts of the TLS layer's codes; any other code is about the authority. */
const UNVERIFIED: Readonly<Record<string, string>> = {
  CERT_HAS_EXPIRED: "has expired",
  CERT_NOT_YET_VALID: "is not yet valid",
  INVALID_PURPOSE: "is not for clients",
};
const OTHER_NAMES: readonly string[] = ["fileserver", "localhost"];

/**
 * Judges a client certificate for a cluster control call. The TLS layer must have verified it against the
 * cluster's authority. It must be in date at nowWallMs, be no authority itself and be usable by clients. One
 * DNS name must be `fileserver`, `localhost`, or one label and `.cluster.local`; a literal `*` counts as a
 * label, and names no node.
 */
export function judgeCertificate(peer: PeerCertificate, nowWallMs: number): CertificateVerdict {
  const certificate = readClientCertificate(peer, nowWallMs);
  return typeof certificate === "string" ? refused(certificate) : judgeNames(certificate);
}

/**
 * A peer's certificate that the cluster's authority signed for clients and that is in date, whatever it names;
 * else the reason, as the end of a sentence that begins with "the certificate".
 */
export function readClientCertificate(peer: PeerCertificate, nowWallMs: number): X509Certificate | string {
  if (
    peer.certificate === undefined ||
    (peer.certificate instanceof Uint8Array && peer.certificate.length === 0)
  ) {
    return "is missing";
  }
  // Without this the chain is unverified, and nothing in the certificate can be trusted.
  if (!peer.authorized) return UNVERIFIED[peer.problem ?? ""] ?? "was not signed by this cluster's authority";
  let certificate: X509Certificate;
  try {
    certificate =
      peer.certificate instanceof X509Certificate ? peer.certificate : new X509Certificate(peer.certificate);
  } catch {
    return "cannot be read";
  }
  if (nowWallMs < certificate.validFromDate.getTime()) return "is not yet valid";
  if (nowWallMs > certificate.validToDate.getTime()) return "has expired";
  if (certificate.ca) return "is an authority's certificate";
  // Node's field of extended key usages; undefined without that extension.
  const usages = certificate.keyUsage as readonly string[] | undefined;
  if (usages !== undefined && !usages.includes(CLIENT_AUTH) && !usages.includes(ANY_USAGE)) {
    return "is not for clients";
  }
  return certificate;
}

/** DNS names of a certificate in lower case; undefined when the extension is ambiguous. */
export function dnsNames(subjectAltName: string): string[] | undefined {
  const names: string[] = [];
  // Node quotes a value as JSON when it holds a character that could end an entry (CVE-2021-44532).
  const entry = /([A-Za-z][A-Za-z ]*):("(?:[^"\\]|\\.)*"|[^",]*)(, |$)/y;
  for (;;) {
    const match = entry.exec(subjectAltName);
    if (match === null) return undefined;
    const [, kind, value = "", end] = match;
    // A quoted name holds characters that are invalid in DNS names.
    if (kind === "DNS" && !value.startsWith('"')) names.push(value.toLowerCase());
    if (end === "") return entry.lastIndex === subjectAltName.length ? names : undefined;
  }
}

function judgeNames(certificate: X509Certificate): CertificateVerdict {
  const names = certificate.subjectAltName === undefined ? [] : dnsNames(certificate.subjectAltName);
  if (names === undefined) return refused("has alternative names that cannot be read");
  const labels = new Set(names.flatMap((name) => NODE_NAME.exec(name)?.[1] ?? []));
  if (labels.size === 0 && !names.some((name) => OTHER_NAMES.includes(name))) {
    return refused("has no DNS name of this cluster");
  }
  labels.delete("*");
  const [nodeId] = labels;
  return {
    allowed: true,
    ...(labels.size === 1 && nodeId !== undefined ? { nodeId } : {}),
    keyFingerprint: keyFingerprint(certificate),
  };
}

/** SHA-256 of a certificate's public key (SPKI), in hex. */
export function keyFingerprint(certificate: X509Certificate): string {
  return publicKeyFingerprint(certificate.publicKey);
}

/** The same of a key without a certificate. */
export function publicKeyFingerprint(key: KeyObject): string {
  const spki = key.export({ type: "spki", format: "der" });
  return createHash("sha256").update(spki).digest("hex");
}

function refused(reason: string): CertificateVerdict {
  return { allowed: false, reason };
}
