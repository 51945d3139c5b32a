// Certificates of every kind, as a stranger or a careless operator makes them, with the rule's verdict on
// each (spec 5.6, C-07).
import "reflect-metadata";
import type { webcrypto } from "node:crypto";
import * as x509 from "@peculiar/x509";
import { DAY_MS } from "#base/duration.ts";

const ALGORITHM = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
const CLIENT_USAGE = "1.3.6.1.5.5.7.3.2";
/** Extended key usage of servers. */
export const SERVER_USAGE = "1.3.6.1.5.5.7.3.1";

/** A certificate and its key. */
export interface MadeCertificate {
  readonly pem: string;
  readonly key: string;
  readonly der: Buffer;
}

/** The peculiarities of a certificate; other fields are valid. */
export interface CertificateRecipe {
  readonly sans?: x509.JsonGeneralNames;
  readonly commonName?: string;
  readonly signer?: "cluster" | "other" | "itself";
  readonly isAuthority?: boolean;
  readonly usages?: readonly string[];
  readonly fromMs?: number;
  readonly toMs?: number;
}

/** An authority with its key. */
export interface Authority {
  readonly certificate: x509.X509Certificate;
  readonly keys: webcrypto.CryptoKeyPair;
}

async function makeKeys(): Promise<webcrypto.CryptoKeyPair> {
  return crypto.subtle.generateKey(ALGORITHM, true, ["sign", "verify"]);
}

async function makeAuthority(name: string): Promise<Authority> {
  const keys = await makeKeys();
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    name: `CN=${name}`,
    keys,
    signingAlgorithm: ALGORITHM,
    notBefore: new Date(Date.now() - DAY_MS),
    notAfter: new Date(Date.now() + 100 * DAY_MS),
    extensions: [new x509.BasicConstraintsExtension(true, undefined, true)],
  });
  return { certificate, keys };
}

/** An authority that a cluster trusts, and one that it does not. */
export interface Authorities {
  readonly cluster: Authority;
  readonly other: Authority;
}

/** Makes both authorities. */
export async function makeAuthorities(): Promise<Authorities> {
  return { cluster: await makeAuthority("cluster authority"), other: await makeAuthority("other authority") };
}

/** Makes a certificate. */
export async function makeCertificate(
  { cluster, other }: Authorities,
  recipe: CertificateRecipe,
): Promise<MadeCertificate> {
  const keys = await makeKeys();
  const signer = recipe.signer === "other" ? other : cluster;
  const certificate = await x509.X509CertificateGenerator.create({
    subject: `CN=${recipe.commonName ?? "node"}`,
    issuer: recipe.signer === "itself" ? `CN=${recipe.commonName ?? "node"}` : signer.certificate.subject,
    publicKey: keys.publicKey,
    signingKey: recipe.signer === "itself" ? keys.privateKey : signer.keys.privateKey,
    signingAlgorithm: ALGORITHM,
    notBefore: new Date(Date.now() + (recipe.fromMs ?? -DAY_MS)),
    notAfter: new Date(Date.now() + (recipe.toMs ?? DAY_MS)),
    extensions: [
      new x509.BasicConstraintsExtension(recipe.isAuthority ?? false, undefined, true),
      ...(recipe.usages === undefined ? [] : [new x509.ExtendedKeyUsageExtension([...recipe.usages])]),
      ...(recipe.sans === undefined ? [] : [new x509.SubjectAlternativeNameExtension(recipe.sans)]),
    ],
  });
  const der = Buffer.from(await crypto.subtle.exportKey("pkcs8", keys.privateKey));
  const key = `-----BEGIN PRIVATE KEY-----\n${der.toString("base64")}\n-----END PRIVATE KEY-----\n`;
  return { pem: certificate.toString("pem"), key, der: Buffer.from(certificate.rawData) };
}

/** Turns names into DNS entries. */
export const dns = (...names: string[]): x509.JsonGeneralNames =>
  names.map((value) => ({ type: "dns", value }));

/** Certificates that the rule allows, with the node of each. */
export const ALLOWED_CERTIFICATES: readonly [string, CertificateRecipe, string | undefined][] = [
  ["a node's name", { sans: dns("n1.cluster.local") }, "n1"],
  ["a node's name in capitals", { sans: dns("N1.Cluster.LOCAL") }, "n1"],
  ["a node's name with dashes and digits", { sans: dns("rack-7-b.cluster.local") }, "rack-7-b"],
  ["fileserver", { sans: dns("fileserver") }, undefined],
  ["localhost", { sans: dns("localhost") }, undefined],
  [
    "a node's name among addresses and others",
    {
      sans: [
        ...dns("storage.example.com"),
        { type: "ip", value: "10.0.0.1" },
        ...dns("n2.cluster.local", "localhost"),
      ],
    },
    "n2",
  ],
  ["the same node twice", { sans: dns("n3.cluster.local", "N3.cluster.local") }, "n3"],
  ["two nodes: it speaks for neither", { sans: dns("n1.cluster.local", "n2.cluster.local") }, undefined],
  ["the pattern itself: it names no node", { sans: dns("*.cluster.local") }, undefined],
  ["a label of 63 characters", { sans: dns(`${"a".repeat(63)}.cluster.local`) }, "a".repeat(63)],
  [
    "one for clients and servers",
    { sans: dns("n1.cluster.local"), usages: [SERVER_USAGE, CLIENT_USAGE] },
    "n1",
  ],
];

/** Certificates that the rule refuses. */
export const REFUSED_CERTIFICATES: readonly [string, CertificateRecipe][] = [
  ["no name at all", {}],
  ["the name only as common name", { commonName: "n1.cluster.local" }],
  ["evilcluster.local", { sans: dns("evilcluster.local") }],
  ["two labels", { sans: dns("a.b.cluster.local") }],
  ["no label", { sans: dns("cluster.local") }],
  ["an empty label", { sans: dns(".cluster.local") }],
  ["a longer ending", { sans: dns("n1.cluster.local.evil.example") }],
  ["fileserver with an ending", { sans: dns("fileserver.evil") }],
  ["fileserver with a beginning", { sans: dns("evil-fileserver") }],
  ["a dot at the end", { sans: dns("n1.cluster.local.", "fileserver.", "localhost.") }],
  ["a blank", { sans: dns(" fileserver", "localhost ") }],
  ["a label that begins with a dash", { sans: dns("-n1.cluster.local") }],
  ["a label of 64 characters", { sans: dns(`${"a".repeat(64)}.cluster.local`) }],
  ["a comma that plays at two names", { sans: dns("evil.example, DNS:fileserver") }],
  ["a quote and a comma", { sans: dns('evil", DNS:fileserver, DNS:"') }],
  ["a NUL", { sans: dns("fileserver\0.evil.example") }],
  ["an address", { sans: [{ type: "ip", value: "127.0.0.1" }] }],
  ["a URI", { sans: [{ type: "url", value: "https://fileserver" }] }],
  ["a URI that plays at a DNS name", { sans: [{ type: "url", value: "x:y, DNS:fileserver" }] }],
  ["an e-mail address", { sans: [{ type: "email", value: "fileserver" }] }],
  ["a directory name", { sans: [{ type: "dn", value: "CN=fileserver" }] }],
  ["an authority's certificate", { sans: dns("n1.cluster.local"), isAuthority: true }],
  ["one for servers only", { sans: dns("n1.cluster.local"), usages: [SERVER_USAGE] }],
  ["one for e-mail", { sans: dns("n1.cluster.local"), usages: ["1.3.6.1.5.5.7.3.4"] }],
  ["an expired one", { sans: dns("n1.cluster.local"), fromMs: -2 * DAY_MS, toMs: -DAY_MS }],
  ["one that is not yet valid", { sans: dns("n1.cluster.local"), fromMs: DAY_MS, toMs: 2 * DAY_MS }],
  ["one of another authority", { sans: dns("n1.cluster.local"), signer: "other" }],
  ["a self-signed one", { sans: dns("n1.cluster.local"), signer: "itself" }],
];
