// Signs a certificate again: the same key, id, names and addresses, and a new end.
import { X509Certificate } from "node:crypto";
import { GroveError } from "#base/errors.ts";
import type { Authority } from "./authority.ts";

const DOOR_NAME = /^([a-z0-9-]{1,63})\.door\.cluster\.local$/;
const NODE_NAME = /^([a-z0-9-]{1,63})\.cluster\.local$/i;

/**
 * Signs one of this authority's certificates again (PEM or DER). Throws BAD_ARGUMENT when it is of another
 * authority, names no node or several, or contains names that nodes do not get.
 */
export async function signAgain(authority: Authority, certificate: string | Uint8Array): Promise<string> {
  const { alternativeNames } = await import("./certificate-maker.ts");
  const old = new X509Certificate(certificate);
  if (!old.verify(new X509Certificate(authority.certificatePem).publicKey)) {
    throw new GroveError(
      "BAD_ARGUMENT",
      "this authority has not signed the certificate, so it does not renew it",
    );
  }
  const { dnsNames, ipAddresses } = alternativeNames(old.raw);
  const publicKey = old.publicKey.export({ type: "spki", format: "der" });
  const door = dnsNames.length === 1 ? DOOR_NAME.exec(dnsNames[0] ?? "")?.[1] : undefined;
  if (door !== undefined) return authority.signDoorCertificate(publicKey, door);
  const ids = new Set(dnsNames.flatMap((name) => NODE_NAME.exec(name)?.[1]?.toLowerCase() ?? []));
  const [id] = ids;
  if (id === undefined || ids.size > 1) {
    throw new GroveError(
      "BAD_ARGUMENT",
      "only a certificate that names one node (ID.cluster.local) can be renewed",
    );
  }
  return authority.signNodeCertificate(publicKey, {
    id,
    names: dnsNames.filter((name) => !NODE_NAME.test(name)),
    addresses: ipAddresses,
  });
}
