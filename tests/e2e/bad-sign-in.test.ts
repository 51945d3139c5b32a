// Tests of failing sign-ins: forbidden mock tokens, no client id, foreign or expired tokens.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { RegisterClientRequestSchema } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { type StartedNode, startNode, stopProgram } from "./processes.ts";
import { bytes, STATUS } from "./two-users.ts";
import { type Answer, Wire } from "./wire.ts";

const CLIENT_ID = "grove-test";
const mock = (claims: object): string =>
  `mock-jwt.${Buffer.from(JSON.stringify(claims)).toString("base64url")}`;

/** A tokeninfo address with one set of claims for each token, which records the tokens of its requests. */
async function tokeninfo(t: TestContext, claims: Readonly<Record<string, object>>) {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    const token = new URL(request.url ?? "", "http://localhost").searchParams.get("id_token") ?? "";
    asked.push(token);
    const found = claims[token];
    response.writeHead(found === undefined ? 400 : 200, { "content-type": "application/json" });
    response.end(JSON.stringify(found ?? { error: "invalid_token" }));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return { asked, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/tokeninfo` };
}

async function started(
  t: TestContext,
  env: Record<string, string>,
): Promise<{ node: StartedNode; register(token: string): Promise<Answer> }> {
  const node = await startNode({ data: scratchFolder("grove-e2e-"), env });
  t.after(() => stopProgram(node, "SIGKILL"));
  const wire = await Wire.connect(node.address);
  t.after(() => wire.close());
  const request = bytes(RegisterClientRequestSchema, { clientId: "test" });
  return { node, register: (token) => wire.call("RegisterClient", [request], { token }) };
}

const securityEvents = async (node: StartedNode): Promise<string> =>
  (await fetch(`${node.metricsUrl}/security-events`)).text();

const users = async (node: StartedNode): Promise<unknown> => {
  const metrics = (await (await fetch(`${node.metricsUrl}/metrics`)).json()) as Record<string, unknown>;
  return [metrics["users_assigned_count"], metrics["active_users"], metrics["per_user_storage"]];
};

test("outside mock mode a mock token is refused with a fatal security event, and the provider hears nothing (spec 5.7)", async (t) => {
  const provider = await tokeninfo(t, {});
  const { node, register } = await started(t, {
    IDP_CLIENT_ID: CLIENT_ID,
    IDP_TOKENINFO_URL: provider.url,
    SVC_AUTH_MOCK: "yes",
  });
  for (const token of [
    "mock-jwt.admin@example.com",
    "MOCK-JWT.admin@example.com",
    mock({ email: "admin@example.com", aud: CLIENT_ID }),
    "mock-jwt.",
  ]) {
    const { code, reason, message } = await register(token);
    assert.deepEqual([code, reason], [STATUS.unauthenticated, "MOCK_TOKEN"], token);
    assert.ok(!message.includes("admin"), message);
  }
  const events = await securityEvents(node);
  assert.match(events, /"type":"mock_token","fatal":true/);
  assert.ok(!/mock-jwt|admin@/i.test(events + node.output()), events);
  assert.deepEqual(provider.asked, []);
  assert.deepEqual(await users(node), [0, 0, {}]);
});

test("without a client id every sign-in fails before anybody is asked (spec 5.2)", async (t) => {
  const provider = await tokeninfo(t, { good: { aud: "", email: "eve@example.com", email_verified: true } });
  const { node, register } = await started(t, { IDP_TOKENINFO_URL: provider.url });
  for (const token of ["good", "header.payload.signature"]) {
    const { code, reason } = await register(token);
    assert.deepEqual([code, reason], [STATUS.failedPrecondition, "CLIENT_ID_UNSET"]);
  }
  assert.deepEqual(provider.asked, []);
  assert.deepEqual(await users(node), [0, 0, {}]);
});

test("an ID token for another program, of an unverified or no address, or past its end opens nothing (spec 5.2)", async (t) => {
  const now = Math.floor(Date.now() / 1_000);
  const good = {
    aud: CLIENT_ID,
    email: "Alice@Example.com",
    email_verified: "true",
    exp: now + 600,
    sub: "1",
  };
  const provider = await tokeninfo(t, {
    good,
    "other-audience": { ...good, aud: "another-program" },
    "audience-in-other-case": { ...good, aud: CLIENT_ID.toUpperCase() },
    "audience-begins-alike": { ...good, aud: `${CLIENT_ID}-2` },
    "two-audiences": { ...good, aud: [CLIENT_ID, "another-program"] },
    unverified: { ...good, email_verified: false },
    "unverified-text": { ...good, email_verified: "false" },
    "verified-one": { ...good, email_verified: 1 },
    stale: { ...good, exp: now - 600 },
    "no-address": { ...good, email: undefined },
    "hostile-address": { ...good, email: "a/../b@example.com" },
    "other-subject": { ...good, sub: "2" },
  });
  const { node, register } = await started(t, {
    IDP_CLIENT_ID: CLIENT_ID,
    IDP_TOKENINFO_URL: provider.url,
  });
  assert.equal((await register("good")).code, STATUS.ok);
  const before = await users(node);
  for (const token of [
    "unknown",
    "other-audience",
    "audience-in-other-case",
    "audience-begins-alike",
    "two-audiences",
    "unverified",
    "unverified-text",
    "verified-one",
    "stale",
    "no-address",
    "hostile-address",
    "other-subject",
    "",
    "two words",
    "x".repeat(7_000),
  ]) {
    const { code, reason, message } = await register(token);
    assert.deepEqual([code, reason], [STATUS.unauthenticated, "TOKEN_REJECTED"], `${token}: ${message}`);
  }
  assert.deepEqual(await users(node), before);
  assert.deepEqual(Object.keys((before as [number, number, object])[2]), ["alice@example.com"]);
  // A verified token is remembered: the provider is not asked again.
  const count = provider.asked.length;
  assert.equal((await register("good")).code, STATUS.ok);
  assert.equal(provider.asked.length, count);
});
