// Decides which client certificates are a door's: for clients alone, and with one name that no node has.
import type { X509Certificate } from "node:crypto";
import { dnsNames, keyFingerprint, type PeerCertificate, readClientCertificate } from "./certificate-rule.ts";

/** A door, as its certificate proves it. */
export interface ProvenDoor {
  readonly id: string;
  /** SHA-256 of its public key (SPKI) in hex: the same after a renewal. */
  readonly key: string;
  readonly certificate: X509Certificate;
}

const CLIENT_AUTH = "1.3.6.1.5.5.7.3.2";
const DOOR_NAME = /^([a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)\.door\.cluster\.local$/;

/** The door whose certificate a peer shows; else the reason, as the end of "the certificate …". */
export function judgeDoorCertificate(peer: PeerCertificate, nowWallMs: number): ProvenDoor | string {
  const certificate = readClientCertificate(peer, nowWallMs);
  if (typeof certificate === "string") return certificate;
  const names = certificate.subjectAltName === undefined ? [] : dnsNames(certificate.subjectAltName);
  if (names === undefined) return "has alternative names that cannot be read";
  const id = names.length === 1 ? DOOR_NAME.exec(names[0] ?? "")?.[1] : undefined;
  if (id === undefined) return "is not a door's";
  // A door serves nobody under the cluster's authority, so its certificate can do nothing else either.
  const usages = certificate.keyUsage as readonly string[] | undefined;
  if (usages?.length !== 1 || usages[0] !== CLIENT_AUTH) return "is not for clients alone";
  return { id, key: keyFingerprint(certificate), certificate };
}
