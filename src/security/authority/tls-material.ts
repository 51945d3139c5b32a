// Reads a server's certificate, key and authority, and checks that they belong together.
import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createSecureContext } from "node:tls";
import type { Clock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";
import { TLS_LISTENER_POLICY } from "#base/tls-policy.ts";

/**
 * PEM texts of a server; every use needs the authority, since without it the public roots would be trusted.
 */
export interface TlsMaterial {
  readonly cert: string;
  readonly key: string;
  readonly ca: string;
}

/** Paths of the three. */
export interface TlsPaths {
  readonly cert: string;
  readonly key: string;
  readonly ca: string;
}

/** Paths of a certificate and its key. */
export type CertificateFiles = Pick<TlsPaths, "cert" | "key">;

/** The files named by -tls_cert, -tls_key, -tls_ca. */
export interface TlsFlags {
  readonly tlsCert?: string | undefined;
  readonly tlsKey?: string | undefined;
  readonly tlsCa?: string | undefined;
}

/** What a certificate is shown for: to those who connect to its server, or by the one that connects. */
export type CertificateUse = "server" | "client";

/** Extended key usages (RFC 5280, 4.2.1.12). */
const USAGES: Readonly<Record<CertificateUse, string>> = {
  server: "1.3.6.1.5.5.7.3.1",
  client: "1.3.6.1.5.5.7.3.2",
};
/** Longest chain from a server's certificate to the authority. */
const CHAIN_MAX = 5;
const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;
const WHOLE_BLOCK = /-----BEGIN ([A-Z0-9 ]+)-----[^]*?-----END \1-----/g;
/** The beginning of a block, or what is there of one at the end of a file that is still being written. */
const CUT_BLOCK = /-----BEGIN |(?:^|\n)-{1,5}[A-Z]*$/;

/** The paths of the flags; undefined when none is given. Throws BAD_ARGUMENT when only some are. */
export function tlsPathsOf(flags: TlsFlags): TlsPaths | undefined {
  const { tlsCert, tlsKey, tlsCa } = flags;
  if (tlsCert === undefined && tlsKey === undefined && tlsCa === undefined) return undefined;
  if (tlsCert === undefined || tlsKey === undefined || tlsCa === undefined) {
    throw new GroveError(
      "BAD_ARGUMENT",
      "TLS needs all three of -tls_cert, -tls_key and -tls_ca: the server's certificate, its key, the cluster's authority",
    );
  }
  return { cert: tlsCert, key: tlsKey, ca: tlsCa };
}

/**
 * Reads all three and checks them: the key is the certificate's, the authority has signed it for these uses, it
 * is in date, and TLS takes it. Throws BAD_ARGUMENT with the problem and, where there is any, advice.
 */
export async function readTlsMaterial(
  paths: TlsPaths,
  clock: Pick<Clock, "wallMs">,
  uses: readonly CertificateUse[],
): Promise<TlsMaterial> {
  // In sequence, so that of several missing files the error always names the certificate.
  const cert = await readPem(paths.cert);
  const key = await readPem(paths.key);
  const ca = await readPem(paths.ca);
  checkTlsMaterial({ cert, key, ca }, paths, { nowWallMs: clock.wallMs(), uses });
  return { cert, key, ca };
}

/** Throws BAD_ARGUMENT when the three do not belong together, are not in date or are not for these uses. */
export function checkTlsMaterial(
  material: TlsMaterial,
  paths: TlsPaths,
  asked: { readonly nowWallMs: number; readonly uses: readonly CertificateUse[] },
): void {
  const chain = certificatesIn(material.cert, paths.cert);
  const authorities = certificatesIn(material.ca, paths.ca);
  const [leaf] = chain;
  if (leaf === undefined) throw new GroveError("BAD_ARGUMENT", `${paths.cert} holds no certificate`);
  if (!leaf.checkPrivateKey(keyIn(material.key, paths.key))) {
    throw new GroveError("BAD_ARGUMENT", `${paths.key} is not the key of the certificate ${paths.cert}`);
  }
  checkDates(leaf, paths.cert, asked.nowWallMs);
  if (!leadsTo(leaf, chain, authorities)) {
    throw new GroveError(
      "BAD_ARGUMENT",
      `the certificate ${paths.cert} was not signed by the authority ${paths.ca}: one of the two is of another cluster`,
    );
  }
  checkUses(leaf, paths.cert, asked.uses);
  checkForTls(material, paths);
}

/** Throws BAD_ARGUMENT when a certificate has ended or is for later. */
export function checkDates(leaf: X509Certificate, path: string, nowWallMs: number): void {
  if (nowWallMs > leaf.validToDate.getTime()) {
    throw new GroveError(
      "BAD_ARGUMENT",
      `the certificate ${path} expired on ${leaf.validToDate.toISOString()}: have its authority issue it again ` +
        "(the cluster's: 'grove ca renew', or 'grove node join' with a new token)",
    );
  }
  // No clock in the text: the same problem has the same text at each look, and is logged once.
  if (nowWallMs < leaf.validFromDate.getTime()) {
    throw new GroveError(
      "BAD_ARGUMENT",
      `the certificate ${path} is valid from ${leaf.validFromDate.toISOString()} on, which this machine's clock ` +
        "has not reached: set the clock",
    );
  }
}

/** Throws BAD_ARGUMENT when a certificate names its usages, and these are not among them. */
export function checkUses(leaf: X509Certificate, path: string, uses: readonly CertificateUse[]): void {
  // Node's field of extended key usages; undefined without that extension.
  const usages = leaf.keyUsage as readonly string[] | undefined;
  const missing = uses.find((use) => usages?.includes(USAGES[use]) === false);
  if (missing === undefined) return;
  throw new GroveError(
    "BAD_ARGUMENT",
    `the certificate ${path} is not for ${missing}s: have it issued with the extended key usage ` +
      `"TLS ${missing} authentication"`,
  );
}

/** Throws BAD_ARGUMENT when TLS itself refuses them, as it does weak keys. */
export function checkForTls(pair: Pick<TlsMaterial, "cert" | "key">, paths: CertificateFiles): void {
  try {
    createSecureContext({ ...TLS_LISTENER_POLICY, cert: pair.cert, key: pair.key });
  } catch (cause) {
    const { reason, message } = cause as Error & { readonly reason?: string };
    throw new GroveError(
      "BAD_ARGUMENT",
      `TLS cannot use ${paths.cert} with ${paths.key}: ${reason ?? message}`,
      { cause },
    );
  }
}

/** End of a certificate, in unix milliseconds. */
export function certificateEndMs(certificatePem: string): number {
  return new X509Certificate(certificatePem).validToDate.getTime();
}

/** Reads a file of PEM text. Throws BAD_ARGUMENT. */
export async function readPem(path: string): Promise<string> {
  try {
    const text = await readFile(path, "utf8");
    if (text.includes("-----BEGIN ")) return text;
  } catch (cause) {
    const { code = "" } = cause as NodeJS.ErrnoException;
    const why = { ENOENT: "it is missing", EACCES: "this user may not" }[code] ?? code;
    throw new GroveError("BAD_ARGUMENT", `cannot read ${path} (${why})`, { cause });
  }
  throw new GroveError("BAD_ARGUMENT", `${path} holds no PEM text`);
}

/** Throws BAD_ARGUMENT for a damaged certificate, and for a file whose last part is missing. */
export function certificatesIn(pem: string, path: string): X509Certificate[] {
  if (CUT_BLOCK.test(pem.replace(WHOLE_BLOCK, "")))
    throw new GroveError(
      "BAD_ARGUMENT",
      `${path} ends within a certificate or is damaged: put the whole file there`,
    );
  try {
    return (pem.match(CERTIFICATE) ?? []).map((text) => new X509Certificate(text));
  } catch (cause) {
    throw new GroveError("BAD_ARGUMENT", `${path} holds a damaged certificate`, { cause });
  }
}

function keyIn(pem: string, path: string): KeyObject {
  try {
    return createPrivateKey(pem);
  } catch (cause) {
    throw new GroveError("BAD_ARGUMENT", `${path} holds no private key that can be read`, { cause });
  }
}

/** True when the leaf, or a following certificate of the chain, was signed by one of the authorities. */
function leadsTo(
  leaf: X509Certificate,
  chain: readonly X509Certificate[],
  authorities: readonly X509Certificate[],
): boolean {
  const signedBy = (issuer: X509Certificate, certificate: X509Certificate): boolean =>
    certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey);
  let current = leaf;
  for (let depth = 0; depth < CHAIN_MAX; depth++) {
    const certificate = current;
    if (authorities.some((authority) => signedBy(authority, certificate))) return true;
    const next = chain.find((candidate) => candidate !== certificate && signedBy(candidate, certificate));
    if (next === undefined) return false;
    current = next;
  }
  return false;
}
