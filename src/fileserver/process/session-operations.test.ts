// Sign-in and sessions over a real connection: their begin, their end, and the code of each refusal.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { adminPasswordHash } from "#security/identity/admin-password.ts";
import { REFUSED_AUDITED } from "#security/sessions/refused-sign-ins.ts";
import { until } from "#testing/until.ts";
import { Code } from "#wire/framing/status.ts";
import { createClient, GrpcChannel } from "#wire/grpc/client.ts";
import { FileServer } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { refusal, startTestNode, type TestNode, type TestUser } from "./node.fixture.ts";

let node: TestNode;
before(async () => {
  node = await startTestNode({ env: { SVC_ADMIN_EMAIL: "Admin@Example.com" } });
});
after(() => node.stop());

const register = (target: TestNode, token: string | undefined) =>
  target.anonymous.registerClient(
    { clientId: "c" },
    token === undefined ? {} : { metadata: { authorization: `Bearer ${token}` } },
  );

test("RegisterClient answers a token of the specified form, its end, and the user's root (spec 2.3, D23)", async () => {
  const user = await node.signIn("First@Example.com");
  const { registered } = user;
  assert.match(registered.sessionToken, /^sst_[A-Za-z0-9_-]{43}$/);
  const leftSeconds = Number(registered.expiresAt) - Date.now() / 1_000;
  assert.ok(leftSeconds > 43_100 && leftSeconds <= 43_200);
  assert.equal(registered.username, "first@example.com");
  assert.match(registered.rootId, /^[0-9A-Z]{26}$/);
  assert.equal(registered.idleTimeoutSeconds, 900);
  assert.deepEqual([registered.sessionsOpen, registered.evictedOldest], [1, false]);
  const again = await node.signIn("first@example.com");
  assert.equal(again.registered.rootId, registered.rootId);
  assert.equal(again.registered.sessionsOpen, 2);
});

test("sign-ins of one new user at the same time make one root", async () => {
  const users = await Promise.all(Array.from({ length: 5 }, () => node.signIn("twice@example.com")));
  assert.equal(new Set(users.map((user) => user.registered.rootId)).size, 1);
  await Promise.all(users.map((user, i) => user.call.createFile({ path: `/${i}` })));
});

test("a sixth session ends the oldest, which is told so (spec 3.4)", async () => {
  const first = await node.signIn("six@example.com");
  const others = [];
  for (let i = 0; i < 5; i++) others.push(await node.signIn("six@example.com"));
  assert.deepEqual(
    others.map((user) => user.registered.evictedOldest),
    [false, false, false, false, true],
  );
  const refused = await refusal(first.call.getAttr({ path: "/" }));
  assert.deepEqual([refused.code, refused.reason], [Code.UNAUTHENTICATED, "SESSION_EVICTED"]);
  await others[0]?.call.getAttr({ path: "/" });
});

test("a session that the new one replaces gives way before another device's, and nobody else's does", async () => {
  const register = (email: string, replacedSessionToken: string) =>
    node.anonymous.registerClient(
      { clientId: "c", replacedSessionToken },
      { metadata: { authorization: `Bearer mock-jwt.${email}` } },
    );
  const isLive = async ({ call }: TestUser): Promise<boolean> =>
    (await refusal(call.getAttr({ path: "/" })).catch(() => undefined)) === undefined;
  const stranger = await node.signIn("stranger@example.com");
  const devices: TestUser[] = [];
  for (let i = 0; i < 3; i++) devices.push(await node.signIn("five@example.com"));
  const [oldest, , own] = devices as [TestUser, TestUser, TestUser];
  assert.equal(
    (await register("five@example.com", own.token)).sessionsOpen,
    4,
    "while there is room both stay",
  );
  assert.equal((await register("five@example.com", stranger.token)).sessionsOpen, 5);
  const replaced = await register("five@example.com", own.token);
  assert.deepEqual([replaced.sessionsOpen, replaced.evictedOldest], [5, false]);
  assert.deepEqual([await isLive(oldest), await isLive(own), await isLive(stranger)], [true, false, true]);
  for (const token of [stranger.token, own.token, "sst_x", "x".repeat(1_000)]) {
    assert.equal((await register("five@example.com", token)).evictedOldest, true);
  }
  assert.equal(await isLive(stranger), true);
});

test("without a session every operation on files is Unauthenticated with its reason (D1)", async () => {
  const calls: [Record<string, string>, string][] = [
    [{}, "SESSION_MISSING"],
    [{ authorization: "Basic abc" }, "SESSION_MISSING"],
    [{ authorization: "Bearer " }, "SESSION_MISSING"],
    [{ authorization: "Bearer nonsense" }, "SESSION_UNKNOWN"],
    [{ authorization: `Bearer sst_${"A".repeat(43)}` }, "SESSION_UNKNOWN"],
    [{ authorization: "Bearer mock-jwt.a@example.com" }, "SESSION_UNKNOWN"],
  ];
  for (const [metadata, reason] of calls) {
    for (const call of [
      () => node.anonymous.getAttr({ path: "/" }, { metadata }),
      () => node.anonymous.createFile({ path: "/x" }, { metadata }),
      () => node.anonymous.listSessions({}, { metadata }),
      () => node.anonymous.endSession({}, { metadata }),
      () => node.anonymous.getQuota({}, { metadata }),
      () => node.anonymous.uploadFile((async function* () {})(), { metadata }),
    ]) {
      const refused = await refusal(call());
      assert.deepEqual([refused.code, refused.reason], [Code.UNAUTHENTICATED, reason]);
    }
  }
});

test("a session from another address is PermissionDenied, raises an event, and goes on from its own (spec 3.4)", async () => {
  const everywhere = await startTestNode({ options: { listen: { host: "0.0.0.0", port: 0 } } });
  const { channelFrom } = await import("./other-address.fixture.ts");
  const other = await channelFrom("127.0.0.2", everywhere.address);
  try {
    const user = await everywhere.signIn("mover@example.com");
    const refused = await refusal(other.getAttr("/", user.token));
    assert.deepEqual([refused.code, refused.reason], [Code.PERMISSION_DENIED, "IP_MISMATCH"]);
    await user.call.getAttr({ path: "/" });
    const events = await fetch(`http://127.0.0.1:${everywhere.node.metricsPort}/security-events`);
    const { events: listed } = (await events.json()) as { events: Record<string, unknown>[] };
    assert.deepEqual(
      [listed[0]?.["type"], listed[0]?.["username"], listed[0]?.["ip_bound"], listed[0]?.["ip_seen"]],
      ["ip_mismatch", "mover@example.com", "127.0.0.1", "127.0.0.2"],
    );
  } finally {
    other.close();
    await everywhere.stop();
  }
});

test("15 minutes idle or 12 hours of life end a session, one moment before does not (spec 2.3)", async () => {
  const clock = new ManualClock();
  const timed = await startTestNode({ clock });
  try {
    const user = await timed.signIn("idle@example.com");
    clock.advance(15 * 60_000 - 1);
    await user.call.getAttr({ path: "/" });
    clock.advance(15 * 60_000);
    assert.equal((await refusal(user.call.getAttr({ path: "/" }))).reason, "SESSION_IDLE");
    const busy = await timed.signIn("idle@example.com");
    for (let minutes = 0; minutes < 12 * 60 - 10; minutes += 10) {
      clock.advance(10 * 60_000);
      await busy.call.getAttr({ path: "/" });
    }
    clock.advance(10 * 60_000);
    assert.equal((await refusal(busy.call.getAttr({ path: "/" }))).reason, "SESSION_EXPIRED");
  } finally {
    await timed.stop();
  }
});

test("EndSession ends the calling session, one of the caller's others, or all of them, and nobody else's (D13)", async () => {
  const [one, two, three] = [
    await node.signIn("end@example.com"),
    await node.signIn("end@example.com"),
    await node.signIn("end@example.com"),
  ];
  const stranger = await node.signIn("stranger@example.com");
  const listed = await one.call.listSessions({});
  assert.equal(listed.sessions.length, 3);
  assert.deepEqual(
    listed.sessions.map((session) => session.current),
    [true, false, false],
  );
  const secondId = listed.sessions[1]?.sessionId ?? "";
  assert.equal((await stranger.call.endSession({ sessionId: secondId })).ended, 0);
  assert.equal((await one.call.endSession({ sessionId: secondId })).ended, 1);
  assert.equal((await refusal(two.call.getAttr({ path: "/" }))).reason, "SESSION_UNKNOWN");
  assert.equal((await one.call.endSession({})).ended, 1);
  assert.equal((await refusal(one.call.getAttr({ path: "/" }))).reason, "SESSION_UNKNOWN");
  assert.equal((await three.call.endSession({ everywhere: true })).ended, 1);
  await stranger.call.getAttr({ path: "/" });
});

test("a sign-in without an ID token, or with one that is wrong, is Unauthenticated (spec 5.2)", async () => {
  for (const token of [undefined, "mock-jwt.", "mock-jwt.no-address", "mock-jwt.e30"]) {
    const refused = await refusal(register(node, token));
    assert.deepEqual([refused.code, refused.reason], [Code.UNAUTHENTICATED, "TOKEN_REJECTED"], String(token));
  }
});

test("outside mock mode a mock token is refused with a fatal event, and an unset client id refuses all others (spec 5.2, 5.7)", async () => {
  const real = await startTestNode({ env: { SVC_AUTH_MOCK: "0" } });
  try {
    const mock = await refusal(register(real, "mock-jwt.a@example.com"));
    assert.deepEqual([mock.code, mock.reason], [Code.UNAUTHENTICATED, "MOCK_TOKEN"]);
    const unset = await refusal(register(real, "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln"));
    assert.deepEqual([unset.code, unset.reason], [Code.FAILED_PRECONDITION, "CLIENT_ID_UNSET"]);
    const events = await fetch(`http://127.0.0.1:${real.node.metricsPort}/security-events`);
    const { events: listed } = (await events.json()) as { events: Record<string, unknown>[] };
    assert.deepEqual([listed[0]?.["type"], listed[0]?.["fatal"]], ["mock_token", true]);
  } finally {
    await real.stop();
  }
});

test("a user may sign in so often a minute and no more, and is told when again; many users of one address may (D17)", async () => {
  const limited = await startTestNode({ options: { limits: { registerPerMinute: 3 } } });
  try {
    for (let i = 0; i < 3; i++) await limited.signIn("often@example.com");
    const refused = await refusal(register(limited, "mock-jwt.often@example.com"));
    assert.deepEqual([refused.code, refused.reason], [Code.RESOURCE_EXHAUSTED, "RATE_LIMITED"]);
    assert.match(refused.error.message, /this user; try again in 60 seconds/);
    assert.ok(Number(refused.error.metadata.get("svc-retry-after-ms")) > 0);
    assert.ok(refused.error.details.some(({ typeUrl }) => typeUrl.endsWith("google.rpc.RetryInfo")));
    for (let i = 0; i < 20; i++) await limited.signIn(`user-${i}@example.com`);
  } finally {
    await limited.stop();
  }
});

test("an address whose tokens were refused so often is told when again, before one is looked at (D17)", async () => {
  const limited = await startTestNode({ options: { limits: { registerPerMinute: 3 } } });
  try {
    for (let i = 0; i < 3; i++) {
      assert.equal((await refusal(register(limited, `mock-jwt.no-address-${i}`))).reason, "TOKEN_REJECTED");
    }
    const refused = await refusal(register(limited, "mock-jwt.well@example.com"));
    assert.deepEqual([refused.code, refused.reason], [Code.RESOURCE_EXHAUSTED, "RATE_LIMITED"]);
    assert.match(refused.error.message, /from this address; try again in 60 seconds/);
  } finally {
    await limited.stop();
  }
});

test("what was verified before works beside a neighbour's refused tokens (D17)", async () => {
  const limited = await startTestNode({ options: { limits: { registerPerMinute: 3 } } });
  try {
    await limited.signIn("well@example.com");
    for (let i = 0; i < 3; i++) await refusal(register(limited, `mock-jwt.no-address-${i}`));
    assert.equal((await refusal(register(limited, "mock-jwt.new@example.com"))).reason, "RATE_LIMITED");
    await limited.signIn("well@example.com");
  } finally {
    await limited.stop();
  }
});

test("refused sign-ins stand in the audit log, by name where the token proves one, and so many a minute", async () => {
  const env = { ADMIN_PASSWORD: "a long password" };
  const audited = await startTestNode({ env, options: { limits: { registerPerMinute: 1_000 } } });
  try {
    await audited.anonymous.setUserState(
      { state: { username: "locked@example.com", disabled: true, reason: "has left" } },
      { metadata: { "x-admin-password-hash": adminPasswordHash(env.ADMIN_PASSWORD) } },
    );
    await refusal(register(audited, "mock-jwt.locked@example.com"));
    for (let i = 0; i < 2 * REFUSED_AUDITED.perNetwork; i++)
      await refusal(register(audited, `mock-jwt.no-address-${i}`));
    const found = async (): Promise<Record<string, unknown>[]> => {
      const answer = await fetch(`http://127.0.0.1:${audited.node.metricsPort}/audit`);
      const { entries } = (await answer.json()) as { entries: Record<string, unknown>[] };
      return entries.filter(({ act }) => act === "session.refused");
    };
    const lines = await until(async () => {
      const now = await found();
      return now.length >= REFUSED_AUDITED.perNetwork && now;
    });
    const { actor, subject, detail } = lines[0] ?? {};
    const what = "this account is locked by an administrator";
    assert.deepEqual(
      [actor, subject, detail],
      ["locked@example.com", "locked@example.com", { address: "127.0.0.1", reason: "USER_DISABLED", what }],
    );
    assert.equal(lines[1]?.["actor"], "unknown");
    assert.doesNotMatch(JSON.stringify(lines), /no-address-\d|has left/);
    assert.equal(lines.length, REFUSED_AUDITED.perNetwork);
  } finally {
    await audited.stop();
  }
});

test("a node that stops refuses new calls and lets a running one finish (G-01)", async () => {
  const stopping = await startTestNode();
  const channel = new GrpcChannel({ addresses: [stopping.address] });
  try {
    const user = await stopping.signIn("last@example.com");
    stopping.node.state.drain();
    const refused = await refusal(user.call.getAttr({ path: "/" }));
    assert.deepEqual([refused.code, refused.reason], [Code.UNAVAILABLE, "NODE_DRAINING"]);
    const health = await import("#wire/framing/gen/grpc/health/v1/health_pb.ts");
    const answer = await createClient(health.Health, channel).check({ service: FileServer.typeName });
    assert.equal(answer.status, health.HealthCheckResponse_ServingStatus.NOT_SERVING);
  } finally {
    channel.close();
    await stopping.stop();
  }
});
