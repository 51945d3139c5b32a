// Renewing and revoking certificates at a MetaServer with an authority, over real TLS (D20).
import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { NODE_LEASE_MS } from "#base/limits.ts";
import { REVOKED_FILE } from "#security/authority/authority.ts";
import { CERTIFICATE_CHECK_INTERVAL_MS } from "#security/authority/file-stamp.ts";
import { revoke } from "#security/authority/revocations.ts";
import { signAgain } from "#security/authority/sign-again.ts";
import { Code } from "#wire/framing/status.ts";
import { HOUR_MS, startCluster, TIMEOUT } from "./enrolment.fixture.ts";
import { RENEWALS_PER_HOUR_PER_NODE } from "./enrolment-routes.ts";
import { nodeMessage, refused, startForTest } from "./meta-server.fixture.ts";

test(
  "renewal keeps id, key, names and addresses, and needs the old certificate (D20)",
  TIMEOUT,
  async (t) => {
    const cluster = await startCluster(t);
    const node = await cluster.join(await cluster.token("n1"), {
      hosts: ["n1.example.net", "10.0.0.7", "fd00::7"],
    });
    const client = cluster.connect(node);
    await client.registerFileServer(nodeMessage("n1"));
    cluster.clock.jumpWall(60 * 24 * HOUR_MS);
    const { certificate } = await client.renewCertificate({ nodeId: "n1" });
    const [old, renewed] = [new X509Certificate(String(node.cert)), new X509Certificate(certificate)];
    assert.equal(renewed.subjectAltName, old.subjectAltName);
    assert.ok(renewed.publicKey.equals(old.publicKey));
    assert.ok(renewed.validToDate > old.validToDate);
    assert.equal(renewed.ca, false);
    await refused(client.renewCertificate({ nodeId: "n2" }), Code.UNAUTHENTICATED, "CLIENT_CERT_REQUIRED");
    const plain = cluster.connect({ ca: cluster.authority.certificatePem });
    await refused(plain.renewCertificate({ nodeId: "n1" }), Code.UNAUTHENTICATED, "CLIENT_CERT_REQUIRED");
    cluster.clock.jumpWall(31 * 24 * HOUR_MS);
    await refused(client.renewCertificate({}), Code.UNAUTHENTICATED, "CLIENT_CERT_REQUIRED");
  },
);

test("a certificate that is renewed too often waits", TIMEOUT, async (t) => {
  const cluster = await startCluster(t);
  const client = cluster.connect(await cluster.join(await cluster.token("n1")));
  for (let count = 0; count < RENEWALS_PER_HOUR_PER_NODE; count++) await client.renewCertificate({});
  await refused(client.renewCertificate({}), Code.RESOURCE_EXHAUSTED, "RATE_LIMITED");
});

test(
  "a revoked certificate makes no control calls within seconds, also on a connection that is open, and is not renewed",
  TIMEOUT,
  async (t) => {
    const cluster = await startCluster(t);
    const node = await cluster.join(await cluster.token("n1"));
    const client = cluster.connect(node);
    await client.registerFileServer(nodeMessage("n1"));
    const { serialNumber } = new X509Certificate(String(node.cert));
    const list = join(cluster.authority.folder, REVOKED_FILE);
    await revoke(list, serialNumber, "lost");
    cluster.clock.advance(CERTIFICATE_CHECK_INTERVAL_MS);
    for (
      let tries = 0;
      tries < 3_000 && cluster.certificates.revocations?.isRevoked(serialNumber) !== true;
      tries++
    ) {
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    for (const call of [
      () => client.heartbeat({ fsId: "n1", epoch: 1n }),
      () => client.registerFileServer(nodeMessage("n1")),
      () => client.renewCertificate({}),
    ]) {
      await refused(call(), Code.UNAUTHENTICATED, "CLIENT_CERT_REQUIRED");
    }
    // An invalid list changes nothing: revoked certificates stay revoked.
    await writeFile(list, "not a serial number\n");
    cluster.clock.advance(CERTIFICATE_CHECK_INTERVAL_MS);
    await new Promise((resolve) => setTimeout(resolve, 50));
    await refused(client.heartbeat({ fsId: "n1", epoch: 1n }), Code.UNAUTHENTICATED, "CLIENT_CERT_REQUIRED");
  },
);

test(
  "a node that was taken out hears nothing, tells nothing and gets no new certificate; one that never registered gets that alone (D20)",
  TIMEOUT,
  async (t) => {
    const cluster = await startCluster(t);
    const client = cluster.connect(await cluster.join(await cluster.token("n1")));
    const node = { fsId: "n1", epoch: 1n };
    const decision = { username: "alice@example.com", disabled: true, version: 7n, setBy: "administrator" };
    const calls = [
      () => client.exchangeUserStates({ ...node, states: [decision] }),
      () => client.listGroupRoles(node),
      () => client.getTicketNews(node),
      () =>
        client.claimRoot({ ...node, username: "alice@example.com", issuer: "idp.example.com", subject: "7" }),
    ];
    for (const call of calls) await refused(call(), Code.UNAVAILABLE, "STARTING");
    await client.renewCertificate({});
    await client.registerFileServer(nodeMessage("n1"));
    await client.getTicketNews(node);
    cluster.clock.advance(NODE_LEASE_MS);
    assert.equal((await cluster.directory.removeNode("n1")).outcome, "removed");
    for (const call of [...calls, () => client.renewCertificate({})]) {
      await refused(call(), Code.UNAUTHENTICATED, "CLIENT_CERT_REQUIRED");
    }
    assert.deepEqual(await cluster.directory.userStates(), []);
    assert.equal(await cluster.directory.findSubject("alice@example.com"), undefined);
  },
);

test("without -ca_dir, and without TLS, nothing is signed", TIMEOUT, async (t) => {
  const mock = await startForTest(t);
  await refused(mock.connect().joinNode({ token: "gjt_x" }), Code.UNIMPLEMENTED, "NOT_IMPLEMENTED");
  await refused(mock.connect().renewCertificate({}), Code.UNAUTHENTICATED, "CLIENT_CERT_REQUIRED");
});

test(
  "the MetaServer's own certificate changes while it runs: new connections get the new one, the old ones go on",
  TIMEOUT,
  async (t) => {
    const cluster = await startCluster(t);
    const node = await cluster.join(await cluster.token("n1"));
    const early = cluster.connect(node);
    await early.registerFileServer(nodeMessage("n1"));
    const before = cluster.certificates.renewer?.material.cert ?? "";
    await writeFile(
      join(cluster.folder, "meta", "tls", "metaserver.crt"),
      await signAgain(cluster.authority, before),
    );
    await cluster.certificates.renewer?.reload();
    assert.notEqual(cluster.certificates.renewer?.material.cert, before);
    assert.equal((await early.heartbeat({ fsId: "n1", epoch: 1n })).known, true);
    assert.equal((await cluster.connect(node).heartbeat({ fsId: "n1", epoch: 1n })).known, true);
  },
);
