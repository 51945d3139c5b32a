// Tests of `grove login` with a provider and a FileServer: PKCE, pasting, stored files (spec 5.1, C-08).
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { systemRandom } from "#base/random.ts";
import { startSignIn } from "#client/signin/code-exchange.ts";
import { readClaims } from "#client/signin/id-token.ts";
import { makeTestClient, type TestClient, type VerbResult } from "./client.fixture.ts";
import { type FakeServer, startFakeServer } from "./fake-server.fixture.ts";

/** A small identity provider: remembers a code's challenge and nonce, checks the verifier, makes a token. */
interface FakeProvider {
  readonly issuer: string;
  readonly server: Server;
  /**
   * Grants a code for a consent address, as the provider's page would, and returns the redirect's address.
   */
  consent(url: string): URL;
  /** Changes the claims of the next token. */
  claims: Record<string, unknown>;
  tokenRequests: URLSearchParams[];
}

async function startProvider(): Promise<FakeProvider> {
  const grants = new Map<string, URLSearchParams>();
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (piece: Buffer) => {
      body += piece.toString();
    });
    request.on("end", () => {
      const form = new URLSearchParams(body);
      provider.tokenRequests.push(form);
      const grant = grants.get(form.get("code") ?? "");
      const challenge = createHash("sha256")
        .update(form.get("code_verifier") ?? "")
        .digest("base64url");
      response.setHeader("content-type", "application/json");
      if (grant?.get("code_challenge") !== challenge) {
        response.statusCode = 400;
        response.end('{"error":"invalid_grant"}');
        return;
      }
      const now = Math.trunc(Date.now() / 1_000);
      const claims = {
        iss: provider.issuer,
        aud: "the-client",
        sub: "1",
        email: "Alice@Example.com",
        iat: now,
        exp: now + 3_600,
        nonce: grant.get("nonce"),
        ...provider.claims,
      };
      const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");
      const token = `${part({ alg: "RS256" })}.${part(claims)}.c2ln`;
      response.end(JSON.stringify({ access_token: "a", token_type: "Bearer", id_token: token }));
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const provider: FakeProvider = {
    issuer,
    server,
    claims: {},
    tokenRequests: [],
    consent(text) {
      const parameters = new URL(text).searchParams;
      const code = `code-${grants.size}`;
      grants.set(code, parameters);
      const back = new URL(parameters.get("redirect_uri") ?? "");
      back.searchParams.set("code", code);
      back.searchParams.set("state", parameters.get("state") ?? "");
      return back;
    },
  };
  return provider;
}

let client: TestClient;
let provider: FakeProvider;
let server: FakeServer;

beforeEach(async () => {
  client = await makeTestClient();
  provider = await startProvider();
  server = await startFakeServer({});
  writeFileSync(
    join(client.folder, "cluster.json"),
    JSON.stringify({
      metaserver: "127.0.0.1:1",
      mock: true,
      idp: {
        issuer: provider.issuer,
        client_id: "the-client",
        auth_url: `${provider.issuer}/auth`,
        token_url: `${provider.issuer}/token`,
      },
    }),
  );
});

afterEach(async () => {
  provider.server.close();
  await server.stop();
  await client.stop();
});

function start(
  over: { clientSecret?: string; issuer?: string | undefined } = {},
): ReturnType<typeof startSignIn> {
  return startSignIn({
    idp: {
      issuer: "issuer" in over ? over.issuer : provider.issuer,
      clientId: "the-client",
      authUrl: `${provider.issuer}/auth`,
      tokenUrl: `${provider.issuer}/token`,
    },
    clientSecret: over.clientSecret,
    redirectUri: "http://localhost:38485/logincallback",
    fetch,
    random: systemRandom,
    signal: new AbortController().signal,
  });
}

test("the consent address carries what spec 5.1.2 asks for, and a nonce (C-08)", async () => {
  const { consentUrl, state } = await start();
  const parameters = Object.fromEntries(new URL(consentUrl).searchParams);
  assert.equal(parameters["code_challenge_method"], "S256");
  assert.equal(parameters["response_type"], "code");
  assert.equal(parameters["scope"], "openid email profile");
  assert.equal(parameters["client_id"], "the-client");
  assert.equal(parameters["redirect_uri"], "http://localhost:38485/logincallback");
  assert.equal(parameters["state"], state);
  assert.match(parameters["code_challenge"] ?? "", /^[\w-]{43}$/);
  assert.match(parameters["nonce"] ?? "", /^[\w-]{43}$/);
  assert.notEqual((await start()).state, state);
});

test("a code is exchanged with its verifier for an ID token (spec 5.1.5)", async () => {
  const { consentUrl, exchange } = await start({ clientSecret: "s3cret" });
  const token = await exchange(provider.consent(consentUrl));
  assert.equal(readClaims(token).email, "alice@example.com");
  assert.equal(provider.tokenRequests[0]?.get("client_secret"), "s3cret");
  assert.match(provider.tokenRequests[0]?.get("code_verifier") ?? "", /^[\w-]{43}$/);
});

test("with addresses alone, without an issuer, the exchange works too (D23)", async () => {
  const { consentUrl, exchange } = await start({ issuer: undefined });
  assert.equal(readClaims(await exchange(provider.consent(consentUrl))).email, "alice@example.com");
});

for (const [what, claims] of [
  ["another nonce", { nonce: "x" }],
  ["no nonce", { nonce: undefined }],
  ["another audience", { aud: "somebody-else" }],
  ["another issuer", { iss: "https://evil.example" }],
  ["an end in the past", { exp: 1_000 }],
] as const) {
  test(`an ID token with ${what} is refused (C-08, C-09)`, async () => {
    provider.claims = claims;
    const { consentUrl, exchange } = await start();
    await assert.rejects(exchange(provider.consent(consentUrl)), { code: "SIGN_IN_FAILED" });
  });
}

test("a callback with another state, or with another issuer, exchanges nothing (RFC 9207)", async () => {
  const { consentUrl, exchange } = await start();
  const wrongState = provider.consent(consentUrl);
  wrongState.searchParams.set("state", "x");
  await assert.rejects(exchange(wrongState), { code: "SIGN_IN_FAILED" });
  const wrongIssuer = provider.consent(consentUrl);
  wrongIssuer.searchParams.set("iss", "https://evil.example");
  await assert.rejects(exchange(wrongIssuer), { code: "SIGN_IN_FAILED" });
  assert.equal(provider.tokenRequests.length, 0);
});

test("the code is never sent over plain HTTP to another machine", async () => {
  const idp = {
    issuer: undefined,
    clientId: "c",
    authUrl: "https://x.example/a",
    tokenUrl: "http://x.example/t",
  };
  const rest = {
    clientSecret: undefined,
    fetch,
    random: systemRandom,
    signal: new AbortController().signal,
  };
  await assert.rejects(startSignIn({ idp, redirectUri: "http://localhost:38485/logincallback", ...rest }), {
    code: "SIGN_IN_FAILED",
  });
});

const login = (words: readonly string[], stdin = ""): Promise<VerbResult> =>
  client.run(import("./login-command.ts"), [...words, "--fileserver", server.address], { stdin });

test("login --cluster copies the settings into a profile, and later verbs read it (D23)", async () => {
  const result = await login(["--cluster", join(client.folder, "cluster.json"), "--mock", "bob@example.com"]);
  assert.equal(result.code, 0, result.err);
  assert.match(result.out, /^Signed in as bob@example\.com\.\n/);
  const profile = JSON.parse(readFileSync(join(client.config, "profile.json"), "utf8")) as Record<
    string,
    unknown
  >;
  assert.deepEqual(profile["metaservers"], ["127.0.0.1:1"]);
  assert.deepEqual(profile["idp"], {
    issuer: provider.issuer,
    client_id: "the-client",
    auth_url: `${provider.issuer}/auth`,
    token_url: `${provider.issuer}/token`,
  });
});

test("a token from standard input signs in and is never printed (D23)", async () => {
  const result = await login(
    ["--token-stdin", "--cluster", join(client.folder, "cluster.json")],
    "mock-jwt.eve@example.com\n",
  );
  assert.equal(result.code, 0, result.err);
  assert.deepEqual(server.registrations, ["Bearer mock-jwt.eve@example.com"]);
  assert.ok(!(result.out + result.err).includes("mock-jwt"));
});

test("what is no token is refused and not repeated", async () => {
  const result = await login(["--token-stdin"], "my password\n");
  assert.equal(result.code, 2);
  assert.ok(!result.err.includes("my password"));
});

test("--no-browser prints the address and takes a pasted one of the browser, for its own state only", async () => {
  const cluster = ["--cluster", join(client.folder, "cluster.json")];
  const result = await login(
    ["--no-browser", ...cluster],
    "http://localhost:38485/logincallback?code=c&state=x\n",
  );
  assert.equal(result.code, 2);
  assert.match(result.err, /does not belong to this sign-in/);
  assert.match(result.err, /http:\/\/127\.0\.0\.1:\d+\/auth\?.*code_challenge=/);
  assert.equal((await login(["--no-browser", ...cluster], "mock-jwt.eve@example.com\n")).code, 0);
});

test("a sign-in as another user ends the sessions of the one before", async () => {
  const cluster = ["--cluster", join(client.folder, "cluster.json")];
  await login([...cluster, "--mock", "alice@example.com"]);
  const result = await login([...cluster, "--mock", "bob@example.com"]);
  assert.equal(result.code, 0, result.err);
  const whoami = JSON.parse(
    readFileSync(join(client.config, "credentials", "identity.json"), "utf8"),
  ) as Record<string, unknown>;
  assert.equal(whoami["username"], "bob@example.com");
});

test("a real ID token is not sent over plain HTTP to another machine", async () => {
  const claims = Buffer.from(JSON.stringify({ email: "alice@example.com" })).toString("base64url");
  const result = await client.run(
    import("./login-command.ts"),
    ["--token-stdin", "--cluster", join(client.folder, "cluster.json"), "--metaserver", "192.0.2.1:50050"],
    { stdin: `e30.${claims}.c2ln\n` },
  );
  assert.equal(result.code, 1);
  assert.match(result.err, /not sent to 192\.0\.2\.1:50050, since the connection is not encrypted/);
});
