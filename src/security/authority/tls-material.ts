// Reads a server's certificate, key and authority, and checks that they belong together.
import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { Clock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";

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

/** The files named by -tls_cert, -tls_key, -tls_ca. */
export interface TlsFlags {
  readonly tlsCert?: string | undefined;
  readonly tlsKey?: string | undefined;
  readonly tlsCa?: string | undefined;
}

/** Longest chain from a server's certificate to the authority. */
const CHAIN_MAX = 5;
const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

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
 * Reads all three and checks them: the key is the certificate's, the authority has signed it, and it is in
 * date. Throws BAD_ARGUMENT with the problem and, where there is any, advice.
 */
export async function readTlsMaterial(paths: TlsPaths, clock: Pick<Clock, "wallMs">): Promise<TlsMaterial> {
  // In sequence, so that of several missing files the error always names the certificate.
  const cert = await readPem(paths.cert);
  const key = await readPem(paths.key);
  const ca = await readPem(paths.ca);
  checkTlsMaterial({ cert, key, ca }, paths, clock.wallMs());
  return { cert, key, ca };
}

/** Throws BAD_ARGUMENT when the three do not belong together or are not in date. */
export function checkTlsMaterial(material: TlsMaterial, paths: TlsPaths, nowWallMs: number): void {
  const chain = certificatesIn(material.cert, paths.cert);
  const authorities = certificatesIn(material.ca, paths.ca);
  const [leaf] = chain;
  if (leaf === undefined) throw new GroveError("BAD_ARGUMENT", `${paths.cert} holds no certificate`);
  if (!leaf.checkPrivateKey(keyIn(material.key, paths.key))) {
    throw new GroveError("BAD_ARGUMENT", `${paths.key} is not the key of the certificate ${paths.cert}`);
  }
  if (nowWallMs > leaf.validToDate.getTime()) {
    throw new GroveError(
      "BAD_ARGUMENT",
      `the certificate ${paths.cert} expired on ${leaf.validToDate.toISOString()}: have the authority issue it again ` +
        "('grove ca renew', or 'grove node join' with a new token)",
    );
  }
  if (nowWallMs < leaf.validFromDate.getTime()) {
    throw new GroveError(
      "BAD_ARGUMENT",
      `the certificate ${paths.cert} is valid from ${leaf.validFromDate.toISOString()} on, and this machine's clock says ` +
        `${new Date(nowWallMs).toISOString()}: set the clock`,
    );
  }
  if (!leadsTo(leaf, chain, authorities)) {
    throw new GroveError(
      "BAD_ARGUMENT",
      `the certificate ${paths.cert} was not signed by the authority ${paths.ca}: one of the two is of another cluster`,
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

function certificatesIn(pem: string, path: string): X509Certificate[] {
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
