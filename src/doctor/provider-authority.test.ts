// Tests of the doctor's findings for a provider with a private authority, for clients and servers.
import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import { makeTestClient, type TestClient } from "#client/commands/client.fixture.ts";
import { type PrivateIssuer, startPrivateIssuer } from "#testing/private-issuer.ts";

let client: TestClient;
let provider: PrivateIssuer;

beforeEach(async () => {
  client = await makeTestClient();
  provider = await startPrivateIssuer();
  client.env["IDP_ISSUER"] = provider.issuer;
  client.env["IDP_CLIENT_ID"] = "the-client";
});

afterEach(async () => {
  provider.stop();
  await client.stop();
});

interface Said {
  readonly name: string;
  readonly state: string;
  readonly todo: string;
}

async function findings(...words: string[]): Promise<Said[]> {
  const { out, err } = await client.run(import("./command.ts"), ["--json", ...words]);
  assert.notEqual(out, "", err);
  return (JSON.parse(out) as { checks: Said[] }).checks;
}

for (const [whose, place, flag] of [
  ["a client", ["--metaserver", "127.0.0.1:1"], /grove login --idp-ca FILE/],
  ["a server", ["--meta", "sqlite:/nonexistent"], /start every server with -idp_ca FILE/],
] as const) {
  test(`the doctor of ${whose} names the flag for the provider's authority, and is content once it has it`, async () => {
    const without = (await findings(...place)).find(({ name }) => name === "identity provider");
    assert.equal(without?.state, "failed");
    assert.match(without.todo, flag);
    const found = await findings(...place, "--idp-ca", provider.caFile);
    const names = ["identity provider", "clock of the identity provider"];
    const states = names.map((wanted) => found.find(({ name }) => name === wanted)?.state);
    assert.deepEqual(states, ["ok", "ok"]);
  });
}
