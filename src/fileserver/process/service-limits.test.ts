// The limits of D17 on a running node: both sides of each, the refusal's words, and the log of a changed one.
import assert from "node:assert/strict";
import { hash } from "node:crypto";
import { connect } from "node:http2";
import { test } from "node:test";
import { DEFAULT_SERVICE_LIMITS, movedLimits } from "#fileserver/operations/service-limits.ts";
import { STREAMS_PER_PLACE } from "#wire/framing/limits.ts";
import { StatusError } from "#wire/framing/status.ts";
import { REASON_TRAILER } from "#wire/proto/status-table.ts";
import { startTestNode } from "./node.fixture.ts";

const reasonOf = async (
  call: Promise<unknown>,
): Promise<{ reason: string | undefined; error: StatusError }> => {
  try {
    await call;
  } catch (error) {
    assert.ok(error instanceof StatusError);
    return { reason: error.metadata.get(REASON_TRAILER), error };
  }
  throw new assert.AssertionError({ message: "the call went well" });
};

test("session 4 of 3 on a node is SESSION_TABLE_FULL, and nobody else's has to go for it (D17, D1)", async () => {
  const node = await startTestNode({ options: { limits: { sessions: 3 } } });
  try {
    const first = await node.signIn("a@example.com");
    await node.signIn("b@example.com");
    await node.signIn("c@example.com");
    assert.equal((await reasonOf(node.signIn("d@example.com"))).reason, "SESSION_TABLE_FULL");
    await first.call.endSession({});
    await node.signIn("d@example.com");
  } finally {
    await node.stop();
  }
});

test("after 2 of 2 wrong passwords even the right one is refused, uncompared, in the same words (spec 5.5, D17)", async () => {
  const env = { ADMIN_PASSWORD: "right-and-long-enough" };
  const node = await startTestNode({ env, options: { limits: { passwordFailuresPerWindow: 2 } } });
  const rightHash = hash("sha256", env.ADMIN_PASSWORD);
  const set = (hash: string) =>
    node.anonymous.setQuota(
      { username: "a@example.com", quotaBytes: 1n },
      { metadata: { "x-admin-password-hash": hash } },
    );
  try {
    await node.signIn("a@example.com");
    assert.equal((await set("0".repeat(64))).success, false);
    assert.equal((await set(rightHash)).success, true);
    assert.equal((await set("1".repeat(64))).success, false);
    const limited = await set(rightHash);
    assert.equal(limited.success, false);
    assert.equal(limited.error, "permission denied: only cluster administrators can modify quotas");
  } finally {
    await node.stop();
  }
});

test("a connection is told of a stream for each call that it may have at once, and of one for each that it has just given up (D17)", async () => {
  const node = await startTestNode({ options: { limits: { streamsPerConnection: 7 } } });
  const session = connect(`http://${node.address}`);
  try {
    const settings = await new Promise<{ maxConcurrentStreams?: number }>((resolve) =>
      session.once("remoteSettings", resolve),
    );
    assert.equal(settings.maxConcurrentStreams, 7 * STREAMS_PER_PLACE);
  } finally {
    session.destroy();
    await node.stop();
  }
});

test("only what was moved is told (D17)", () => {
  assert.equal(movedLimits(DEFAULT_SERVICE_LIMITS), undefined);
  assert.deepEqual(movedLimits({ ...DEFAULT_SERVICE_LIMITS, streamsPerUser: 300, sessions: 10_001 }), {
    streams_per_user: 300,
    sessions: 10_001,
  });
});
