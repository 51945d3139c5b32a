// Makes keys and certificates: ECDSA P-256 and X.509, through @peculiar/x509 and the runtime's own cryptography.
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
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509Certificate,
  X509CertificateGenerator,
} from "@peculiar/x509";

const KEY_ALGORITHM = { name: "ECDSA", namedCurve: "P-256" } as const;
const SIGNING_ALGORITHM = { ...KEY_ALGORITHM, hash: "SHA-256" } as const;

/** A private key with its public half. */
export type KeyPair = webcrypto.CryptoKeyPair;

/** From when until when a certificate is good. */
export interface Validity {
  readonly notBefore: Date;
  readonly notAfter: Date;
}

/** Who signs. */
export interface Signer {
  readonly certificatePem: string;
  readonly privateKey: webcrypto.CryptoKey;
}

/** Whom a certificate is for. */
export interface Subject {
  readonly commonName: string;
  readonly dnsNames: readonly string[];
  readonly ipAddresses: readonly string[];
  readonly publicKey: webcrypto.CryptoKey;
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

/** Makes the certificate of an authority that signs others directly, and no further authorities. */
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

/** Makes a certificate that is good for both ends of a TLS connection. */
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
    publicKey: subject.publicKey,
    signingKey: signer.privateKey,
    extensions: [
      new BasicConstraintsExtension(false, undefined, true),
      new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
      new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth, ExtendedKeyUsage.clientAuth]),
      new SubjectAlternativeNameExtension([
        ...subject.dnsNames.map((value) => ({ type: "dns", value }) as const),
        ...subject.ipAddresses.map((value) => ({ type: "ip", value }) as const),
      ]),
      await AuthorityKeyIdentifierExtension.create(issuer.publicKey),
      await SubjectKeyIdentifierExtension.create(subject.publicKey),
    ],
  });
  return `${certificate.toString("pem")}\n`;
}

/** 127 random bits, positive, as RFC 5280 wants them. */
function serialNumber(): string {
  const bytes = randomBytes(16);
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x40;
  return bytes.toString("hex");
}
