// Tests of staged sign-ins: a failure changes nothing, and the route works without the metaserver.
import assert from "node:assert/strict";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { GrpcServer } from "#wire/grpc/server.ts";
import { MetaServer } from "#wire/proto/gen/grove/v1/meta_server_pb.ts";
import { makeTestClient, type TestClient, type VerbResult } from "./client.fixture.ts";
import { type FakeServer, folderAttr, refusal, startFakeServer } from "./fake-server.fixture.ts";

let client: TestClient;
let server: FakeServer;
let meta: GrpcServer;
let metaAddress: string;
/** The error that RegisterClient answers instead of a session. */
let refused: Error | undefined;
/** Session tokens of ended sessions. */
let ended: string[];
/** Session tokens that new ones were to replace. */
let replaced: string[];

beforeEach(async () => {
  client = await makeTestClient();
  client.env["GROVE_RETRY_SECONDS"] = "0";
  refused = undefined;
  ended = [];
  replaced = [];
  server = await startFakeServer({
    registerClient: (request, context) => {
      if (refused !== undefined) throw refused;
      replaced.push(request.replacedSessionToken);
      const idToken = context.metadata.get("authorization") ?? "";
      server.registrations.push(idToken);
      const sessionToken = `sst_${"x".repeat(40)}${server.registrations.length}`;
      server.sessions.add(`Bearer ${sessionToken}`);
      const expiresAt = BigInt(Math.trunc(Date.now() / 1_000) + 43_200);
      return { sessionToken, expiresAt, username: idToken.replace("Bearer mock-jwt.", ""), rootId: "r" };
    },
    endSession: (_request, context) => {
      const token = context.metadata.get("authorization") ?? "";
      ended.push(token);
      server.sessions.delete(token);
      return { ended: 1 };
    },
    getAttr: () => folderAttr(""),
  });
  meta = new GrpcServer();
  meta.addService(MetaServer, {
    navigate: () => ({ fsId: "n1", address: server.address, rootId: "r", path: "/", ttlSeconds: 43_200 }),
  });
  const { port } = await meta.listen({ host: "127.0.0.1", port: 0 });
  metaAddress = `127.0.0.1:${port}`;
  assert.equal((await login("alice@example.com")).code, 0);
});

afterEach(async () => {
  await meta.close();
  await server.stop();
  await client.stop();
});

const login = (user: string): Promise<VerbResult> =>
  client.run(import("./login-command.ts"), ["--metaserver", metaAddress, "--mock", user]);

/** Every file that a sign-in leaves, with its content. */
function left(): Record<string, string> {
  const names = readdirSync(client.config, { recursive: true, encoding: "utf8" }).filter((name) =>
    name.endsWith(".json"),
  );
  return Object.fromEntries(names.map((name) => [name, readFileSync(join(client.config, name), "utf8")]));
}

async function requireSignedIn(): Promise<void> {
  const shown = await client.run(import("./whoami-command.ts"), ["--json"]);
  assert.equal(shown.code, 0, shown.err);
  const { username, reached } = JSON.parse(shown.out) as Record<string, unknown>;
  assert.deepEqual({ username, reached }, { username: "alice@example.com", reached: true });
}

for (const [reason, exit] of [
  ["TOKEN_REJECTED", 2],
  ["IDP_UNAVAILABLE", 7],
  ["STORE_UNAVAILABLE", 7],
] as const) {
  test(`a sign-in that ends with ${reason} leaves the session before it in use`, async () => {
    const before = left();
    refused = refusal(exit === 2 ? 16 : 14, reason);
    assert.equal((await login("alice@example.com")).code, exit);
    assert.equal((await login("bob@example.com")).code, exit);
    assert.deepEqual(left(), before);
    assert.deepEqual(ended, []);
    await requireSignedIn();
  });
}

test("a sign-in that stands ends the session before it, and that one alone", async () => {
  const [first] = server.sessions;
  assert.equal((await login("alice@example.com")).code, 0);
  assert.deepEqual(ended, [first]);
  await requireSignedIn();
});

test("the server is told which session gives way, of the same user alone", async () => {
  const [first = ""] = server.sessions;
  assert.equal((await login("alice@example.com")).code, 0);
  assert.equal((await login("bob@example.com")).code, 0);
  assert.deepEqual(replaced, ["", first.replace("Bearer ", ""), ""]);
});

test("while no metaserver answers, who was signed in before signs in at the server that had the files, however long ago", async () => {
  const path = join(client.config, "routes.json");
  writeFileSync(path, readFileSync(path, "utf8").replace(/"expires_at_ms": \d+/, '"expires_at_ms": 1'), {
    mode: 0o600,
  });
  await meta.close();
  const again = await login("alice@example.com");
  assert.equal(again.code, 0, again.err);
  assert.equal(server.registrations.length, 2);
  await requireSignedIn();
});

test("the server that had the files is known by its session too, when the way is not", async () => {
  writeFileSync(join(client.config, "routes.json"), "{}", { mode: 0o600 });
  await meta.close();
  assert.equal((await login("alice@example.com")).code, 0);
});

test("while no metaserver answers, another user is not sent to where somebody else's files are", async () => {
  await meta.close();
  const asked = server.registrations.length;
  const other = await login("bob@example.com");
  assert.equal(other.code, 7);
  assert.equal(server.registrations.length, asked);
  await requireSignedIn();
});
