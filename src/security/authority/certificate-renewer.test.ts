// Tests of certificate files that change under a running server: good ones are used, bad ones change nothing,
// and renewal is in time.
import assert from "node:assert/strict";
import { generateKeyPairSync, X509Certificate } from "node:crypto";
import { mkdir, readdir, readFile, rm, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { DAY_MS } from "#base/duration.ts";
import { type Logger, silentLogger } from "#base/log.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { AUTHORITY_KEY_FILE, type Authority, createAuthority } from "./authority.ts";
import { importPrivateKey, makeLeafCertificate } from "./certificate-maker.ts";
import { CertificateRenewer } from "./certificate-renewer.ts";
import { CERTIFICATE_CHECK_INTERVAL_MS } from "./file-stamp.ts";
import { NODE_CERTIFICATE_LIFETIME_MS } from "./issued-certificates.ts";
import { signAgain } from "./sign-again.ts";
import type { TlsMaterial, TlsPaths } from "./tls-material.ts";

interface Rig {
  readonly clock: ManualClock;
  readonly authority: Authority;
  readonly paths: TlsPaths;
  readonly renewer: CertificateRenewer;
  /** The material that the users of the certificate received, in order. */
  readonly given: TlsMaterial[];
  readonly events: string[];
  /** Replaces what renewal does. */
  renewBy(work: ((current: TlsMaterial) => Promise<string>) | undefined): void;
  readonly renewals: () => number;
}

async function setUp(t: TestContext, withRenewal = true): Promise<Rig> {
  const folder = scratchFolder("renewer-");
  const clock = new ManualClock();
  const authority = await createAuthority(join(folder, "ca"), { clock });
  const paths = { cert: join(folder, "n.crt"), key: join(folder, "n.key"), ca: authority.certificatePath };
  const issued = await authority.issueNodeCertificate({ id: "n", addresses: ["127.0.0.1"] });
  await writeFile(paths.cert, issued.certificatePem);
  await writeFile(paths.key, issued.keyPem, { mode: 0o600 });
  const given: TlsMaterial[] = [];
  const events: string[] = [];
  const keep = (event: string): number => events.push(event);
  const log: Logger = { ...silentLogger, info: keep, warn: keep, error: keep };
  let renewals = 0;
  let work: ((current: TlsMaterial) => Promise<string>) | undefined = (current) =>
    signAgain(authority, current.cert);
  const renewer = await CertificateRenewer.open({
    paths,
    uses: ["server", "client"],
    clock,
    random: () => 0,
    log,
    onChange: (material) => given.push(material),
    renew: withRenewal
      ? async (current) => {
          renewals++;
          assert.ok(work);
          return work(current);
        }
      : undefined,
  });
  t.after(() => renewer.close());
  return {
    clock,
    authority,
    paths,
    renewer,
    given,
    events,
    renewals: () => renewals,
    renewBy(next) {
      work = next;
    },
  };
}

/** A certificate of the authority for a key that TLS refuses. */
async function makeWeakCertificate(
  authority: Authority,
  nowMs: number,
): Promise<{ cert: string; key: string }> {
  const { publicKey, privateKey } = generateKeyPairSync("rsa", { modulusLength: 1024 });
  const signer = {
    certificatePem: authority.certificatePem,
    privateKey: await importPrivateKey(await readFile(join(authority.folder, AUTHORITY_KEY_FILE), "utf8")),
  };
  const subject = {
    commonName: "n",
    dnsNames: ["n.cluster.local"],
    ipAddresses: [],
    publicKey: publicKey.export({ type: "spki", format: "der" }),
  };
  const validity = { notBefore: new Date(nowMs - DAY_MS), notAfter: new Date(nowMs + DAY_MS) };
  return {
    cert: await makeLeafCertificate(signer, subject, validity),
    key: privateKey.export({ type: "pkcs8", format: "pem" }),
  };
}

const serialOf = (pem: string): string => new X509Certificate(pem).serialNumber;

test("new files are taken when they are whole and match, and the old ones stay in use until then", async (t) => {
  const { renewer, paths, authority, given, events } = await setUp(t);
  const first = renewer.material;
  const next = await authority.issueNodeCertificate({ id: "n", addresses: ["127.0.0.1"] });
  // Only the key is new: it does not match the certificate.
  await writeFile(paths.key, next.keyPem);
  await renewer.check();
  assert.equal(renewer.material, first);
  // Half of the certificate.
  await writeFile(paths.cert, next.certificatePem);
  await truncate(paths.cert, next.certificatePem.length / 2);
  await renewer.check();
  assert.equal(renewer.material, first);
  await rm(paths.cert);
  await renewer.check();
  assert.equal(renewer.material, first);
  assert.equal(given.length, 0);
  assert.ok(events.includes("certificate_files_unusable"));
  await writeFile(paths.cert, next.certificatePem);
  await renewer.check();
  assert.deepEqual(given, [{ cert: next.certificatePem, key: next.keyPem, ca: first.ca }]);
  await renewer.check();
  assert.equal(given.length, 1);
});

test("a certificate of another authority, an expired one and one for later are not taken", async (t) => {
  const { renewer, paths, authority, given, clock, events } = await setUp(t);
  const folder = scratchFolder("renewer-other-");
  const other = await createAuthority(join(folder, "ca"), { clock });
  const put = async (issuer: Authority, atMs: number): Promise<void> => {
    clock.jumpWall(atMs);
    const issued = await issuer.issueNodeCertificate({ id: "n" });
    clock.jumpWall(-atMs);
    await writeFile(paths.key, issued.keyPem);
    await writeFile(paths.cert, issued.certificatePem);
    await renewer.check();
  };
  await put(other, 0);
  await put(authority, -NODE_CERTIFICATE_LIFETIME_MS - 1_000);
  await put(authority, DAY_MS);
  assert.equal(given.length, 0);
  // It stays so for a day: each look says the same, and the log has it once.
  const lines = events.filter((event) => event === "certificate_files_unusable").length;
  clock.jumpWall(5_000);
  await renewer.check();
  assert.equal(events.filter((event) => event === "certificate_files_unusable").length, lines);
  await put(authority, 0);
  assert.equal(given.length, 1);
});

test("one for clients alone, a chain or authorities cut off, and a weak key are not taken: not even in part", async (t) => {
  const { renewer, paths, authority, given, clock } = await setUp(t);
  const { material, daysLeft } = renewer;
  const kept = async (why: string): Promise<void> => {
    await renewer.check();
    assert.equal(renewer.material, material, why);
    assert.equal(renewer.daysLeft, daysLeft, why);
    await writeFile(paths.cert, material.cert);
    await writeFile(paths.key, material.key);
    await writeFile(paths.ca, material.ca);
  };
  const ofDoor = await authority.issueDoorCertificate("d1");
  await writeFile(paths.key, ofDoor.keyPem);
  await writeFile(paths.cert, ofDoor.certificatePem);
  await kept("for clients alone");
  const half = (pem: string): string => pem.slice(0, pem.length / 2);
  await writeFile(paths.cert, `${material.cert}${half(material.ca)}`);
  await kept("half of the chain");
  const other = await createAuthority(join(scratchFolder("renewer-half-"), "ca"), { clock });
  for (const length of [3, 20, other.certificatePem.length / 2, other.certificatePem.length - 4]) {
    await writeFile(paths.ca, `${material.ca}${other.certificatePem.slice(0, length)}`);
    await kept(`${length} letters of the second authority`);
  }
  const weak = await makeWeakCertificate(authority, clock.wallMs());
  await writeFile(paths.key, weak.key);
  await writeFile(paths.cert, weak.cert);
  await kept("a weak key");
  assert.equal(given.length, 0);
  await writeFile(paths.ca, `${material.ca}${other.certificatePem}`);
  await renewer.check();
  assert.equal(given.length, 1);
});

test("SIGHUP's reload reads the files at once", async (t) => {
  const { renewer, paths, authority, given } = await setUp(t);
  const again = await signAgain(authority, renewer.material.cert);
  await writeFile(paths.cert, again);
  await renewer.reload();
  assert.equal(given[0]?.cert, again);
  await renewer.reload();
  assert.equal(given.length, 1);
});

test("it renews when a third of the life is left and not before, with the same key, and saves what it got", async (t) => {
  const { renewer, paths, clock, given, renewals } = await setUp(t);
  const first = renewer.material;
  const { validFromDate, validToDate } = new X509Certificate(first.cert);
  const dueMs = validToDate.getTime() - (validToDate.getTime() - validFromDate.getTime()) / 3;
  clock.jumpWall(dueMs - clock.wallMs() - 1_000);
  await renewer.check();
  assert.equal(renewals(), 0);
  clock.jumpWall(1_000);
  await renewer.check();
  assert.equal(renewals(), 1);
  assert.notEqual(serialOf(renewer.material.cert), serialOf(first.cert));
  assert.equal(renewer.material.key, first.key);
  assert.equal(await readFile(paths.cert, "utf8"), renewer.material.cert);
  assert.ok(renewer.daysLeft >= 89);
  assert.equal(given.length, 1);
  await renewer.check();
  assert.equal(renewals(), 1);
});

test("a renewal that fails is tried again, never more often than a tenth of the time left allows, and the old certificate stays", async (t) => {
  const { renewer, clock, renewals, renewBy, events } = await setUp(t);
  const first = renewer.material;
  renewBy(async () => Promise.reject(new Error("the metaserver is away")));
  clock.jumpWall(80 * DAY_MS);
  await renewer.check();
  await renewer.check();
  assert.equal(renewals(), 1);
  clock.advance(3_600_000 - 1_000);
  await renewer.check();
  assert.equal(renewals(), 1);
  clock.advance(1_000);
  await renewer.check();
  assert.equal(renewals(), 2);
  assert.equal(renewer.material, first);
  // A renewed certificate is judged like a file: an invalid one is refused.
  renewBy(async () => "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
  clock.advance(3_600_000);
  await renewer.check();
  assert.equal(renewer.material, first);
  assert.ok(events.includes("certificate_not_renewed"));
  assert.ok(events.includes("certificate_ends"));
});

test("from 14 days before the end on there is one line a day, and none before (B-11)", async (t) => {
  const { renewer, clock, events } = await setUp(t, false);
  const warnings = (): number => events.filter((event) => event === "certificate_ends").length;
  const leftMs = new X509Certificate(renewer.material.cert).validToDate.getTime() - clock.wallMs();
  clock.jumpWall(leftMs - 14 * DAY_MS);
  await renewer.check();
  assert.equal(renewer.daysLeft, 14);
  assert.equal(warnings(), 0);
  clock.jumpWall(1);
  await renewer.check();
  await renewer.check();
  assert.equal(renewer.daysLeft, 13);
  assert.equal(warnings(), 1);
  clock.jumpWall(DAY_MS);
  await renewer.check();
  assert.equal(warnings(), 2);
  clock.jumpWall(13 * DAY_MS);
  await renewer.check();
  assert.equal(renewer.daysLeft, -1);
  assert.equal(warnings(), 3);
});

test("a renewed certificate that cannot be saved is used all the same, not lost to the old file, and saved later", async (t) => {
  const { renewer, paths, clock, events } = await setUp(t);
  const first = serialOf(renewer.material.cert);
  // A folder in the file's place: the rename fails.
  await rm(paths.cert);
  await writeFile(paths.cert, "x");
  await rm(paths.cert);
  await mkdir(join(paths.cert, "x"), { recursive: true });
  clock.jumpWall(61 * DAY_MS);
  await renewer.check();
  assert.ok(events.includes("certificate_not_saved"));
  const second = serialOf(renewer.material.cert);
  assert.notEqual(second, first);
  await renewer.check();
  assert.equal(serialOf(renewer.material.cert), second);
  await rm(paths.cert, { recursive: true });
  clock.advance(60_000);
  await renewer.check();
  // What a restart reads.
  assert.equal(serialOf(await readFile(paths.cert, "utf8")), second);
});

test("a renewed certificate that waits for the disk is not written over files that an operator is replacing", async (t) => {
  const { renewer, paths, authority, clock, given } = await setUp(t);
  await rm(paths.cert);
  await mkdir(join(paths.cert, "x"), { recursive: true });
  clock.jumpWall(61 * DAY_MS);
  await renewer.check();
  const next = await authority.issueNodeCertificate({ id: "n" });
  await rm(paths.cert, { recursive: true });
  await writeFile(paths.cert, next.certificatePem);
  clock.advance(60_000);
  await renewer.check();
  assert.equal(await readFile(paths.cert, "utf8"), next.certificatePem);
  await writeFile(paths.key, next.keyPem);
  await renewer.check();
  assert.equal(given.at(-1)?.cert, next.certificatePem);
});

test("it looks by itself, every five seconds", async (t) => {
  const { renewer, paths, authority, clock, given } = await setUp(t, false);
  await writeFile(paths.cert, await signAgain(authority, renewer.material.cert));
  clock.advance(CERTIFICATE_CHECK_INTERVAL_MS);
  // Runs after the check that the timer has begun.
  await renewer.check();
  assert.equal(given.length, 1);
});

test("files that cannot be used do not start, and say why", async (t) => {
  const { paths, clock, authority } = await setUp(t);
  const open = (): Promise<unknown> =>
    CertificateRenewer.open({
      paths,
      uses: ["server", "client"],
      clock,
      random: Math.random,
      log: silentLogger,
      onChange() {},
      renew: undefined,
    });
  clock.jumpWall(NODE_CERTIFICATE_LIFETIME_MS + 1_000);
  await assert.rejects(open(), /expired on .*grove ca renew/);
  clock.jumpWall(-NODE_CERTIFICATE_LIFETIME_MS - 7_200_000);
  await assert.rejects(open(), /valid from .* set the clock/);
  clock.jumpWall(7_200_000);
  const { keyPem } = await authority.issueNodeCertificate({ id: "other" });
  await writeFile(paths.key, keyPem);
  await assert.rejects(open(), /is not the key of the certificate/);
  await writeFile(paths.key, "junk");
  await assert.rejects(open(), /holds no PEM text/);
});

test("temporary files of a crash in the middle of a save are swept at the next start", async (t) => {
  const { paths, clock } = await setUp(t);
  await writeFile(`${paths.cert.replace(/n\.crt$/, "")}.n.crt.0123456789abcdef.tmp`, "half");
  const renewer = await CertificateRenewer.open({
    paths,
    uses: ["client"],
    clock,
    random: Math.random,
    log: silentLogger,
    onChange() {},
    renew: undefined,
  });
  await renewer.close();
  const names = await readdir(join(paths.cert, ".."));
  assert.deepEqual(
    names.filter((name) => name.endsWith(".tmp")),
    [],
  );
});
