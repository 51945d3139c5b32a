// The WebSockets over real connections: who is let in, what they are told, in what order, and what those who come back get (D8).
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { VERSION } from "#base/version.ts";
import type { AlertRecord } from "#webapi/alert.ts";
import { liveData, liveMessage as messageSchema } from "#webapi/live.ts";
import { type LiveUnderTest, startLive } from "./live.fixture.ts";

let live: LiveUnderTest;
before(async () => {
  live = await startLive();
});
after(() => live.close());

const alert = (id: string, wish: Partial<AlertRecord> = {}): AlertRecord => ({
  id,
  timestamp: 1_790_000_000,
  severity: "warning",
  type: "storage_warning",
  title: "Disk filling",
  message: "fs-1 uses 81 % of its disk",
  resolved: false,
  key: "storage_warning:fs-1",
  raised_count: 1,
  ...wish,
});

test("a visitor on /ws/cluster gets hello, then a snapshot, in the envelope of D8", async () => {
  const visitor = await live.open("/ws/cluster", { protocols: ["svc.v1"] });
  assert.equal(visitor.socket.protocol, "svc.v1");
  const hello = await visitor.next("hello");
  assert.ok(messageSchema.safeParse(hello).success);
  assert.deepEqual(liveData.hello.parse(hello.data), {
    server_version: VERSION,
    session_expires_at: null,
    resume_from_seq: hello.seq,
  });
  assert.equal(hello.ts, live.clock.wallMs() / 1000);
  assert.deepEqual((await visitor.next("metrics.snapshot")).data, live.cluster.public);
  visitor.socket.close();
});

test("an operator gets the operator's form, by header, cookie, query and ticket; a ticket is good once (spec 4.2, D8)", async () => {
  live.cluster.operator = { nodes: ["everything"], cluster: {} };
  live.hub.broadcastSnapshot();
  live.tickets.set("ab".repeat(32), live.session);
  const ways = [
    () => live.openAsOperator("/ws/cluster"),
    () => live.open("/ws/cluster", { headers: { cookie: `svc_admin_token=${live.token}` } }),
    () => live.open(`/ws/cluster?token=${live.token}`),
    () => live.open("/ws/cluster", { protocols: ["svc.v1", `ticket.${"ab".repeat(32)}`] }),
  ];
  for (const way of ways) {
    const operator = await way();
    const hello = await operator.next("hello");
    assert.equal(hello.data.session_expires_at, Math.floor(live.session.expiresAtWallMs / 1000));
    assert.deepEqual((await operator.next("metrics.snapshot")).data, live.cluster.operator);
    assert.ok(!operator.socket.protocol.includes("ticket"));
    operator.socket.close();
    await operator.closed;
  }
  const again = await live.open("/ws/cluster", { protocols: ["svc.v1", `ticket.${"ab".repeat(32)}`] });
  assert.equal(await again.closed, 4401);
  assert.deepEqual(again.received, []);
});
