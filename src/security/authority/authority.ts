// The cluster's own certificate authority: one folder with a key that never leaves it (D20).
import { createPrivateKey, createPublicKey, X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { isIP } from "node:net";
import { join } from "node:path";
import type { Clock } from "#base/clock.ts";
import { DAY_MS } from "#base/duration.ts";
import { GroveError } from "#base/errors.ts";
import { checkedNodeId } from "#base/node-id.ts";
import { writeFileAtomic } from "#os/atomic-file.ts";
import { createPrivateFile, readPrivateFile, writePrivateFile } from "#os/private-file.ts";
import { makePrivateFolder } from "#os/private-folder.ts";
import type { KeyPair, Signer, Subject } from "./certificate-maker.ts";
import { IssuedCertificates, NODE_CERTIFICATE_LIFETIME_MS } from "./issued-certificates.ts";

/** Life of the authority's own certificate. */
export const AUTHORITY_LIFETIME_MS: number = 3_650 * DAY_MS;
/**
 * Certificates begin this long ago, for hosts whose clocks are behind; short-lived ones a tenth of their
 * life.
 */
const BACKDATE_MS = 3_600_000;

/** File of the authority's public certificate. */
export const AUTHORITY_CERTIFICATE_FILE = "ca.crt";
/** File of the authority's key, mode 0600. */
export const AUTHORITY_KEY_FILE = "ca.key";
/** File of the revoked serial numbers. */
export const REVOKED_FILE = "revoked";

/** The subject of a node certificate. */
export interface NodeCertificateRequest {
  /** The node's id; the certificate's first name is `<id>.cluster.local`. */
  readonly id: string;
  /** Further DNS names of the node. */
  readonly names?: readonly string[];
  /** IP addresses of the node. */
  readonly addresses?: readonly string[];
}

/**
 * A certificate with its key, in PEM. The key is a secret: it belongs in a file of mode 0600 and nowhere
 * else.
 */
export interface IssuedCertificate {
  readonly certificatePem: string;
  readonly keyPem: string;
  readonly notAfterWallMs: number;
}

/** An authority that is ready to sign. */
export interface Authority {
  readonly folder: string;
  readonly certificatePem: string;
  /** Path of the certificate, for `-tls_ca`. */
  readonly certificatePath: string;
  /** SHA-256 of the certificate in hex, for operators and join tokens to compare. */
  readonly fingerprint: string;
  readonly notAfterWallMs: number;
  /** Every certificate that it has signed, until some time after the certificate's end. */
  readonly issued: IssuedCertificates;
  /**
   * Makes a key and a certificate for it: 90 days, never beyond the authority's own end, for servers and
   * clients alike (D20). Throws BAD_ARGUMENT for a bad id, name or address.
   */
  issueNodeCertificate(request: NodeCertificateRequest): Promise<IssuedCertificate>;
  /**
   * The same for a public key (SPKI, DER) whose private half stays with the node. Throws BAD_ARGUMENT for a
   * weak key too.
   */
  signNodeCertificate(publicKey: Uint8Array, request: NodeCertificateRequest): Promise<string>;
  /**
   * A certificate of a door for a public key: for clients alone, with the one name `<id>.door.cluster.local`,
   * so that it speaks for no node and serves nothing. Throws BAD_ARGUMENT for a bad id or a weak key.
   */
  signDoorCertificate(publicKey: Uint8Array, id: string): Promise<string>;
  /** Makes a key and such a certificate for it. */
  issueDoorCertificate(id: string): Promise<IssuedCertificate>;
}

/** Dependencies of an authority. */
export interface AuthorityDeps {
  readonly clock: Pick<Clock, "wallMs">;
  /** Life of the certificates that it signs in milliseconds; default 90 days. */
  readonly lifetimeMs?: number;
}

/**
 * Makes an authority (ECDSA P-256, 10 years) in a folder without one. Throws BAD_ARGUMENT when any file of
 * one exists: it is never overwritten.
 */
export async function createAuthority(folder: string, deps: AuthorityDeps): Promise<Authority> {
  makePrivateFolder(folder);
  const { certificatePath, keyPath } = pathsIn(folder);
  for (const path of [certificatePath, keyPath]) {
    if ((await readIfThere(path)) === undefined) continue;
    throw new GroveError(
      "BAD_ARGUMENT",
      `${path} is there already: an authority is never overwritten, because every certificate of the cluster hangs on it`,
    );
  }
  const { exportPrivateKey, makeKeyPair } = await import("./certificate-maker.ts");
  const keys = await makeKeyPair();
  // Exclusive, so that of two concurrent calls one fails.
  await createPrivateFile(keyPath, await exportPrivateKey(keys.privateKey));
  await writeAuthorityCertificate(certificatePath, keys, deps);
  return openAuthority(folder, deps);
}

/**
 * Opens the authority in a folder. Throws BAD_ARGUMENT when there is none, and when the certificate has
 * expired. Throws it also when the key is missing, readable by others, or not the certificate's.
 */
export async function openAuthority(folder: string, deps: AuthorityDeps): Promise<Authority> {
  const { certificatePath, keyPath } = pathsIn(folder);
  const certificatePem = await readIfThere(certificatePath);
  if (certificatePem === undefined) {
    throw new GroveError(
      "BAD_ARGUMENT",
      `there is no authority in ${folder}: make one with 'grove ca init -ca_dir ${folder}'`,
    );
  }
  const keyPem = await readPrivateFile(keyPath);
  if (keyPem === undefined) {
    throw new GroveError("BAD_ARGUMENT", `${certificatePath} has no key beside it: ${keyPath} is missing`);
  }
  return open(folder, { certificatePem, keyPem }, deps);
}

/**
 * Opens the authority in a folder, or makes it; one that was interrupted before its certificate is made anew.
 */
export async function loadOrCreateAuthority(folder: string, deps: AuthorityDeps): Promise<Authority> {
  makePrivateFolder(folder);
  const { certificatePath, keyPath } = pathsIn(folder);
  if ((await readIfThere(certificatePath)) === undefined) {
    const { exportPrivateKey, makeKeyPair } = await import("./certificate-maker.ts");
    const keys = await makeKeyPair();
    await writePrivateFile(keyPath, await exportPrivateKey(keys.privateKey));
    await writeAuthorityCertificate(certificatePath, keys, deps);
  }
  return openAuthority(folder, deps);
}

function pathsIn(folder: string): { readonly certificatePath: string; readonly keyPath: string } {
  return {
    certificatePath: join(folder, AUTHORITY_CERTIFICATE_FILE),
    keyPath: join(folder, AUTHORITY_KEY_FILE),
  };
}

function open(
  folder: string,
  pems: { readonly certificatePem: string; readonly keyPem: string },
  deps: AuthorityDeps,
): Authority {
  const { certificatePem, keyPem } = pems;
  const { certificatePath, keyPath } = pathsIn(folder);
  const certificate = parsed(certificatePath, () => new X509Certificate(certificatePem));
  const notAfterWallMs = certificate.validToDate.getTime();
  if (!parsed(keyPath, () => createPublicKey(createPrivateKey(keyPem))).equals(certificate.publicKey)) {
    throw new GroveError("BAD_ARGUMENT", `${keyPath} is not the key of ${certificatePath}`);
  }
  if (notAfterWallMs <= deps.clock.wallMs()) {
    throw new GroveError("BAD_ARGUMENT", `the cluster's authority ${certificatePath} has expired`);
  }
  const issued = new IssuedCertificates(join(folder, "issued"));
  const signAndKeep = async (order: Order): Promise<string> => {
    const { importPrivateKey } = await import("./certificate-maker.ts");
    const signer: Signer = { certificatePem, privateKey: await importPrivateKey(keyPem) };
    const signed = await sign({ ...order, signer, authorityEndsMs: notAfterWallMs }, deps);
    await issued.add(signed, deps.clock.wallMs());
    return signed;
  };
  const withNewKey = async (
    signKey: (publicKey: Uint8Array) => Promise<string>,
  ): Promise<IssuedCertificate> => {
    const { exportPrivateKey, exportPublicKey, makeKeyPair } = await import("./certificate-maker.ts");
    const keys = await makeKeyPair();
    const signed = await signKey(await exportPublicKey(keys.publicKey));
    return {
      certificatePem: signed,
      keyPem: await exportPrivateKey(keys.privateKey),
      notAfterWallMs: new X509Certificate(signed).validToDate.getTime(),
    };
  };
  const signNodeCertificate: Authority["signNodeCertificate"] = async (publicKey, request) => {
    checkNodeRequest(publicKey, request);
    const { id, names = [], addresses = [] } = request;
    const dnsNames = [...new Set([`${id}.cluster.local`, ...names])];
    return signAndKeep({
      subject: { commonName: id, dnsNames, ipAddresses: [...new Set(addresses)], publicKey },
    });
  };
  const signDoorCertificate: Authority["signDoorCertificate"] = async (publicKey, id) => {
    checkNodeRequest(publicKey, { id });
    const names = { commonName: `${id}.door`, dnsNames: [`${id}.door.cluster.local`], ipAddresses: [] };
    return signAndKeep({ subject: { ...names, publicKey, isClientOnly: true } });
  };
  return {
    folder,
    certificatePem,
    certificatePath,
    fingerprint: certificate.fingerprint256.replaceAll(":", "").toLowerCase(),
    notAfterWallMs,
    issued,
    signNodeCertificate,
    issueNodeCertificate: (request) => withNewKey((key) => signNodeCertificate(key, request)),
    signDoorCertificate,
    issueDoorCertificate: (id) => withNewKey((key) => signDoorCertificate(key, id)),
  };
}

function parsed<T>(path: string, parse: () => T): T {
  try {
    return parse();
  } catch (cause) {
    throw new GroveError(
      "BAD_ARGUMENT",
      `${path} is damaged: put it back from the copy that you keep of it`,
      {
        cause,
      },
    );
  }
}

async function writeAuthorityCertificate(path: string, keys: KeyPair, deps: AuthorityDeps): Promise<void> {
  const { makeAuthorityCertificate } = await import("./certificate-maker.ts");
  const nowMs = deps.clock.wallMs();
  const certificatePem = await makeAuthorityCertificate(keys, "Grove cluster authority", {
    notBefore: new Date(nowMs - BACKDATE_MS),
    notAfter: new Date(nowMs + AUTHORITY_LIFETIME_MS),
  });
  await writeFileAtomic(path, certificatePem, { mode: 0o644 });
}

interface Order {
  readonly subject: Subject;
}

interface SignedOrder extends Order {
  readonly signer: Signer;
  readonly authorityEndsMs: number;
}

async function sign({ subject, signer, authorityEndsMs }: SignedOrder, deps: AuthorityDeps): Promise<string> {
  const { makeLeafCertificate } = await import("./certificate-maker.ts");
  const nowMs = deps.clock.wallMs();
  const lifetimeMs = deps.lifetimeMs ?? NODE_CERTIFICATE_LIFETIME_MS;
  return makeLeafCertificate(signer, subject, {
    notBefore: new Date(nowMs - Math.min(BACKDATE_MS, lifetimeMs / 10)),
    notAfter: new Date(Math.min(nowMs + lifetimeMs, authorityEndsMs)),
  });
}

/** Throws BAD_ARGUMENT for an invalid id, name, address or key. */
export function checkNodeRequest(publicKey: Uint8Array, request: NodeCertificateRequest): void {
  checkedNodeId(request.id);
  for (const name of request.names ?? []) checkName(name);
  for (const address of request.addresses ?? []) {
    if (isIP(address) === 0) throw new GroveError("BAD_ARGUMENT", "a certificate's address is an IP address");
  }
  checkKey(publicKey);
}

/** Another node's name in a certificate would impersonate that node; a wildcard would impersonate all. */
function checkName(name: string): void {
  const isName =
    /^(?=.{1,253}$)[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*$/i;
  if (!isName.test(name)) throw new GroveError("BAD_ARGUMENT", "a certificate's name is a DNS name");
  if (/(?:^|\.)cluster\.local$/i.test(name)) {
    throw new GroveError("BAD_ARGUMENT", "names below cluster.local belong to the node ids");
  }
  if (isIP(name) !== 0) {
    throw new GroveError("BAD_ARGUMENT", "a certificate's name is a DNS name, and this is an address");
  }
}

/** Throws BAD_ARGUMENT for a key whose private half could be computed, or that TLS would refuse. */
function checkKey(publicKey: Uint8Array): void {
  const refuse = (): never => {
    throw new GroveError(
      "BAD_ARGUMENT",
      "a certificate's key is ECDSA on P-256 or P-384, Ed25519, or RSA of 2048 to 8192 bits",
    );
  };
  try {
    const key = createPublicKey({ key: Buffer.from(publicKey), format: "der", type: "spki" });
    const { namedCurve = "", modulusLength = 0 } = key.asymmetricKeyDetails ?? {};
    const isGood =
      key.asymmetricKeyType === "ed25519" ||
      (key.asymmetricKeyType === "ec" && ["prime256v1", "secp384r1"].includes(namedCurve)) ||
      (key.asymmetricKeyType === "rsa" && modulusLength >= 2_048 && modulusLength <= 8_192);
    if (!isGood) refuse();
  } catch {
    refuse();
  }
}

async function readIfThere(path: string): Promise<string | undefined> {
  return readFile(path, "utf8").catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  });
}
