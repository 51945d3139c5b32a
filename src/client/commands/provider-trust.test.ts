// Tests of sign-ins at a provider with a private authority: refused with a hint, accepted once named.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { type PrivateIssuer, startPrivateIssuer } from "#testing/private-issuer.ts";
import { makeTestClient, type TestClient, type VerbResult } from "./client.fixture.ts";
import { type FakeServer, startFakeServer } from "./fake-server.fixture.ts";

let client: TestClient;
let provider: PrivateIssuer;
let server: FakeServer;

beforeEach(async () => {
  client = await makeTestClient();
  provider = await startPrivateIssuer();
  server = await startFakeServer({});
  client.env["SVC_AUTH_MOCK"] = "1";
  client.env["IDP_ISSUER"] = provider.issuer;
  client.env["IDP_CLIENT_ID"] = "the-client";
});

afterEach(async () => {
  provider.stop();
  await server.stop();
  await client.stop();
});

const login = (...words: string[]): Promise<VerbResult> =>
  client.run(import("./login-command.ts"), ["--no-browser", "--fileserver", server.address, ...words], {
    stdin: "mock-jwt.eve@example.com\n",
  });

test("without its authority the sign-in ends with the flag that names it", async () => {
  const result = await login();
  assert.equal(result.code, 2);
  assert.match(
    result.err,
    /authority that this machine does not know: name that one once with 'grove login --idp-ca FILE'/,
  );
});

test("with --idp-ca the provider is believed, and later sign-ins remember it", async () => {
  const first = await login("--idp-ca", provider.caFile);
  assert.equal(first.code, 0, first.err);
  assert.match(first.err, /https:\/\/127\.0\.0\.1:\d+\/auth\?.*code_challenge=/);
  const again = await login();
  assert.equal(again.code, 0, again.err);
});

test("another authority than the provider's is not believed, and a file without a certificate is refused as such", async () => {
  const other = await startPrivateIssuer();
  try {
    assert.match((await login("--idp-ca", other.caFile)).err, /grove login --idp-ca FILE/);
  } finally {
    other.stop();
  }
  const empty = join(client.folder, "empty.pem");
  writeFileSync(empty, "not a certificate\n");
  const refused = await login("--idp-ca", empty);
  assert.equal(refused.code, 1);
  assert.match(refused.err, /empty\.pem: holds no certificate in PEM form/);
});
