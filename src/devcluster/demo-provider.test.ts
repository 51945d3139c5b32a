// Drives the demonstration's identity provider over HTTP, from the consent address to the ID token.
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import type { Server } from "node:http";
import { type TestContext, test } from "node:test";
import { setTimeout } from "node:timers/promises";
import * as oauth from "oauth4webapi";
import { systemClock } from "#base/clock.ts";
import { isGroveError } from "#base/errors.ts";
import { silentLogger } from "#base/log.ts";
import { createTokenVerifier } from "#security/identity/token-verifier.ts";
import { freePort } from "#testing/free-ports.ts";
import { createDemoProvider } from "./demo-provider.ts";
import { issuerOf, makeProviderKeys, type ProviderSettings } from "./provider-settings.ts";

const TIMEOUT = { timeout: 60_000 };
const REDIRECT = "http://localhost:38485/logincallback";
const CLIENT: oauth.Client = { client_id: "grove" };
// oxlint-disable-next-line typescript/no-deprecated -- the mark of a provider that is reached without leaving this machine
const INSECURE = { [oauth.allowInsecureRequests]: true };
const keys = await makeProviderKeys();

interface Provider {
  readonly issuer: string;
  readonly settings: ProviderSettings;
  readonly server: Server;
}

async function startProvider(t: TestContext, facts: Partial<ProviderSettings> = {}): Promise<Provider> {
  const settings: ProviderSettings = {
    // A new port each time, since fetch keeps connections, also to a provider that has gone.
    port: await freePort(),
    clientId: "grove",
    redirectUris: [REDIRECT, "http://127.0.0.1:38485/logincallback"],
    ...keys,
    users: [
      { email: "alice@example.com", name: "Alice", password: "alice's password" },
      { email: "bob@example.com", name: "Bob", password: "bob's password" },
    ],
    ...facts,
  };
  const server = createDemoProvider({ settings, clock: systemClock, log: silentLogger });
  server.listen(settings.port, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return { issuer: issuerOf(settings.port), settings, server };
}

/** A minimal browser for sign-ins: cookies by path, forms, redirects until they leave the provider. */
class Browser {
  readonly #cookies = new Map<string, { value: string; path: string }>();
  readonly #issuer: string;
  url = "";
  status = 0;
  html = "";
  headers: Headers = new Headers();

  constructor(issuer: string) {
    this.#issuer = issuer;
  }

  async open(target: string, init: { method?: string; body?: URLSearchParams } = {}): Promise<void> {
    this.url = new URL(target, this.url === "" ? this.#issuer : this.url).href;
    if (!this.url.startsWith(this.#issuer)) return;
    const { pathname } = new URL(this.url);
    const cookie = [...this.#cookies]
      .filter(([, { path }]) => pathname.startsWith(path))
      .map(([name, { value }]) => `${name}=${value}`)
      .join("; ");
    const answer = await fetch(this.url, {
      ...init,
      redirect: "manual",
      headers: { cookie },
    });
    for (const line of answer.headers.getSetCookie()) this.#keep(line);
    this.status = answer.status;
    this.headers = answer.headers;
    this.html = await answer.text();
    const location = answer.headers.get("location");
    if (location !== null) await this.open(location);
  }

  submit(fields: Record<string, string>): Promise<void> {
    assert.match(this.html, /<form method="post">/);
    return this.open(this.url, { method: "POST", body: new URLSearchParams(fields) });
  }

  #keep(line: string): void {
    const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
    const path = /;\s*path=([^;]+)/i.exec(line)?.[1] ?? "/";
    assert.match(line, /httponly/i);
    if (value === "") this.#cookies.delete(name);
    else this.#cookies.set(name, { value, path });
  }
}

interface Attempt {
  readonly server: oauth.AuthorizationServer;
  readonly verifier: string;
  readonly state: string;
  readonly redirect: string;
  readonly url: URL;
}

async function begin(issuer: string, redirect = REDIRECT): Promise<Attempt> {
  const base = new URL(issuer);
  const found = await oauth.discoveryRequest(base, INSECURE);
  const server = await oauth.processDiscoveryResponse(base, found);
  const verifier = randomBytes(32).toString("base64url");
  const state = randomBytes(16).toString("base64url");
  const url = new URL(server.authorization_endpoint ?? "");
  for (const [name, value] of Object.entries({
    client_id: "grove",
    redirect_uri: redirect,
    response_type: "code",
    scope: "openid email profile",
    code_challenge: createHash("sha256").update(verifier).digest("base64url"),
    code_challenge_method: "S256",
    state,
  })) {
    url.searchParams.set(name, value);
  }
  return { server, verifier, state, redirect, url };
}

async function exchange(
  attempt: Attempt,
  callback: string,
  verifier = attempt.verifier,
): Promise<oauth.TokenEndpointResponse> {
  const parameters = oauth.validateAuthResponse(attempt.server, CLIENT, new URL(callback), attempt.state);
  const answer = await oauth.authorizationCodeGrantRequest(
    attempt.server,
    CLIENT,
    oauth.None(),
    parameters,
    attempt.redirect,
    verifier,
    INSECURE,
  );
  return oauth.processAuthorizationCodeResponse(attempt.server, CLIENT, answer, { requireIdToken: true });
}

async function signIn(browser: Browser, attempt: Attempt, email: string, password: string): Promise<string> {
  await browser.open(attempt.url.href);
  assert.match(browser.html, /Sign in to Grove/);
  await browser.submit({ action: "login", email, password });
  assert.match(browser.html, /Let Grove sign you in/);
  await browser.submit({ action: "consent" });
  assert.ok(browser.url.startsWith(attempt.redirect), browser.url);
  const { id_token: token } = await exchange(attempt, browser.url);
  return token ?? "";
}

test(
  "a person signs in by password and consent, and the client gets an ID token with the e-mail address (spec 5.1)",
  TIMEOUT,
  async (t) => {
    const { issuer } = await startProvider(t);
    const attempt = await begin(issuer);
    const token = await signIn(new Browser(issuer), attempt, "Alice@example.com", "alice's password");
    const answer = await fetch(`${issuer}/tokeninfo?id_token=${token}`);
    assert.equal(answer.status, 200);
    const claims = (await answer.json()) as Record<string, unknown>;
    const { exp, iat, sub, ...rest } = claims;
    assert.deepEqual(rest, {
      iss: issuer,
      aud: "grove",
      email: "alice@example.com",
      email_verified: true,
      name: "Alice",
    });
    assert.equal(Number(exp) - Number(iat), 3_600);
    assert.match(String(sub), /^[0-9a-f]{24}$/);
    // Both ways in which a FileServer may check it (spec 5.2, D21).
    const deps = { clientId: "grove", mock: false, clock: systemClock };
    for (const where of [{ issuer }, { tokeninfoUrl: `${issuer}/tokeninfo` }]) {
      const { identity } = await createTokenVerifier({ ...deps, ...where }).verify(token);
      assert.equal(identity.username, "alice@example.com");
    }
  },
);

test(
  "tokeninfo answers 400 for everything that it has not signed, or that has run out",
  TIMEOUT,
  async (t) => {
    const { issuer } = await startProvider(t);
    const token = await signIn(new Browser(issuer), await begin(issuer), "bob@example.com", "bob's password");
    const [head = "", body = "", signature = ""] = token.split(".");
    const forged = Buffer.from(
      JSON.stringify({
        ...JSON.parse(Buffer.from(body, "base64url").toString()),
        email: "alice@example.com",
      }),
    ).toString("base64url");
    const none = Buffer.from('{"alg":"none"}').toString("base64url");
    for (const bad of [
      "",
      "x",
      `${head}.${forged}.${signature}`,
      `${none}.${body}.`,
      `${none}.${body}.${signature}`,
      `${head}.${body}`,
    ]) {
      const answer = await fetch(`${issuer}/tokeninfo?id_token=${bad}`);
      assert.equal(answer.status, 400, bad);
      assert.equal(((await answer.json()) as { error: string }).error, "invalid_token");
    }
  },
);

test("any loopback port may be the way back, and no other host", TIMEOUT, async (t) => {
  const { issuer } = await startProvider(t);
  for (const redirect of ["http://127.0.0.1:40123/logincallback", "http://localhost:40123/logincallback"]) {
    await signIn(new Browser(issuer), await begin(issuer, redirect), "bob@example.com", "bob's password");
  }
  for (const redirect of ["http://example.com/logincallback", "http://127.0.0.1:38485/elsewhere"]) {
    const browser = new Browser(issuer);
    await browser.open((await begin(issuer, redirect)).url.href);
    assert.equal(browser.status, 400);
    assert.match(browser.html, /invalid_redirect_uri/);
    assert.equal(browser.headers.get("location"), null);
  }
});

test("PKCE is required and checked (spec 5.1)", TIMEOUT, async (t) => {
  const { issuer } = await startProvider(t);
  const without = await begin(issuer);
  without.url.searchParams.delete("code_challenge");
  without.url.searchParams.delete("code_challenge_method");
  const browser = new Browser(issuer);
  await browser.open(without.url.href);
  assert.match(browser.url, /error=invalid_request/);

  const attempt = await begin(issuer);
  await browser.open(attempt.url.href);
  await browser.submit({ action: "login", email: "bob@example.com", password: "bob's password" });
  await browser.submit({ action: "consent" });
  const wrong = randomBytes(32).toString("base64url");
  await assert.rejects(
    exchange(attempt, browser.url, wrong),
    (error) => error instanceof oauth.ResponseBodyError && error.error === "invalid_grant",
  );
});

test(
  "a wrong password, another's password and an unknown user get the same page; many are slowed down",
  TIMEOUT,
  async (t) => {
    const { issuer } = await startProvider(t);
    const attempt = await begin(issuer);
    const browser = new Browser(issuer);
    await browser.open(attempt.url.href);
    for (const [email, password] of [
      ["alice@example.com", "wrong"],
      ["alice@example.com", "bob's password"],
      ["mallory@example.com", ""],
      ['"><script>alert(1)</script>', "x"],
    ] as const) {
      await browser.submit({ action: "login", email, password });
      assert.equal(browser.status, 403);
      assert.match(browser.html, /not the e-mail address and password/);
      assert.doesNotMatch(browser.html, /<script/);
    }
    for (let attempts = 0; attempts < 20; attempts++) {
      await browser.submit({ action: "login", email: "alice@example.com", password: "wrong" });
    }
    await browser.submit({ action: "login", email: "alice@example.com", password: "alice's password" });
    assert.equal(browser.status, 429);
    await browser.submit({ action: "login", email: "bob@example.com", password: "bob's password" });
    assert.match(browser.html, /Let Grove sign you in/);
  },
);

test(
  "somebody who is signed in is asked for consent only, and may change to another account",
  TIMEOUT,
  async (t) => {
    const { issuer } = await startProvider(t);
    const browser = new Browser(issuer);
    await signIn(browser, await begin(issuer), "alice@example.com", "alice's password");
    const attempt = await begin(issuer);
    await browser.open(attempt.url.href);
    assert.match(browser.html, /You are <strong>alice@example.com/);
    await browser.submit({ action: "other" });
    assert.match(browser.html, /Sign in to Grove/);
    await browser.submit({ action: "login", email: "bob@example.com", password: "bob's password" });
    assert.match(browser.html, /You are <strong>bob@example.com/);
    await browser.submit({ action: "consent" });
    const token = (await exchange(attempt, browser.url)).id_token ?? "";
    const claims = (await (await fetch(`${issuer}/tokeninfo?id_token=${token}`)).json()) as { email: string };
    assert.equal(claims.email, "bob@example.com");
  },
);

test(
  "a cancelled sign-in tells the client so, and one that is over says so to the person",
  TIMEOUT,
  async (t) => {
    const { issuer } = await startProvider(t);
    const browser = new Browser(issuer);
    const attempt = await begin(issuer);
    await browser.open(attempt.url.href);
    const page = browser.url;
    await browser.submit({ action: "consent" });
    assert.equal(browser.status, 400);
    await browser.open(page);
    await browser.submit({ action: "cancel" });
    assert.match(browser.url, /error=access_denied/);
    await browser.open(`${issuer}/sign-in/nothing`);
    assert.equal(browser.status, 400);
    assert.match(browser.html, /Please start again/);
  },
);

test("pages ask nobody else for anything and are kept nowhere", TIMEOUT, async (t) => {
  const { issuer } = await startProvider(t);
  const browser = new Browser(issuer);
  await browser.open((await begin(issuer)).url.href);
  assert.doesNotMatch(browser.html, /(?:src|href)=|url\(|@import|<script/);
  assert.match(browser.headers.get("content-security-policy") ?? "", /default-src 'none'/);
  assert.equal(browser.headers.get("cache-control"), "no-store");
});

test("after a restart with the same file, tokens given out before are still good", TIMEOUT, async (t) => {
  const first = await startProvider(t);
  const token = await signIn(
    new Browser(first.issuer),
    await begin(first.issuer),
    "bob@example.com",
    "bob's password",
  );
  first.server.close();
  first.server.closeAllConnections();
  await once(first.server, "close");
  await setTimeout(100);
  const { issuer } = await startProvider(t, { port: first.settings.port });
  assert.equal((await fetch(`${issuer}/tokeninfo?id_token=${token}`)).status, 200);
  const { identity } = await createTokenVerifier({
    clientId: "grove",
    mock: false,
    clock: systemClock,
    issuer,
  }).verify(token);
  assert.equal(identity.username, "bob@example.com");
  const other = createTokenVerifier({ clientId: "another", mock: false, clock: systemClock, issuer });
  await assert.rejects(other.verify(token), (error) => isGroveError(error, "TOKEN_REJECTED"));
});
