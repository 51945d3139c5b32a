// Tests of the doctor's findings: limits, servers down or silent, files that others may read.
import assert from "node:assert/strict";
import { chmodSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { createServer } from "node:net";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { systemClock } from "#base/clock.ts";
import { metricsPortOf } from "#base/metrics-port.ts";
import { startTestNode } from "#fileserver/process/node.fixture.ts";
import { openDirectory } from "#metaserver/directory/open-directory.ts";
import { loadOrCreateAuthority } from "#security/authority/authority.ts";
import { ensureNodeCertificate } from "#security/authority/node-certificate-files.ts";
import { writeNodeRole } from "#security/authority/node-role.ts";
import { makeAuthorities, makeCertificate, SERVER_USAGE } from "#security/identity/certificates.fixture.ts";
import { freeGrpcPorts } from "#testing/free-ports.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { FileServer } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { certificateFilesCheck } from "./certificates.ts";
import { clockFinding } from "./clock-finding.ts";
import { type Check, type Finding, ok, runChecks } from "./finding.ts";
import {
  diskCheck,
  driftFinding,
  folderCheck,
  nodeCheck,
  portRuleCheck,
  quotaFileCheck,
  storeCheck,
} from "./host-checks.ts";
import { listensBeyondLoopback } from "./listening-sockets.ts";
import { providerChecks } from "./provider-checks.ts";
import { serverCheck } from "./server-probe.ts";

const PLAIN = { ca: undefined, mock: true };

const states = (findings: readonly Finding[]): string[] =>
  findings.map(({ name, state }) => `${state} ${name}`);
const one = async (check: Check): Promise<Finding> => (await runChecks([check]))[0] ?? ok("nothing", "");

test("checks run side by side; one that hangs or throws fails alone, and the order stays", async () => {
  let aborted = false;
  const hang: Check = {
    name: "hangs",
    run: (signal) => {
      signal.addEventListener("abort", () => {
        aborted = true;
      });
      return new Promise(() => undefined);
    },
  };
  const throws: Check = { name: "throws", run: () => Promise.reject(new Error("broken pipe")) };
  const fine: Check = { name: "fine", run: () => Promise.resolve([ok("fine", "x"), ok("finer", "y")]) };
  const findings = await runChecks([hang, throws, fine], 50);
  assert.deepEqual(states(findings), ["failed hangs", "failed throws", "ok fine", "ok finer"]);
  assert.match(findings[0]?.what ?? "", /no answer within 0\.05 s/);
  assert.match(findings[1]?.what ?? "", /broken pipe/);
  assert.ok(aborted);
});

test("clocks: to 2 s nothing is said, to 60 s a warning, beyond a failure, on either side (D24)", () => {
  const at = (ms: number): string => clockFinding("c", ms).state;
  for (const sign of [1, -1]) {
    assert.deepEqual(
      [0, 2_000, 2_001, 60_000, 60_001].map((ms) => at(sign * ms)),
      ["ok", "ok", "warning", "warning", "failed"],
    );
  }
  assert.match(clockFinding("c", -90_000).what, /90\.0 s behind/);
});

test("ports: 41000 leaves no metrics port, 42023 a privileged one, 42024 is fine (T6)", async () => {
  for (const [port, state] of [
    [41_000, "failed"],
    [41_001, "warning"],
    [42_023, "warning"],
    [42_024, "ok"],
  ] as const) {
    assert.equal((await one(portRuleCheck(`127.0.0.1:${port}`))).state, state, String(port));
  }
});

test("a folder that others may enter, that is missing or a file is a failure", async () => {
  const base = scratchFolder("doctor-");
  assert.equal((await one(folderCheck(base))).state, "ok");
  chmodSync(base, 0o750);
  assert.match((await one(folderCheck(base))).todo, /chmod 700/);
  chmodSync(base, 0o700);
  assert.match((await one(folderCheck(join(base, "none")))).what, /ENOENT/);
  writeFileSync(join(base, "file"), "");
  assert.equal((await one(folderCheck(join(base, "file")))).what, "is no folder");
});

test("the disk: above the reserve fine, at it nothing can be written (spec 4.6.3)", async () => {
  const base = scratchFolder("doctor-");
  assert.equal((await one(diskCheck(base, 0n))).state, "ok");
  const full = await one(diskCheck(base, 2n ** 62n));
  assert.equal(full.state, "failed");
  assert.match(full.what, /nothing can be written/);
});

test("a reserve other than 20 GiB is told as such, by what the node says and by the disk's check (spec 1.2)", async (t) => {
  const [port = 0] = await freeGrpcPorts(1);
  let reserve = 21_474_836_480;
  const listener = createHttpServer((request, response) => {
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify(request.url === "/ready" ? { ready: true } : { reserve_bytes: reserve }));
  });
  await new Promise<void>((resolve) => listener.listen(metricsPortOf(port), "127.0.0.1", resolve));
  t.after(() => listener.close());
  const told = async (): Promise<string> => {
    const findings = await runChecks([nodeCheck("n1", `127.0.0.1:${port}`, undefined)]);
    return findings
      .flatMap(({ name, state, what }) => (name === "reserve of n1" ? [`${state} ${what}`] : []))
      .join();
  };
  assert.equal(await told(), "ok 20 GiB of its disk are kept free");
  reserve = 1_073_741_824;
  assert.equal(
    await told(),
    "warning 1 GiB of its disk are kept free, not the 20 GiB that every node should keep",
  );
  const base = scratchFolder("doctor-");
  assert.match((await one(diskCheck(base, 1_024n))).what, /, 1 KiB instead of 20 GiB of them the reserve$/);
  assert.doesNotMatch((await one(diskCheck(base))).what, /instead/);
});

test("quota file: absent, sound and damaged are told apart (spec 2.1)", async () => {
  const base = scratchFolder("doctor-");
  const path = join(base, "quota_config.json");
  assert.match((await one(quotaFileCheck(base))).what, /default quota/);
  writeFileSync(path, '{"quotas":{"a@b.c":18446744073709551615}}');
  assert.match((await one(quotaFileCheck(base))).what, /holds 1 quota$/);
  for (const text of ["", "{", "[]", '{"quotas":{"a@b.c":-1}}', '{"quotas":{"a@b.c":"x"}}', "null"]) {
    writeFileSync(path, text);
    assert.equal((await one(quotaFileCheck(base))).state, "failed", text);
  }
});

test("drift: what was counted is told with its age, and what was not is not said to agree (D16)", () => {
  const nowMs = 1_790_000_000_000;
  const look = (bytes: unknown, counters: unknown, agoMs?: number): string => {
    const ended = agoMs === undefined ? null : (nowMs - agoMs) / 1_000;
    const body = { quota_drift_bytes: bytes, drifted_counters: counters, recount_last_pass_unix: ended };
    const { state, what } = driftFinding("drift", body, nowMs);
    return `${state} ${what}`;
  };
  const minute = 60_000;
  assert.equal(look(null, null), "ok not counted yet");
  assert.equal(look(undefined, undefined), "ok not counted yet");
  assert.equal(look(0, 0, 12 * minute), "ok counted 12 min ago: its counters agree with what it stores");
  assert.equal(look(0, 0, -minute), "ok counted just now: its counters agree with what it stores");
  assert.equal(look(0, 0, minute - 1), "ok counted just now: its counters agree with what it stores");
  assert.match(look(0, 0, 119 * minute), /^ok counted 119 min ago: /);
  assert.match(look(0, 0, 120 * minute), /^ok counted 2 h ago: /);
  assert.match(look(0, 0, 47 * 60 * minute), /^ok counted 47 h ago: /);
  assert.match(look(0, 0, 48 * 60 * minute), /^ok counted 2 days ago: /);
  assert.equal(look(7, 1, minute), "failed counted 1 min ago: 1 of its counters are off, by 7 B");
  assert.equal(look(0, 3, minute), "failed counted 1 min ago: 3 of its counters are off, by 0 B");
  assert.equal(look("9007199254740993", 3), "failed being counted: 3 of its counters are off, by 8 PiB");
});

test("a running node: serves, and its metrics are for this machine", async (t) => {
  const node = await startTestNode();
  t.after(() => node.stop());
  const served = await one(serverCheck("fileserver", node.address, FileServer.typeName, PLAIN));
  assert.deepEqual([served.state, served.what], ["ok", "serves"]);
});

test("servers that are down, and servers that say nothing, are failures and never a hang", async (t) => {
  const silent = createServer();
  await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
  t.after(() => silent.close());
  const { port } = silent.address() as { port: number };
  const address = `127.0.0.1:${port}`;
  const findings = await runChecks(
    [
      serverCheck("metaserver", "127.0.0.1:1", FileServer.typeName, PLAIN),
      serverCheck("metaserver", address, FileServer.typeName, PLAIN),
      nodeCheck("n1", `127.0.0.1:${port + 41_000 > 65_535 ? 50_999 : port + 41_000}`, undefined),
      ...providerChecks({ issuer: "http://127.0.0.1:1", tokeninfoUrl: `http://${address}/` }),
    ],
    400,
  );
  assert.deepEqual(new Set(findings.map(({ state }) => state)), new Set(["failed"]));
  assert.equal(findings.length, 5);
  for (const { todo } of findings) assert.notEqual(todo, "");
});

test("certificate files: trusted and 90 days is fine; an open key, another key, another authority, the last days and the end are not", async () => {
  const base = scratchFolder("doctor-");
  const request = { id: "n1", names: ["localhost"], addresses: ["127.0.0.1"] };
  const authority = await loadOrCreateAuthority(join(base, "ca"), { clock: systemClock });
  const other = await loadOrCreateAuthority(join(base, "other"), { clock: systemClock });
  const files = await ensureNodeCertificate(authority, join(base, "certs"), request, systemClock);
  const foreign = await ensureNodeCertificate(other, join(base, "foreign"), request, systemClock);
  const caPath = join(base, "ca.crt");
  writeFileSync(caPath, authority.certificatePem);
  const all = { cert: files.certificatePath, key: files.keyPath, ca: caPath };
  const now = () => systemClock.wallMs();
  const day = 86_400_000;
  const look = async (given: Partial<typeof all>, wallMs: () => number = now): Promise<string> =>
    (await runChecks([certificateFilesCheck({ ...all, ...given }, wallMs)]))
      .map(({ state, what }) => `${state} ${what}`)
      .join("\n");
  assert.match(await look({}), /^ok has (?:89|90) days left/);
  assert.match(await look({}, () => now() + 77 * day), /^warning has 1[23] days left/);
  assert.match(await look({}, () => now() + 91 * day), /^failed .* expired on/);
  assert.match(await look({}, () => now() - 3 * day), /^failed .* is valid from .* set the clock/);
  assert.match(await look({ key: foreign.keyPath }), /failed .* is not the key of/);
  const ofOther = { cert: foreign.certificatePath, key: foreign.keyPath };
  assert.match(await look(ofOther), /failed .* was not signed by/);
  const bothPath = join(base, "both.crt");
  writeFileSync(bothPath, authority.certificatePem + other.certificatePem);
  assert.match(await look({ ...ofOther, ca: bothPath }), /^ok/, "one of several authorities has signed it");
  assert.match(await look({ cert: join(base, "none") }), /^failed cannot read .*it is missing/);
  chmodSync(files.keyPath, 0o640);
  assert.match(await look({}), /failed others may read its key/);
});

test("a certificate for servers alone is none for a node of a cluster, which calls its MetaServers", async () => {
  const folder = scratchFolder("doctor-");
  const authorities = await makeAuthorities();
  const { pem, key } = await makeCertificate(authorities, { usages: [SERVER_USAGE] });
  const files = { cert: join(folder, "n1.crt"), key: join(folder, "n1.key"), ca: join(folder, "ca.crt") };
  writeFileSync(files.cert, pem);
  writeFileSync(files.key, key, { mode: 0o600 });
  writeFileSync(files.ca, authorities.cluster.certificate.toString("pem"));
  const look = async (): Promise<string> => {
    const { state, what } = await one(certificateFilesCheck(files, () => systemClock.wallMs(), folder));
    return `${state} ${what}`;
  };
  const role = { id: "n1", metaservers: [], advertise: undefined, hasTls: true };
  await writeNodeRole(folder, role);
  assert.doesNotMatch(await look(), /^failed/, "it stands alone");
  await writeNodeRole(folder, { ...role, metaservers: ["127.0.0.1:50050"] });
  assert.match(await look(), /^failed .* is not for clients/);
});

test("a store that is not there is not made by looking, and one that is there answers (D19)", async () => {
  const base = scratchFolder("doctor-");
  const path = join(base, "metadata.db");
  assert.equal((await one(storeCheck(`sqlite:${path}`))).state, "failed");
  assert.equal((await one(storeCheck("mysql://user:secret@x"))).state, "failed");
  assert.doesNotMatch(JSON.stringify(await one(storeCheck("mysql://user:secret@x"))), /secret/);
  const store = await openDirectory(`sqlite:${path}`, { clock: systemClock });
  assert.match((await one(storeCheck(`sqlite:${path}`))).what, /0 of 0 nodes live/, "beside its MetaServer");
  await store.close();
  const older = new DatabaseSync(path);
  older.exec("PRAGMA user_version = 1");
  const looked = await one(storeCheck(`sqlite:${path}`));
  assert.equal(older.prepare("PRAGMA user_version").get()?.["user_version"], 1, "a look upgrades nothing");
  older.close();
  assert.match(looked.what, /of an older Grove: start the MetaServer first/);
  assert.ok(!readdirSync(base).some((name) => name.includes("schema-")));
});

test("which addresses a port listens on is read from the kernel's table", () => {
  const proc = scratchFolder("doctor-");
  mkdirSync(join(proc, "net"));
  const head = "  sl  local_address rem_address   st\n";
  const line = (local: string, state = "0A"): string =>
    `   0: ${local} 00000000:0000 ${state} 00000000:00000000\n`;
  writeFileSync(
    join(proc, "net", "tcp"),
    `${head}${line("0100007F:235B")}${line("00000000:235C")}${line("00000000:235D", "01")}`,
  );
  writeFileSync(
    join(proc, "net", "tcp6"),
    `${head}${line("00000000000000000000000001000000:235E")}${line(`${"0".repeat(32)}:235F`)}`,
  );
  const look = (port: number): boolean | undefined => listensBeyondLoopback(port, proc);
  assert.deepEqual(
    [look(9_051), look(9_052), look(9_053), look(9_054), look(9_055)],
    [false, true, undefined, false, true],
  );
  assert.equal(listensBeyondLoopback(1, join(proc, "none")), undefined);
});
