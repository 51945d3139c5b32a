// Verifies the identity provider's certificate against the authority that is configured for it.
import { X509Certificate } from "node:crypto";
import { getCACertificates } from "node:tls";
import { ClientError } from "#client/terminal/client-error.ts";
import { createAuthorityFetch, type Fetch } from "#os/authority-fetch.ts";
import { type Profile, readSettingsFile } from "./profile.ts";

/** System error codes for certificates that fail verification. */
const UNTRUSTED: readonly string[] = [
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
  "UNABLE_TO_GET_ISSUER_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "CERT_SIGNATURE_FAILURE",
];

/** The hint for a provider whose certificate fails verification. */
export const NAME_THE_AUTHORITY =
  "Its certificate is of an authority that this machine does not know: name that one once with 'grove login --idp-ca FILE'.";

/**
 * A fetch for the identity provider: trusts its configured authority alone; without one, the public
 * authorities and the cluster's.
 */
export function providerFetch({ ca, idpCa }: Pick<Profile, "ca" | "idpCa">): Fetch {
  if (idpCa !== undefined) return createAuthorityFetch(idpCa);
  if (ca === undefined) return fetch;
  return createAuthorityFetch([...getCACertificates("default"), ca].join("\n"));
}

/** Reads the file of the provider's authority. Throws USAGE without a certificate, and read errors. */
export async function readProviderAuthority(path: string): Promise<string> {
  const pem = await readSettingsFile(path);
  if (isCertificate(pem)) return pem;
  throw new ClientError("USAGE", "holds no certificate in PEM form", {
    about: path,
    todo: "Give the certificate of the authority that has signed the identity provider's.",
  });
}

function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).raw.length > 0;
  } catch {
    return false;
  }
}

/** True when a request failed because the peer's certificate comes from an untrusted authority. */
export function isUntrusted(error: unknown): boolean {
  for (let at: unknown = error, depth = 0; at instanceof Error && depth < 4; at = at.cause, depth++) {
    const { code } = at as NodeJS.ErrnoException;
    if (code !== undefined && UNTRUSTED.includes(code)) return true;
  }
  return false;
}
