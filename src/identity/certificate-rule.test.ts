// Client certificates of every kind, shown to a real TLS server, against the rule of the control plane (spec 5.6, C-07).
import "reflect-metadata";
import assert from "node:assert/strict";
import { type webcrypto, X509Certificate } from "node:crypto";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { connect, createServer, type Server, type TLSSocket } from "node:tls";
import * as x509 from "@peculiar/x509";
import { DAY_MS } from "#base/duration.ts";
import { type CertificateVerdict, dnsNames, judgeCertificate } from "./certificate-rule.ts";

const ALGORITHM = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
const CLIENT_USAGE = "1.3.6.1.5.5.7.3.2";
const SERVER_USAGE = "1.3.6.1.5.5.7.3.1";

interface Made {
  readonly pem: string;
  readonly key: string;
  readonly der: Buffer;
}

interface Recipe {
  readonly sans?: x509.JsonGeneralNames;
  readonly commonName?: string;
  readonly signer?: "cluster" | "other" | "itself";
  readonly isAuthority?: boolean;
  readonly usages?: readonly string[];
  readonly fromMs?: number;
  readonly toMs?: number;
}

interface Authority {
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

let cluster: Authority;
let other: Authority;
let server: Server;
let seen: { certificate: Uint8Array | undefined; authorized: boolean; problem?: string } | undefined;

async function make(recipe: Recipe): Promise<Made> {
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

before(async () => {
  cluster = await makeAuthority("cluster authority");
  other = await makeAuthority("other authority");
  const own = await make({ sans: [{ type: "dns", value: "localhost" }], usages: [SERVER_USAGE] });
  const options = { key: own.key, cert: own.pem, ca: cluster.certificate.toString("pem") };
  server = createServer({ ...options, requestCert: true, rejectUnauthorized: false }, (socket) => {
    const raw = socket.getPeerCertificate().raw as Uint8Array | undefined;
    const problem = socket.authorizationError as unknown;
    seen = { certificate: raw, authorized: socket.authorized, problem: String(problem) };
    socket.end("seen");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
});
after(() => server.close());

/** What the rule says of a certificate that a client shows to a real server. */
async function show(made: Made | undefined, nowWallMs = Date.now()): Promise<CertificateVerdict> {
  seen = undefined;
  const socket: TLSSocket = connect({
    port: (server.address() as AddressInfo).port,
    host: "127.0.0.1",
    rejectUnauthorized: false,
    ...(made === undefined ? {} : { key: made.key, cert: made.pem }),
  });
  socket.resume();
  await once(socket, "close");
  assert.ok(seen, "the handshake failed");
  return judgeCertificate(seen, nowWallMs);
}

const dns = (...names: string[]): x509.JsonGeneralNames => names.map((value) => ({ type: "dns", value }));

const ALLOWED: readonly [string, Recipe, string | undefined][] = [
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

test("certificates of this cluster's nodes are allowed, and tell their node (spec 5.6)", {
  timeout: 30_000,
}, async () => {
  for (const [what, recipe, nodeId] of ALLOWED) {
    const verdict = await show(await make(recipe));
    assert.equal(verdict.allowed, true, `${what}: ${verdict.reason}`);
    assert.equal(verdict.nodeId, nodeId, what);
    assert.match(verdict.keyFingerprint ?? "", /^[0-9a-f]{64}$/);
  }
});

const REFUSED: readonly [string, Recipe][] = [
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

test(`${REFUSED.length} other kinds of certificates are refused, and none at all (spec 5.6, C-07)`, {
  timeout: 30_000,
}, async () => {
  assert.deepEqual(await show(undefined), { allowed: false, reason: "is missing" });
  for (const [what, recipe] of REFUSED) {
    const verdict = await show(await make(recipe));
    assert.equal(verdict.allowed, false, what);
    assert.ok(verdict.reason, what);
    assert.equal(verdict.nodeId, undefined);
  }
});

test("names alone never allow: without the TLS layer's word, or outside its dates, a good certificate is refused", async () => {
  const { der } = await make({ sans: dns("n1.cluster.local") });
  const parsed = new X509Certificate(der);
  const nowMs = Date.now();
  assert.equal(judgeCertificate({ certificate: parsed, authorized: true }, nowMs).nodeId, "n1");
  assert.equal(judgeCertificate({ certificate: der, authorized: true }, nowMs).nodeId, "n1");
  assert.equal(judgeCertificate({ certificate: der, authorized: false }, nowMs).allowed, false);
  // A connection may outlive its certificate.
  assert.equal(
    judgeCertificate({ certificate: der, authorized: true }, nowMs + 2 * DAY_MS).reason,
    "has expired",
  );
  assert.equal(
    judgeCertificate({ certificate: der, authorized: true }, nowMs - 2 * DAY_MS).reason,
    "is not yet valid",
  );
  for (const usages of [[SERVER_USAGE], ["1.3.6.1.5.5.7.3.4"]]) {
    const wrong = await make({ sans: dns("n1.cluster.local"), usages });
    const verdict = judgeCertificate({ certificate: wrong.der, authorized: true }, nowMs);
    assert.equal(verdict.reason, "is not for clients");
  }
  for (const junk of [Buffer.alloc(0), Buffer.from("junk"), der.subarray(0, -5)]) {
    assert.equal(judgeCertificate({ certificate: junk, authorized: true }, nowMs).allowed, false);
  }
});

test("the list of names is read entry by entry, and not at all when it cannot be (CVE-2021-44532)", () => {
  assert.deepEqual(dnsNames("DNS:a, IP Address:1.2.3.4, DNS:B"), ["a", "b"]);
  assert.deepEqual(dnsNames('DNS:"evil\\u0000, DNS:fileserver", DNS:ok'), ["ok"]);
  assert.deepEqual(dnsNames('URI:"x, DNS:fileserver"'), []);
  for (const odd of ["", "DNS", 'DNS:"open', 'DNS:a"b', "DNS:a, ", "DNS:a,DNS:b", "DNS:a, b"])
    assert.equal(dnsNames(odd), undefined, odd);
});
