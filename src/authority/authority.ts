// The cluster's own certificate authority: one folder with a key that never leaves it (D20).
import { createPrivateKey, createPublicKey, X509Certificate } from "node:crypto";
import { mkdir, readFile } from "node:fs/promises";
import { isIP } from "node:net";
import { join } from "node:path";
import type { Clock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";
import { checkedNodeId } from "#base/node-id.ts";
import { writeFileAtomic } from "#os/atomic-file.ts";
import { readPrivateFile, writePrivateFile } from "#os/private-file.ts";
import {
  exportPrivateKey,
  importPrivateKey,
  makeAuthorityCertificate,
  makeKeyPair,
  makeLeafCertificate,
  type Signer,
} from "./certificate-maker.ts";

const DAY_MS = 86_400_000;
/** Life of the authority's own certificate. */
export const AUTHORITY_LIFETIME_MS: number = 3_650 * DAY_MS;
/** Life of a node's certificate (D20). */
export const NODE_CERTIFICATE_LIFETIME_MS: number = 90 * DAY_MS;
/** Certificates begin this long ago, so that a host whose clock is behind takes them too. */
const BACKDATE_MS = 3_600_000;

/** File of the authority's certificate, which everybody may read. */
export const AUTHORITY_CERTIFICATE_FILE = "ca.crt";
/** File of the authority's key, mode 0600. */
export const AUTHORITY_KEY_FILE = "ca.key";

/** Whom a node certificate is for. */
export interface NodeCertificateRequest {
  /** The node's id; the certificate's first name is `<id>.cluster.local`. */
  readonly id: string;
  /** Further DNS names under which the node is reached. */
  readonly names?: readonly string[];
  /** IP addresses under which the node is reached. */
  readonly addresses?: readonly string[];
}

/** A certificate with its key, in PEM. The key is a secret: to a file of mode 0600 and nowhere else. */
export interface IssuedCertificate {
  readonly certificatePem: string;
  readonly keyPem: string;
  readonly notAfterWallMs: number;
}

/** An authority that is ready to sign. */
export interface Authority {
  readonly certificatePem: string;
  /** Path of the certificate, for `-tls_ca`. */
  readonly certificatePath: string;
  /** SHA-256 of the certificate in hex, for people and join tokens to compare. */
  readonly fingerprint: string;
  readonly notAfterWallMs: number;
  /**
   * Makes a key and a certificate for it: 90 days, never beyond the authority's own end, for servers and clients alike (D20). Throws
   * BAD_ARGUMENT for a bad id, name or address.
   */
  issueNodeCertificate(request: NodeCertificateRequest): Promise<IssuedCertificate>;
}

/** What an authority works with. */
export interface AuthorityDeps {
  readonly clock: Pick<Clock, "wallMs">;
}

/**
 * Opens the authority in a folder, making both (ECDSA P-256, 10 years) when there is none. Throws BAD_ARGUMENT when the key is
 * missing, can be read by others or does not belong to the certificate, or when the certificate has expired.
 */
export async function loadOrCreateAuthority(folder: string, deps: AuthorityDeps): Promise<Authority> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const certificatePath = join(folder, AUTHORITY_CERTIFICATE_FILE);
  const keyPath = join(folder, AUTHORITY_KEY_FILE);
  const certificatePem =
    (await readIfThere(certificatePath)) ?? (await create(certificatePath, keyPath, deps));
  const keyPem = await readPrivateFile(keyPath);
  if (keyPem === undefined) {
    throw new GroveError("BAD_ARGUMENT", `${certificatePath} has no key beside it: ${keyPath} is missing`);
  }
  return open({ certificatePath, certificatePem, keyPath, keyPem }, deps);
}

interface AuthorityFiles {
  readonly certificatePath: string;
  readonly certificatePem: string;
  readonly keyPath: string;
  readonly keyPem: string;
}

async function open(files: AuthorityFiles, deps: AuthorityDeps): Promise<Authority> {
  const { certificatePath, certificatePem } = files;
  const certificate = new X509Certificate(certificatePem);
  const notAfterWallMs = certificate.validToDate.getTime();
  const publicKey = createPublicKey(createPrivateKey(files.keyPem));
  if (!publicKey.equals(certificate.publicKey)) {
    throw new GroveError("BAD_ARGUMENT", `${files.keyPath} is not the key of ${certificatePath}`);
  }
  if (notAfterWallMs <= deps.clock.wallMs()) {
    throw new GroveError("BAD_ARGUMENT", `the cluster's authority ${certificatePath} has expired`);
  }
  const signer: Signer = { certificatePem, privateKey: await importPrivateKey(files.keyPem) };
  return {
    certificatePem,
    certificatePath,
    fingerprint: certificate.fingerprint256.replaceAll(":", "").toLowerCase(),
    notAfterWallMs,
    issueNodeCertificate: (request) => issue(signer, notAfterWallMs, request, deps),
  };
}

/** The key goes first: a folder with a key alone is one where the start was cut short, and both are made anew. */
async function create(certificatePath: string, keyPath: string, deps: AuthorityDeps): Promise<string> {
  const keys = await makeKeyPair();
  await writePrivateFile(keyPath, await exportPrivateKey(keys.privateKey));
  const nowMs = deps.clock.wallMs();
  const certificatePem = await makeAuthorityCertificate(keys, "Grove cluster authority", {
    notBefore: new Date(nowMs - BACKDATE_MS),
    notAfter: new Date(nowMs + AUTHORITY_LIFETIME_MS),
  });
  await writeFileAtomic(certificatePath, certificatePem, { mode: 0o644 });
  return certificatePem;
}

async function issue(
  signer: Signer,
  authorityEndsMs: number,
  request: NodeCertificateRequest,
  deps: AuthorityDeps,
): Promise<IssuedCertificate> {
  const id = checkedNodeId(request.id);
  const names = request.names ?? [];
  const addresses = request.addresses ?? [];
  for (const name of names) checkName(name);
  for (const address of addresses) {
    if (isIP(address) === 0) throw new GroveError("BAD_ARGUMENT", "a certificate's address is an IP address");
  }
  const keys = await makeKeyPair();
  const nowMs = deps.clock.wallMs();
  const notAfter = new Date(Math.min(nowMs + NODE_CERTIFICATE_LIFETIME_MS, authorityEndsMs));
  const dnsNames = [...new Set([`${id}.cluster.local`, ...names])];
  const certificatePem = await makeLeafCertificate(
    signer,
    { commonName: id, dnsNames, ipAddresses: [...new Set(addresses)], publicKey: keys.publicKey },
    { notBefore: new Date(nowMs - BACKDATE_MS), notAfter },
  );
  return {
    certificatePem,
    keyPem: await exportPrivateKey(keys.privateKey),
    notAfterWallMs: new X509Certificate(certificatePem).validToDate.getTime(),
  };
}

/** Another node's name in a certificate would let it speak for that node; wildcards would let it speak for all. */
function checkName(name: string): void {
  const isName =
    /^(?=.{1,253}$)[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*$/i;
  if (!isName.test(name)) throw new GroveError("BAD_ARGUMENT", "a certificate's name is a DNS name");
  if (/(?:^|\.)cluster\.local$/i.test(name)) {
    throw new GroveError("BAD_ARGUMENT", "names below cluster.local belong to the node ids");
  }
}

async function readIfThere(path: string): Promise<string | undefined> {
  return readFile(path, "utf8").catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  });
}
