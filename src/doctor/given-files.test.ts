// Tests of the files that the doctor is given: the services' variables, and the cluster file of a demonstration.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { makeTestClient, type TestClient } from "#client/commands/client.fixture.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";

let client: TestClient;

beforeEach(async () => {
  client = await makeTestClient();
});

afterEach(() => client.stop());

test("a remark behind a value is part of it, as for the services: the doctor does not take the value for sound", async () => {
  const path = join(scratchFolder("doctor-"), "fileserver.env");
  writeFileSync(path, "SVC_AUTH_MOCK=1 # for today\nIDP_CLIENT_ID=grove\n");
  const words = ["--json", "--meta", "sqlite:/nonexistent", "--env-file", path];
  const { out } = await client.run(import("./command.ts"), words);
  const { checks } = JSON.parse(out) as { checks: { name: string; what: string }[] };
  const mock = checks.find(({ name }) => name === "SVC_AUTH_MOCK");
  assert.doesNotMatch(mock?.what ?? "mock sign-in is on", /mock sign-in is on/);
});

test("the cluster file that people sign in with is refused, and is not called one without TLS", async () => {
  const path = join(scratchFolder("doctor-"), "cluster.json");
  // As 'grove init' writes it.
  writeFileSync(
    path,
    '{"metaserver":"n1.example.net:50050","ca_pem":"-----BEGIN CERTIFICATE-----","mock":false}',
  );
  const { code, out, err } = await client.run(import("./command.ts"), ["--cluster", path]);
  assert.equal(code, 1);
  assert.equal(out, "");
  assert.match(err, /not the cluster file of a 'grove up': it names no nodes/);
  assert.match(err, /-data FOLDER/);
});
