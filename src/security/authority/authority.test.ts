// Tests that the authority's certificates work in real TLS connections, end on time, and keep their keys
// private.
import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { chmod, chown, readdir, readFile, stat, unlink, writeFile } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { connect, createServer, type TLSSocket } from "node:tls";
import { ManualClock, systemClock } from "#base/clock.ts";
import { isGroveError } from "#base/errors.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { AUTHORITY_LIFETIME_MS, loadOrCreateAuthority } from "./authority.ts";
import { NODE_CERTIFICATE_LIFETIME_MS } from "./issued-certificates.ts";
import { ensureNodeCertificate, RENEW_BEFORE_MS } from "./node-certificate-files.ts";

const isBadArgument = (error: unknown): boolean => isGroveError(error, "BAD_ARGUMENT");

function temporaryFolder(): string {
  return join(scratchFolder("authority-"), "ca");
}

test("the authority is made once, with a private key file, and is the same ever after", async () => {
  const folder = temporaryFolder();
  const clock = new ManualClock();
  const first = await loadOrCreateAuthority(folder, { clock });
  const again = await loadOrCreateAuthority(folder, { clock });
  assert.equal(again.certificatePem, first.certificatePem);
  assert.match(first.fingerprint, /^[0-9a-f]{64}$/);
  assert.equal((await stat(join(folder, "ca.key"))).mode & 0o777, 0o600);
  const certificate = new X509Certificate(first.certificatePem);
  assert.equal(certificate.ca, true);
  assert.equal(certificate.publicKey.asymmetricKeyDetails?.namedCurve, "prime256v1");
  assert.ok(Math.abs(first.notAfterWallMs - clock.wallMs() - AUTHORITY_LIFETIME_MS) < 1_000);
});

test("what root signs in a service's authority is on record for the service too", {
  skip: process.getuid?.() === 0 ? false : "needs root",
}, async () => {
  const folder = temporaryFolder();
  const authority = await loadOrCreateAuthority(folder, { clock: new ManualClock() });
  await chown(folder, 64_242, 64_243);
  await authority.issueNodeCertificate({ id: "node-1" });
  const [name = ""] = await readdir(join(folder, "issued"));
  for (const path of [join(folder, "issued"), join(folder, "issued", name)]) {
    const { uid, gid } = await stat(path);
    assert.deepEqual([uid, gid], [64_242, 64_243], path);
  }
});

test("a node certificate carries its names, addresses and both uses for 90 days (D20)", async () => {
  const clock = new ManualClock();
  const authority = await loadOrCreateAuthority(temporaryFolder(), { clock });
  const issued = await authority.issueNodeCertificate({
    id: "node-1",
    names: ["localhost", "grove.example.com"],
    addresses: ["127.0.0.1", "::1"],
  });
  const certificate = new X509Certificate(issued.certificatePem);
  assert.equal(
    certificate.subjectAltName,
    "DNS:node-1.cluster.local, DNS:localhost, DNS:grove.example.com, IP Address:127.0.0.1, IP Address:0:0:0:0:0:0:0:1",
  );
  assert.deepEqual(certificate.keyUsage, ["1.3.6.1.5.5.7.3.1", "1.3.6.1.5.5.7.3.2"]);
  assert.equal(certificate.ca, false);
  assert.equal(certificate.subject, "CN=node-1");
  assert.ok(Math.abs(issued.notAfterWallMs - clock.wallMs() - NODE_CERTIFICATE_LIFETIME_MS) < 1_000);
  // Near the authority's end a certificate ends with it.
  clock.advance(AUTHORITY_LIFETIME_MS - 10_000);
  const late = await authority.issueNodeCertificate({ id: "node-2" });
  assert.equal(late.notAfterWallMs, authority.notAfterWallMs);
});

test("names that would let a node speak for others are not issued", async () => {
  const authority = await loadOrCreateAuthority(temporaryFolder(), { clock: systemClock });
  for (const request of [
    { id: "*" },
    { id: "a.b" },
    { id: "a", names: ["b.cluster.local"] },
    { id: "a", names: ["B.Cluster.Local"] },
    { id: "a", names: ["cluster.local"] },
    { id: "a", names: ["*.example.com"] },
    { id: "a", names: ["x,DNS:b.cluster.local"] },
    { id: "a", names: [""] },
    { id: "a", addresses: ["localhost"] },
  ]) {
    await assert.rejects(authority.issueNodeCertificate(request), isBadArgument, JSON.stringify(request));
  }
});

test("two nodes of the cluster trust each other over TLS, and a foreign authority's node is not trusted", async (t) => {
  const authority = await loadOrCreateAuthority(temporaryFolder(), { clock: systemClock });
  const foreign = await loadOrCreateAuthority(temporaryFolder(), { clock: systemClock });
  const request = { id: "node-1", addresses: ["127.0.0.1"] };
  const own = await authority.issueNodeCertificate(request);
  const server = createServer({
    cert: own.certificatePem,
    key: own.keyPem,
    ca: authority.certificatePem,
    requestCert: true,
    rejectUnauthorized: false,
  }).listen(0, "127.0.0.1");
  t.after(() => server.close());
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  for (const [issuer, isTrusted] of [
    [authority, true],
    [foreign, false],
  ] as const) {
    const client = await issuer.issueNodeCertificate({ id: "node-2" });
    const accepted = once(server, "secureConnection");
    const socket = connect({
      port,
      host: "127.0.0.1",
      ca: authority.certificatePem,
      cert: client.certificatePem,
      key: client.keyPem,
    });
    await once(socket, "secureConnect");
    const [peer] = (await accepted) as [TLSSocket];
    assert.equal(socket.authorized, true);
    assert.equal(peer.authorized, isTrusted);
    socket.destroy();
  }
});

test("a folder with a lost, foreign, readable or damaged key, or a damaged certificate, is refused", async () => {
  const folder = temporaryFolder();
  await loadOrCreateAuthority(folder, { clock: systemClock });
  const key = join(folder, "ca.key");
  await chmod(key, 0o640);
  await assert.rejects(loadOrCreateAuthority(folder, { clock: systemClock }), isBadArgument);
  const other = await (
    await loadOrCreateAuthority(temporaryFolder(), { clock: systemClock })
  ).issueNodeCertificate({ id: "a" });
  await unlink(key);
  await assert.rejects(loadOrCreateAuthority(folder, { clock: systemClock }), isBadArgument);
  await writeFile(key, other.keyPem, { mode: 0o600 });
  await assert.rejects(loadOrCreateAuthority(folder, { clock: systemClock }), /is not the key of/);
  for (const name of ["ca.key", "ca.crt"]) {
    await writeFile(join(folder, name), other.keyPem.slice(0, 100), { mode: 0o600 });
    const why = new RegExp(`${name} is damaged: put it back`);
    await assert.rejects(loadOrCreateAuthority(folder, { clock: systemClock }), why);
  }
});

test("an expired authority is refused, and one whose making was cut short is made anew", async () => {
  const folder = temporaryFolder();
  const clock = new ManualClock();
  await loadOrCreateAuthority(folder, { clock });
  clock.advance(AUTHORITY_LIFETIME_MS);
  await assert.rejects(loadOrCreateAuthority(folder, { clock }), /has expired/);
  await unlink(join(folder, "ca.crt"));
  assert.ok((await loadOrCreateAuthority(folder, { clock })).notAfterWallMs > clock.wallMs());
});

test("a node's files are kept while they are good, and replaced when old, for other names or of another authority", async () => {
  const clock = new ManualClock();
  const folder = temporaryFolder();
  const authority = await loadOrCreateAuthority(folder, { clock });
  const request = { id: "node-1", addresses: ["127.0.0.1"] };
  const serial = async (
    issuer = authority,
    wanted: { id: string; names?: string[]; addresses: string[] } = request,
  ): Promise<string> => {
    const { certificatePath, keyPath } = await ensureNodeCertificate(issuer, folder, wanted, clock);
    assert.equal((await stat(keyPath)).mode & 0o777, 0o600);
    return new X509Certificate(await readFile(certificatePath)).serialNumber;
  };
  const first = await serial();
  clock.advance(NODE_CERTIFICATE_LIFETIME_MS - RENEW_BEFORE_MS - 10_000);
  assert.equal(await serial(), first);
  clock.advance(20_000);
  const second = await serial();
  assert.notEqual(second, first);
  const third = await serial(authority, { ...request, names: ["localhost"] });
  assert.notEqual(third, second);
  const foreign = await loadOrCreateAuthority(temporaryFolder(), { clock });
  assert.notEqual(await serial(foreign, { ...request, names: ["localhost"] }), third);
});

test("of one id's certificates the last one signed is the newest, also where the one before ends later", async () => {
  const clock = new ManualClock();
  const folder = temporaryFolder();
  await loadOrCreateAuthority(folder, { clock });
  for (const lifetimeMs of [NODE_CERTIFICATE_LIFETIME_MS, 7 * 86_400_000]) {
    const authority = await loadOrCreateAuthority(folder, { clock, lifetimeMs });
    const { notAfterWallMs } = await authority.issueNodeCertificate({ id: "n1" });
    clock.advance(5_000);
    const [newest] = await authority.issued.list(clock.wallMs());
    assert.equal(newest?.notAfterWallMs, notAfterWallMs);
  }
});
