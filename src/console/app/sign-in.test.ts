// Tests signing in under attack, and from wrong origins (D17, W-02, W-03, T10, T11, C-04).
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { Agent } from "node:http";
import { request as httpsRequest } from "node:https";
import { join } from "node:path";
import { test } from "node:test";
import type { TLSSocket } from "node:tls";
import { systemClock } from "#base/clock.ts";
import { passwordHashes } from "#console/operators/hash-password.ts";
import { OperatorPassword } from "#console/operators/operator-password.ts";
import { storePlace } from "#metaserver/directory/open-directory.ts";
import { auditFiles } from "#security/audit/audit-files.ts";
import { type Authority, loadOrCreateAuthority } from "#security/authority/authority.ts";
import { ensureNodeCertificate } from "#security/authority/node-certificate-files.ts";
import { adminPasswordHash } from "#security/identity/admin-password.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { agreeOn, renegotiates, suitesOfTls12 } from "#testing/tls-probe.ts";
import type { Answer } from "./app.fixture.ts";
import { type ConsoleUnderTest, PASSWORD, startTestConsole, testConsoleOptions } from "./console.fixture.ts";
import { startConsole } from "./console.ts";

function signIn(
  console: ConsoleUnderTest,
  password: string,
  headers: Record<string, string> = {},
): Promise<Answer> {
  return console.ask("/api/auth/login", { body: { password }, headers });
}

/** A password that counts its checks. */
async function countedPassword(hash: string): Promise<{ password: OperatorPassword; looks: () => number }> {
  const password = await OperatorPassword.open({ env: { ADMIN_PASSWORD_HASH: hash }, file: undefined });
  const matches = password.matches.bind(password);
  let looks = 0;
  password.matches = (candidate) => {
    looks++;
    return matches(candidate);
  };
  return { password, looks: () => looks };
}

test("thousands of guesses from three addresses: fifteen are looked at, and the operator gets in throughout (W-03)", async (t) => {
  const { password, looks } = await countedPassword(passwordHashes(PASSWORD).argon2);
  const console = await startTestConsole(t, { password, trustedProxies: ["127.0.0.1"] });
  // Measures checks, so connections may be reused.
  const agent = new Agent({ keepAlive: true });
  t.after(() => agent.destroy());
  const from = (address: string): Record<string, string> => ({ "x-forwarded-for": address });
  const codes = new Map<string, number>();
  // GROVE_GUESSES=10000 takes half a minute.
  const guesses = Number(process.env["GROVE_GUESSES"] ?? 2_000);
  let entries = 0;
  let next = 0;
  const guess = async (): Promise<void> => {
    while (next < guesses) {
      const at = next++;
      const answer = await console.ask("/api/auth/login", {
        body: { password: `guess ${at}` },
        headers: from(`203.0.113.${at % 3}`),
        agent,
      });
      const code = answer.problem?.code ?? "";
      codes.set(code, (codes.get(code) ?? 0) + 1);
      if (code === "RATE_LIMITED") assert.match(answer.headers["retry-after"] ?? "", /^[1-9]\d*$/);
      if (at % 200 === 199) {
        assert.equal((await signIn(console, PASSWORD, from("192.0.2.7"))).status, 200);
        entries++;
      }
    }
  };
  await Promise.all(Array.from({ length: 24 }, guess));
  assert.deepEqual(
    [...codes].sort(([a], [b]) => a.localeCompare(b)),
    [
      ["BAD_PASSWORD", 15],
      ["RATE_LIMITED", guesses - 15],
    ],
  );
  assert.equal(entries, guesses / 200);
  assert.equal(looks(), 15 + entries);
  const right = await signIn(console, PASSWORD, from("203.0.113.0"));
  assert.equal(right.problem?.code, "RATE_LIMITED", "the right password is not looked at either");
});

test("the built-in password is good on this machine alone, asked by a name of this machine (T10, W-02)", async (t) => {
  const password = await OperatorPassword.open({ env: {}, file: undefined });
  const console = await startTestConsole(t, { password, insecureHttp: true });
  const code = async (headers: Record<string, string>): Promise<unknown> => {
    const answer = await signIn(console, "admin", headers);
    return answer.problem?.code ?? answer.status;
  };
  assert.equal(await code({}), 200);
  assert.equal(await code({ host: "localhost:8080" }), 200);
  assert.equal(await code({ host: "[::1]:8080" }), 200);
  // A foreign host name that resolves to this machine, as in a DNS rebinding attack.
  assert.equal(
    await code({ host: "rebound.evil.example:8080", origin: "http://rebound.evil.example:8080" }),
    "DEFAULT_PASSWORD_REMOTE",
  );
  assert.equal(
    await code({ "x-forwarded-for": "203.0.113.9" }),
    "DEFAULT_PASSWORD_REMOTE",
    "a proxy nobody has named",
  );
  const refused = await signIn(console, "admin", { via: "1.1 proxy" });
  assert.match(refused.problem?.detail ?? "", /grove admin hash-password/);
  const status = (await console.ask("/api/auth/status")).json as { default_password: boolean };
  assert.equal(status.default_password, true);
});

test("over plain HTTP from another machine a password is not even looked at, unless that is allowed", async (t) => {
  const { password, looks } = await countedPassword(adminPasswordHash(PASSWORD));
  const trusting = { trustedProxies: ["127.0.0.1"], password };
  const strict = await startTestConsole(t, trusting);
  const plain = { "x-forwarded-for": "203.0.113.9", "x-forwarded-proto": "http" };
  assert.equal((await signIn(strict, PASSWORD, plain)).problem?.code, "LOGIN_NEEDS_TLS");
  assert.equal(looks(), 0);
  const behindTls = await signIn(strict, PASSWORD, { ...plain, "x-forwarded-proto": "https" });
  assert.equal(behindTls.status, 200);
  assert.match(behindTls.headers["set-cookie"]?.[0] ?? "", /; Secure;|; Secure$/);
  const lenient = await startTestConsole(t, { ...trusting, insecureHttp: true });
  assert.equal((await signIn(lenient, PASSWORD, plain)).status, 200);
});

test("a changed password ends every session when the file is read again; an unreadable one changes nothing (W-04)", async (t) => {
  const folder = scratchFolder("password-");
  const file = join(folder, "hash");
  await writeFile(file, adminPasswordHash(PASSWORD), { mode: 0o600 });
  const console = await startTestConsole(t, { password: await OperatorPassword.open({ env: {}, file }) });
  const headers = { authorization: `Bearer ${await console.signIn()}` };
  await console.console.reload();
  assert.equal((await console.ask("/api/users", { headers })).status, 200);
  await writeFile(file, "");
  await assert.rejects(console.console.reload());
  assert.equal((await console.ask("/api/users", { headers })).status, 200);
  await writeFile(file, adminPasswordHash("another password"));
  await console.console.reload();
  assert.equal((await console.ask("/api/users", { headers })).status, 401);
  assert.equal((await signIn(console, PASSWORD)).status, 401);
  assert.equal((await signIn(console, "another password")).status, 200);
});

test("who signs in, who fails and who signs out stands in the audit log, without password or token (D24)", async (t) => {
  const console = await startTestConsole(t);
  await signIn(console, "not the password");
  const token = await console.signIn();
  await console.ask("/api/auth/logout", { method: "POST", headers: { authorization: `Bearer ${token}` } });
  await console.console.stop();
  const [file] = await auditFiles(join(console.dataFolder, "audit"));
  const text = await readFile(file?.path ?? "", "utf8");
  const acts = text
    .trim()
    .split("\n")
    .map((line) => (JSON.parse(line) as { act: string }).act);
  assert.deepEqual(acts, ["operator.refused", "operator.open", "operator.close"]);
  for (const secret of [token, PASSWORD, "not the password", adminPasswordHash(PASSWORD)])
    assert.equal(text.includes(secret), false);
});

/** An authority with certificates for the console. */
async function httpsPairs(): Promise<{
  readonly authority: Authority;
  readonly of: (id: string) => Promise<{ cert: string; key: string }>;
}> {
  const folder = scratchFolder("https-");
  const authority = await loadOrCreateAuthority(join(folder, "ca"), { clock: systemClock });
  const of = async (id: string): Promise<{ cert: string; key: string }> => {
    const requested = { id, names: ["localhost"], addresses: ["127.0.0.1"] };
    const files = await ensureNodeCertificate(authority, join(folder, id), requested, systemClock);
    return {
      cert: await readFile(files.certificatePath, "utf8"),
      key: await readFile(files.keyPath, "utf8"),
    };
  };
  return { authority, of };
}

test("over HTTPS the cookie is Secure, and the certificate can be changed under way (W-05)", async (t) => {
  const { authority, of: pairOf } = await httpsPairs();
  const { options, ends } = await testConsoleOptions(t);
  const console = await startConsole({ ...options, tls: await pairOf("first") });
  ends.push(() => console.stop());
  assert.match(console.url, /^https:/);
  const first = await askTls(console.address.port, authority.certificatePem);
  assert.equal(first.status, 200);
  assert.match(
    first.cookie,
    /^svc_admin_token=[0-9a-f]{64}; Max-Age=43200; Path=\/; HttpOnly; Secure; SameSite=Lax$/,
  );
  assert.equal(first.hsts, "max-age=31536000");
  assert.match(first.subject, /first/);
  console.useCertificate(await pairOf("second"));
  assert.match((await askTls(console.address.port, authority.certificatePem)).subject, /second/);
});

test("over HTTPS of TLS 1.2 nothing but authenticated encryption with forward secrecy is taken, with a new certificate too", async (t) => {
  const { options, ends } = await testConsoleOptions(t);
  const pair = await (await httpsPairs()).of("first");
  const console = await startConsole({ ...options, tls: pair });
  ends.push(() => console.stop());
  const { port } = console.address;
  for (const look of ["made", "reloaded"]) {
    assert.deepEqual(
      await suitesOfTls12(port),
      ["ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-ECDSA-CHACHA20-POLY1305", "ECDHE-ECDSA-AES128-GCM-SHA256"],
      look,
    );
    const curves = { maxVersion: "TLSv1.2", ecdhCurve: "prime256v1:X25519" } as const;
    assert.equal((await agreeOn(port, curves))?.group, "X25519");
    assert.equal(await renegotiates(port), false, look);
    console.useCertificate(pair);
  }
});

interface TlsAnswer {
  readonly status: number | undefined;
  readonly cookie: string;
  readonly hsts: string | undefined;
  readonly subject: string;
}

function askTls(port: number, ca: string): Promise<TlsAnswer> {
  const { promise, resolve, reject } = Promise.withResolvers<TlsAnswer>();
  const options = {
    host: "127.0.0.1",
    port,
    ca,
    path: "/api/auth/login",
    method: "POST",
    agent: false,
    headers: { "content-type": "application/json" },
  };
  const request = httpsRequest(options, (response) => {
    const peer = (response.socket as TLSSocket).getPeerCertificate();
    response.resume();
    resolve({
      status: response.statusCode,
      cookie: response.headers["set-cookie"]?.[0] ?? "",
      hsts: response.headers["strict-transport-security"],
      subject: `${peer.subjectaltname} ${JSON.stringify(peer.subject)}`,
    });
  });
  request.on("error", reject);
  request.end(JSON.stringify({ password: PASSWORD }));
  return promise;
}

test("an operator sees who is signed in, and signs everybody out at once; a visitor can do neither", async (t) => {
  const console = await startTestConsole(t);
  const [first, second] = [await console.signIn(), await console.signIn()];
  const as = (token: string): Record<string, string> => ({ authorization: `Bearer ${token}` });
  const listed = (await console.ask("/api/auth/sessions", { headers: as(first) })).json as {
    sessions: { id: string; address: string; is_own: boolean }[];
  };
  assert.deepEqual(
    listed.sessions.map(({ address, is_own }) => [address, is_own]),
    [
      ["127.0.0.1", false],
      ["127.0.0.1", true],
    ],
  );
  assert.doesNotMatch(JSON.stringify(listed), new RegExp(`${first}|${second}`));
  assert.equal((await console.ask("/api/auth/logout-all", { method: "POST" })).status, 401);
  const foreign = { ...as(first), origin: "https://evil.example" };
  assert.equal((await console.ask("/api/auth/sessions", { headers: as(second) })).status, 200);
  const cookie = { cookie: `svc_admin_token=${first}`, origin: foreign.origin };
  assert.equal((await console.ask("/api/auth/logout-all", { method: "POST", headers: cookie })).status, 403);
  const out = await console.ask("/api/auth/logout-all", { method: "POST", headers: as(first) });
  assert.deepEqual([out.status, out.json], [200, { ended: 2 }]);
  for (const token of [first, second]) {
    assert.equal((await console.ask("/api/auth/sessions", { headers: as(token) })).status, 401);
  }
});

test("settings tell which MetaServers are watched and how they do", async (t) => {
  const console = await startTestConsole(t, { metaServers: [{ host: "127.0.0.1", port: 41_001 }] });
  const token = await console.signIn();
  const answer = await console.ask("/api/settings", { headers: { authorization: `Bearer ${token}` } });
  const { metaservers } = answer.json as { metaservers: { reason?: string }[] };
  const [{ reason = "", ...rest } = {}] = metaservers;
  assert.deepEqual(rest, { address: "127.0.0.1:41001", state: "late", last_seen: null });
  assert.notEqual(reason, "");
});

test("settings tell where the metadata store is and whether it answers, without its user or password", async (t) => {
  const place = storePlace("postgres://grove:geheim@db.example:5433/meta", {});
  assert.deepEqual(place, { kind: "postgres", place: "db.example:5433/meta" });
  const console = await startTestConsole(t, { store: place });
  const token = await console.signIn();
  const answer = await console.ask("/api/settings", { headers: { authorization: `Bearer ${token}` } });
  const { store } = answer.json as { store: { kind: string; place: string; state: string } };
  assert.deepEqual([store.kind, store.place], ["postgres", "db.example:5433/meta"]);
  assert.doesNotMatch(answer.text, /geheim|grove:/);
});
