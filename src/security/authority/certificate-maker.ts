// Makes keys and certificates: ECDSA P-256 and X.509, with @peculiar/x509 and the runtime's own cryptography.
import "reflect-metadata";
import { randomBytes, webcrypto } from "node:crypto";
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  PemConverter,
  Pkcs10CertificateRequest,
  Pkcs10CertificateRequestGenerator,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509Certificate,
  X509CertificateGenerator,
} from "@peculiar/x509";

const KEY_ALGORITHM = { name: "ECDSA", namedCurve: "P-256" } as const;
const SIGNING_ALGORITHM = { ...KEY_ALGORITHM, hash: "SHA-256" } as const;

/** A private key with its public half. */
export type KeyPair = webcrypto.CryptoKeyPair;

/** Validity of a certificate. */
export interface Validity {
  readonly notBefore: Date;
  readonly notAfter: Date;
}

/** The signing authority. */
export interface Signer {
  readonly certificatePem: string;
  readonly privateKey: webcrypto.CryptoKey;
}

/** The subject of a certificate. */
export interface Subject {
  readonly commonName: string;
  readonly dnsNames: readonly string[];
  readonly ipAddresses: readonly string[];
  /** The public key as SPKI in DER; the holder of its private half is not checked here. */
  readonly publicKey: Uint8Array;
  /** True for one that only a TLS client can use. */
  readonly isClientOnly?: boolean;
}

/** Makes an ECDSA P-256 key pair. */
export async function makeKeyPair(): Promise<KeyPair> {
  return webcrypto.subtle.generateKey(KEY_ALGORITHM, true, ["sign", "verify"]);
}

/** The private key as PKCS #8 in PEM. */
export async function exportPrivateKey(privateKey: webcrypto.CryptoKey): Promise<string> {
  return `${PemConverter.encode(await webcrypto.subtle.exportKey("pkcs8", privateKey), "PRIVATE KEY")}\n`;
}

/** Reads what exportPrivateKey wrote; rejects when it is no P-256 key. */
export async function importPrivateKey(pem: string): Promise<webcrypto.CryptoKey> {
  return webcrypto.subtle.importKey("pkcs8", PemConverter.decodeFirst(pem), KEY_ALGORITHM, true, ["sign"]);
}

/** Makes a pair of a private key in PEM and its public half (SPKI, DER); rejects when it is no P-256 key. */
export async function importKeyPair(privatePem: string, publicKey: Uint8Array): Promise<KeyPair> {
  return {
    privateKey: await importPrivateKey(privatePem),
    publicKey: await webcrypto.subtle.importKey("spki", exactBytes(publicKey), KEY_ALGORITHM, true, [
      "verify",
    ]),
  };
}

/** Makes the certificate of an authority that signs leaf certificates, and no further authorities. */
export async function makeAuthorityCertificate(
  keys: KeyPair,
  commonName: string,
  validity: Validity,
): Promise<string> {
  const certificate = await X509CertificateGenerator.createSelfSigned({
    serialNumber: serialNumber(),
    name: [{ CN: [commonName] }],
    ...validity,
    signingAlgorithm: SIGNING_ALGORITHM,
    keys,
    extensions: [
      new BasicConstraintsExtension(true, 0, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
      await SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return `${certificate.toString("pem")}\n`;
}

/** Makes a certificate for both ends of a TLS connection, or for clients alone. */
export async function makeLeafCertificate(
  signer: Signer,
  subject: Subject,
  validity: Validity,
): Promise<string> {
  const issuer = new X509Certificate(signer.certificatePem);
  const certificate = await X509CertificateGenerator.create({
    serialNumber: serialNumber(),
    subject: [{ CN: [subject.commonName] }],
    issuer: issuer.subjectName,
    ...validity,
    signingAlgorithm: SIGNING_ALGORITHM,
    publicKey: exactBytes(subject.publicKey),
    signingKey: signer.privateKey,
    extensions: [
      new BasicConstraintsExtension(false, undefined, true),
      new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
      new ExtendedKeyUsageExtension([
        ...(subject.isClientOnly === true ? [] : [ExtendedKeyUsage.serverAuth]),
        ExtendedKeyUsage.clientAuth,
      ]),
      new SubjectAlternativeNameExtension([
        ...subject.dnsNames.map((value) => ({ type: "dns", value }) as const),
        ...subject.ipAddresses.map((value) => ({ type: "ip", value }) as const),
      ]),
      await AuthorityKeyIdentifierExtension.create(issuer.publicKey),
      await SubjectKeyIdentifierExtension.create(exactBytes(subject.publicKey)),
    ],
  });
  return `${certificate.toString("pem")}\n`;
}

/** The public half as SPKI in DER. */
export async function exportPublicKey(publicKey: webcrypto.CryptoKey): Promise<Uint8Array> {
  return new Uint8Array(await webcrypto.subtle.exportKey("spki", publicKey));
}

/** Makes a certificate request (PKCS #10, PEM): the public key and the proof of its private half. */
export async function makeCertificateRequest(keys: KeyPair, commonName: string): Promise<string> {
  const request = await Pkcs10CertificateRequestGenerator.create({
    name: [{ CN: [commonName] }],
    keys,
    signingAlgorithm: SIGNING_ALGORITHM,
  });
  return `${request.toString("pem")}\n`;
}

/**
 * The public key (SPKI, DER) of a certificate request; rejects an invalid one, or a signature by another key.
 */
export async function readCertificateRequest(pem: string): Promise<Uint8Array> {
  const request = new Pkcs10CertificateRequest(pem);
  if (!(await request.verify())) throw new Error("the request is not signed by the key that it holds");
  return new Uint8Array(request.publicKey.rawData);
}

/** The DNS names and addresses of a certificate, read from its structure and not from a text. */
export function alternativeNames(certificate: string | Uint8Array): {
  readonly dnsNames: readonly string[];
  readonly ipAddresses: readonly string[];
} {
  const parsed = new X509Certificate(typeof certificate === "string" ? certificate : exactBytes(certificate));
  const names = parsed.getExtension(SubjectAlternativeNameExtension)?.names.items ?? [];
  const of = (type: string): string[] => names.filter((name) => name.type === type).map(({ value }) => value);
  return { dnsNames: of("dns"), ipAddresses: of("ip") };
}

/** The library reads the whole buffer behind a view, so a view of a larger one is copied. */
function exactBytes(bytes: Uint8Array): ArrayBuffer {
  return new Uint8Array(bytes).buffer;
}

/** 127 random bits, positive, as RFC 5280 wants them. */
function serialNumber(): string {
  const bytes = randomBytes(16);
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x40;
  return bytes.toString("hex");
}
