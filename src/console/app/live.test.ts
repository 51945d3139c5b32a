// Tests the WebSockets over real connections: access, messages, order, and replay after a reconnect (D8).
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { VERSION } from "#base/version.ts";
import type { AlertRecord } from "#wire/webapi/alert.ts";
import { liveData, liveMessage as messageSchema } from "#wire/webapi/live.ts";
import { type LiveUnderTest, startLive } from "./live.fixture.ts";

let live: LiveUnderTest;
before(async () => {
  live = await startLive();
});
after(() => live.close());

const alert = (id: string, overrides: Partial<AlertRecord> = {}): AlertRecord => ({
  id,
  timestamp: 1_790_000_000,
  severity: "warning",
  type: "storage_warning",
  title: "Disk filling",
  message: "fs-1 uses 81 % of its disk",
  resolved: false,
  key: "storage_warning:fs-1",
  raised_count: 1,
  ...overrides,
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
  assert.deepEqual((await visitor.next("metrics.snapshot")).data, live.cluster.visitor);
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
    assert.equal(hello.data["session_expires_at"], Math.floor(live.session.expiresAtWallMs / 1000));
    assert.deepEqual((await operator.next("metrics.snapshot")).data, live.cluster.operator);
    assert.ok(!operator.socket.protocol.includes("ticket"));
    operator.socket.close();
    await operator.closed;
  }
  const again = await live.open("/ws/cluster", { protocols: ["svc.v1", `ticket.${"ab".repeat(32)}`] });
  assert.equal(await again.closed, 4401);
  assert.deepEqual(again.received, []);
});

test("alerts come to operators in full and to visitors as they may see them, numbered per stream (D8, spec 5.8.4)", async () => {
  const operator = await live.openAsOperator("/ws/cluster");
  const visitor = await live.open("/ws/cluster");
  const seen = { operator: await operator.next("hello"), visitor: await visitor.next("hello") };
  live.hub.alertEvent({
    kind: "raised",
    alert: alert("q", { username: "bob@example.com" }),
    public: undefined,
  });
  live.hub.alertEvent({ kind: "changed", alert: alert("a"), public: alert("a", { message: "public" }) });
  live.hub.alertEvent({ kind: "resolved", alert: alert("a"), public: alert("a") });
  live.hub.alertEvent({ kind: "recorded", alert: alert("r"), public: alert("r") });
  await operator.next("alert.resolved");
  const last = { operator: operator.received.length, visitor: visitor.received.length };
  assert.deepEqual(
    operator.received.slice(2).map(({ type, seq }) => [type, seq - seen.operator.seq]),
    [
      ["alert.raised", 1],
      ["alert.changed", 2],
      ["alert.resolved", 3],
      ["alert.raised", 4],
    ].slice(0, last.operator - 2),
  );
  await visitor.next("alert.raised");
  // A gap in the numbers would reveal a hidden message.
  assert.deepEqual(
    visitor.received
      .slice(2)
      .map(({ type, seq, data }) => [type, seq - seen.visitor.seq, data["id"], data["message"]]),
    [
      ["alert.changed", 1, "a", "public"],
      ["alert.resolved", 2, "a", alert("a").message],
      ["alert.raised", 3, "r", alert("r").message],
    ],
  );
  assert.ok(!visitor.raw.join("").includes("bob"));
  operator.socket.close();
  visitor.socket.close();
});

test("who comes back with the last number gets every event in between once, and later ones as they come (D8)", async () => {
  const first = await live.open("/ws/cluster");
  await first.next("hello");
  live.hub.alertEvent({ kind: "raised", alert: alert("1"), public: alert("1") });
  const { seq } = await first.next("alert.raised");
  first.socket.close();
  await first.closed;
  for (const id of ["2", "3"]) live.hub.alertEvent({ kind: "raised", alert: alert(id), public: alert(id) });
  live.hub.broadcastSnapshot();
  const back = await live.open("/ws/cluster");
  assert.ok(Number((await back.next("hello")).data["resume_from_seq"]) <= seq);
  live.hub.alertEvent({ kind: "raised", alert: alert("4"), public: alert("4") });
  back.say({ type: "resume", after_seq: seq });
  const events: unknown[] = [];
  for (let i = 0; i < 3; i++) events.push((await back.next("alert.raised")).data["id"]);
  assert.deepEqual(new Set(events), new Set(["2", "3", "4"]));
  back.say({ type: "resume", after_seq: 0 });
  assert.equal((await back.next("error")).data["code"], "REQUEST_INVALID");
  assert.equal(back.received.filter(({ type }) => type === "alert.raised").length, 3);
  back.socket.close();
});
