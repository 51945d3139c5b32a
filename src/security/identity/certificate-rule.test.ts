// Tests of the control plane's certificate rule, with every kind of client certificate at a real TLS server
// (spec 5.6, C-07).
import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { connect, createServer, type Server, type TLSSocket } from "node:tls";
import { DAY_MS } from "#base/duration.ts";
import { type CertificateVerdict, dnsNames, judgeCertificate } from "./certificate-rule.ts";
import {
  ALLOWED_CERTIFICATES,
  type Authorities,
  dns,
  type MadeCertificate,
  makeAuthorities,
  makeCertificate,
  REFUSED_CERTIFICATES,
  SERVER_USAGE,
} from "./certificates.fixture.ts";

let authorities: Authorities;
let server: Server;
let seen: { certificate: Uint8Array | undefined; authorized: boolean; problem?: string } | undefined;

before(async () => {
  authorities = await makeAuthorities();
  const own = await makeCertificate(authorities, {
    sans: [{ type: "dns", value: "localhost" }],
    usages: [SERVER_USAGE],
  });
  const options = { key: own.key, cert: own.pem, ca: authorities.cluster.certificate.toString("pem") };
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

/** The verdict on a certificate that a client presents to a real server. */
async function show(made: MadeCertificate | undefined, nowWallMs = Date.now()): Promise<CertificateVerdict> {
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

test("certificates of this cluster's nodes are allowed, and tell their node (spec 5.6)", {
  timeout: 30_000,
}, async () => {
  for (const [what, recipe, nodeId] of ALLOWED_CERTIFICATES) {
    const verdict = await show(await makeCertificate(authorities, recipe));
    assert.equal(verdict.allowed, true, `${what}: ${verdict.reason}`);
    assert.equal(verdict.nodeId, nodeId, what);
    assert.match(verdict.keyFingerprint ?? "", /^[0-9a-f]{64}$/);
  }
});

test(`${REFUSED_CERTIFICATES.length} other kinds of certificates are refused, and none at all (spec 5.6, C-07)`, {
  timeout: 30_000,
}, async () => {
  assert.deepEqual(await show(undefined), { allowed: false, reason: "is missing" });
  for (const [what, recipe] of REFUSED_CERTIFICATES) {
    const verdict = await show(await makeCertificate(authorities, recipe));
    assert.equal(verdict.allowed, false, what);
    assert.ok(verdict.reason, what);
    assert.equal(verdict.nodeId, undefined);
  }
});

test("names alone never allow: without the TLS layer's word, or outside its dates, a good certificate is refused", async () => {
  const { der } = await makeCertificate(authorities, { sans: dns("n1.cluster.local") });
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
    const wrong = await makeCertificate(authorities, { sans: dns("n1.cluster.local"), usages });
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
