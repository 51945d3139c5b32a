// Tests of a user whose subject at the provider changed, on a running and on a restarted node.
import assert from "node:assert/strict";
import { cp, rm } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { systemClock } from "#base/clock.ts";
import { startTestNode, type TestNode } from "#fileserver/process/node.fixture.ts";
import { startForTest } from "#metaserver/process/meta-server.fixture.ts";
import { answerAsIssuer, makeKey, signToken, startProvider } from "#security/identity/provider.fixture.ts";
import { freeGrpcPorts } from "#testing/free-ports.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { until } from "#testing/until.ts";
import { StatusError } from "#wire/framing/status.ts";

const CLIENT_ID = "client-1";
const ALICE = "alice@example.com";
const key = makeKey("ES256", "k");

/** The reason of a refusal, and the contact that it names; empty without one. */
async function outcome(call: Promise<unknown>): Promise<string> {
  try {
    await call;
    return "";
  } catch (error) {
    assert.ok(error instanceof StatusError, String(error));
    return error.metadata.get("svc-reason") ?? String(error);
  }
}

async function bench(t: TestContext) {
  const provider = await startProvider();
  t.after(() => provider.stop());
  answerAsIssuer(provider, key);
  const meta = await startForTest(t);
  const dataFolder = scratchFolder("grove-rebound-");
  const env = {
    IDP_ISSUER: provider.origin,
    IDP_CLIENT_ID: CLIENT_ID,
    SVC_ADMIN_EMAIL: "root@example.com",
  };
  const [port = 0] = await freeGrpcPorts(1);
  const start = (): Promise<TestNode> =>
    startTestNode({
      dataFolder,
      env,
      options: { listen: { host: "127.0.0.1", port }, metaservers: [`127.0.0.1:${meta.port}`] },
    });
  const tokenOf = (sub: string): string => {
    const nowS = Math.floor(systemClock.wallMs() / 1_000);
    const claims = { iss: provider.origin, aud: CLIENT_ID, sub, email: ALICE, email_verified: true };
    return signToken(key, { ...claims, iat: nowS, exp: nowS + 3_600 });
  };
  const register = (node: TestNode, sub: string): ReturnType<TestNode["anonymous"]["registerClient"]> =>
    node.anonymous.registerClient(
      { clientId: "c" },
      { metadata: { authorization: `Bearer ${tokenOf(sub)}` } },
    );
  return { meta, dataFolder, issuer: provider.origin, start, register };
}

test("an operator's word ends the sessions, shuts the old account out and lets the new one in; a node that comes back does not undo it", {
  timeout: 120_000,
}, async (t) => {
  const { meta, dataFolder, issuer, start, register } = await bench(t);
  let node = await start();
  // One after the other: a running node still writes into its folder.
  t.after(() => node.stop());
  const { sessionToken } = await register(node, "old");
  const look = (): Promise<unknown> =>
    node.anonymous.getAttr({ path: "/" }, { metadata: { authorization: `Bearer ${sessionToken}` } });
  assert.equal(await outcome(look()), "");
  assert.equal(await outcome(register(node, "new")), "TOKEN_REJECTED");
  const copy = join(scratchFolder("grove-rebound-"), "copy");
  await cp(join(dataFolder, "subjects.json"), copy);

  const from = await meta.directory.findSubject(ALICE);
  assert.ok(from !== undefined);
  await meta.directory.rebindSubjects([{ username: ALICE, from, to: { issuer: from.issuer, subject: "" } }]);
  await until(async () => (await outcome(look())) === "SESSION_UNKNOWN", "the session ends");
  assert.equal(await outcome(register(node, "old")), "", "the first who comes has the address");
  const known = await meta.directory.findSubject(ALICE);
  assert.ok(known !== undefined);
  const to = { issuer: known.issuer, subject: "new" };
  await meta.directory.rebindSubjects([{ username: ALICE, from: known, to }]);
  await until(async () => (await outcome(register(node, "old"))) !== "", "the old account is refused");
  assert.equal(await outcome(register(node, "new")), "");

  await node.stop();
  await cp(copy, join(dataFolder, "subjects.json"));
  await rm(join(dataFolder, "subjects-versions.json"));
  node = await start();
  assert.equal(await outcome(register(node, "old")), "TOKEN_REJECTED");
  assert.equal(await outcome(register(node, "new")), "");
  assert.equal((await meta.directory.findSubject(ALICE))?.subject, "new");
  assert.ok(issuer.includes(known.issuer.replace("http://", "")));
});
