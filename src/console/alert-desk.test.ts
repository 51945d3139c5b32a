// Shows alerts from polls to answers: raised, moved, over and told, for operators and for visitors (spec 3.1, 3.3, 5.8.4, D11).
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import type { AlertEvent } from "#alerts/alert-book.ts";
import type { Condition } from "#alerts/condition.ts";
import { NODE_FORGOTTEN_MS, VANISHED_NODE_KEPT_MS } from "#base/limits.ts";
import { silentLogger } from "#base/log.ts";
import type { AlertRecord } from "#webapi/alert.ts";
import { AlertDesk, type AlertDeskDeps } from "./alert-desk.ts";
import { alertRoutes } from "./alert-routes.ts";
import { type AppUnderTest, startApp } from "./app.fixture.ts";
import { listedNode, nodeReading, testCluster } from "./cluster-state.fixture.ts";
import type { NodeReading, SecurityEvent } from "./cluster-state.ts";

const ends: (() => Promise<unknown>)[] = [];
after(async () => {
  for (const end of ends.toReversed()) await end();
});

interface DeskUnderTest extends ReturnType<typeof testCluster> {
  readonly desk: AlertDesk;
  readonly events: AlertEvent[];
  readonly window: { errors: number; ops: number };
  /** One round in which these nodes answer so; null does not answer. What it brought is saved at its end. */
  round(
    answers: Readonly<Record<string, Partial<NodeReading> | null>>,
    security?: SecurityEvent[],
  ): Promise<string[]>;
}

async function startDesk(
  nodes: readonly string[],
  wish: Partial<AlertDeskDeps> = {},
): Promise<DeskUnderTest> {
  const folder = await mkdtemp(join(tmpdir(), "grove-desk-"));
  const { book, clock } = testCluster(...nodes);
  const window = { errors: 0, ops: 0 };
  const desk = await AlertDesk.open({
    folder,
    clock,
    log: silentLogger,
    cluster: book,
    history: { errorWindow: () => window, forecastDiskFullDays: () => undefined },
    isDefaultPassword: () => false,
    ...wish,
  });
  const events: AlertEvent[] = [];
  desk.onEvent((event) => events.push(event));
  ends.push(async () => {
    book.close();
    await desk.close();
    await rm(folder, { recursive: true });
  });
  return {
    book,
    clock,
    desk,
    events,
    window,
    async round(answers, security = []) {
      const before = events.length;
      for (const [id, answer] of Object.entries(answers)) {
        if (answer === null) book.failed(id, "timeout");
        else book.answered(id, nodeReading(answer), security);
      }
      clock.advance(5_000);
      await desk.saved();
      return events.slice(before).map(({ kind, alert }) => `${kind} ${alert.key} ${alert.severity}`);
    },
  };
}

test("a disk that fills and is emptied: each step within one poll (spec 3.1)", async () => {
  const { round } = await startDesk(["n1"]);
  assert.deepEqual(await round({ n1: { diskUsagePercent: 80 } }), []);
  assert.deepEqual(await round({ n1: { diskUsagePercent: 80.01 } }), ["raised storage_warning:n1 warning"]);
  assert.deepEqual(await round({ n1: { diskUsagePercent: 95.01 } }), ["changed storage_warning:n1 critical"]);
  assert.deepEqual(await round({ n1: { diskUsagePercent: null } }), []);
  assert.deepEqual(await round({ n1: null }), []);
  assert.deepEqual(await round({ n1: { diskUsagePercent: 90 } }), ["changed storage_warning:n1 warning"]);
  assert.deepEqual(await round({ n1: { diskUsagePercent: 79.99 } }), [
    "resolved storage_warning:n1 warning",
    "recorded storage_warning:n1 info",
  ]);
});

test("a silent node is offline after 30 s, and its other alerts stay as they are; its way back is recorded (spec 3.3, T5)", async () => {
  const { round, desk } = await startDesk(["n1"]);
  await round({ n1: { cpuTempCelsius: 70, usersAssignedCount: 3 } });
  const told: string[][] = [];
  for (let i = 0; i < 7; i++) told.push(await round({ n1: null }));
  assert.deepEqual(told.flat(), ["raised node_offline:n1 critical"]);
  assert.deepEqual(told.findIndex((events) => events.length > 0) >= 5, true, "not before 30 s");
  assert.deepEqual(desk.summary("visitor"), { critical: 1, warning: 1, info: 0, total: 2 });
  assert.deepEqual(await round({ n1: { cpuTempCelsius: 70 } }), [
    "resolved node_offline:n1 critical",
    "recorded node_online:n1 info",
  ]);
  const { alerts } = desk.list("operator", { types: new Set(["node_online"]) }, {});
  assert.match(alerts[0]?.message ?? "", /^n1 answers again after \d+ s\.$/);
});

test("a node that has never answered is offline 30 s after the start, not before (D24)", async () => {
  const { round } = await startDesk(["n1"]);
  const told: string[][] = [];
  for (let i = 0; i < 8; i++) told.push(await round({ n1: null }));
  assert.deepEqual(told.flat(), ["raised node_offline:n1 critical"]);
  assert.deepEqual(told.slice(0, 6).flat(), []);
});

test("a user past 95 and 100 % of the quota: operators see it, visitors neither it nor its count (T1, spec 5.8.4)", async () => {
  const { round, desk, events } = await startDesk(["n1"]);
  const bob = (used: bigint): Partial<NodeReading> => ({
    perUserStorage: new Map([["bob@example.com", used]]),
    perUserQuota: new Map([["bob@example.com", 1_000n]]),
  });
  assert.deepEqual(await round({ n1: bob(950n) }), []);
  assert.deepEqual(await round({ n1: bob(951n) }), ["raised quota_exceeded:bob@example.com warning"]);
  assert.deepEqual(await round({ n1: bob(1_000n) }), ["changed quota_exceeded:bob@example.com critical"]);
  assert.deepEqual(desk.summary("operator").total, 1);
  assert.deepEqual(
    [desk.summary("visitor").total, desk.list("visitor", {}, {})],
    [0, { alerts: [], total: 0 }],
  );
  assert.deepEqual(await round({ n1: { usersWithheld: true } }), [], "not to be told is not to be fine");
  assert.deepEqual(await round({ n1: bob(950n) }), []);
  assert.deepEqual(await round({ n1: bob(949n) }), [
    "resolved quota_exceeded:bob@example.com critical",
    "recorded quota_exceeded:bob@example.com info",
  ]);
  assert.deepEqual(
    events.filter((event) => event.public !== undefined),
    [],
  );
});

test("restarts that nobody asked for, and none for a node in maintenance (D24)", async () => {
  const { round, desk } = await startDesk(["n1", "n2"]);
  await round({ n1: { lastRestartUnix: 100 }, n2: { lastRestartUnix: 100 } });
  desk.touched("n2");
  assert.deepEqual(await round({ n1: { lastRestartUnix: 200 }, n2: { lastRestartUnix: 200 } }), [
    "raised service_restart:n1 warning",
  ]);
});

test("errors: 60 s of answers without one end a spike, the first answer after a start does not (T4)", async () => {
  const { round, window } = await startDesk(["n1"]);
  Object.assign(window, { errors: 5, ops: 20 });
  assert.deepEqual(await round({ n1: {} }), ["raised error_spike:n1 critical"]);
  Object.assign(window, { errors: 0, ops: 0 });
  const told: string[][] = [];
  for (let i = 0; i < 13; i++) told.push(await round({ n1: {} }));
  assert.deepEqual(told.slice(0, 11).flat(), []);
  assert.deepEqual(told.flat(), ["resolved error_spike:n1 critical", "recorded error_spike:n1 info"]);
});

test("what nodes report of attempts, and failed sign-ins to the console, are for operators alone (D22, D-03)", async () => {
  const { round, desk } = await startDesk(["n1"]);
  const event: SecurityEvent = {
    id: "01K5YDWV000000000000000000",
    ts: 1_790_000_000,
    type: "ip_mismatch",
    fatal: false,
    username: "bob@example.com",
    ipBound: "192.0.2.1",
    ipSeen: "203.0.113.7",
    count: 1,
  };
  assert.deepEqual(await round({ n1: {} }, [event]), ["raised ip_mismatch:bob@example.com warning"]);
  for (let i = 0; i < 9; i++) desk.loginFailed("203.0.113.9");
  assert.deepEqual(await round({ n1: {} }), []);
  desk.loginFailed("203.0.113.9");
  assert.deepEqual(await round({ n1: {} }), ["raised login_failures warning"]);
  const { alerts } = desk.list("operator", {}, {});
  assert.match(
    alerts[0]?.message ?? "",
    /^10 attempts to sign in to the console failed, the last from 203\.0\.113\.9\.$/,
  );
  assert.equal(desk.summary("visitor").total, 0);
});

test("alerts of a node that was forgotten end an hour later; while no node is known, none is missing", async () => {
  const { round, desk, book, clock } = await startDesk(["n1", "n2"]);
  await round({ n1: { diskUsagePercent: 90 }, n2: {} });
  book.list([listedNode("n2")]);
  clock.advance(VANISHED_NODE_KEPT_MS + 1);
  book.list([listedNode("n2")]);
  assert.equal(book.node("n1"), undefined);
  clock.advance(NODE_FORGOTTEN_MS - 5_000);
  await desk.saved();
  const open = () =>
    desk.list("operator", { isUnresolved: true, nodeId: "n1" }, {}).alerts.map(({ key }) => key);
  assert.deepEqual(open().sort(), ["node_offline:n1", "storage_warning:n1"]);
  clock.advance(10_000);
  await desk.saved();
  assert.deepEqual(open(), []);
});

test("each round tells the notification layer every condition once, with its value, and what happened", async () => {
  const { round, desk, book } = await startDesk(["n1", "n2"]);
  const rounds: { conditions: readonly Condition[]; happened: number }[] = [];
  desk.onConditions((conditions, happened) => rounds.push({ conditions, happened: happened.length }));
  await round({ n1: { diskUsagePercent: 79 }, n2: null });
  const [first] = rounds;
  const keys = first?.conditions.map(({ key }) => key) ?? [];
  assert.equal(new Set(keys).size, keys.length);
  const storage = first?.conditions.find(({ key }) => key === "storage_warning:n1");
  assert.deepEqual([storage?.level, storage?.value], ["clear", 79]);
  assert.equal(first?.conditions.find(({ key }) => key === "node_offline:n2")?.level, "unknown");
  book.answered("n1", nodeReading({ lastRestartUnix: 1 }));
  await round({});
  assert.equal(rounds[1]?.happened, 1);
});

interface Listing {
  readonly alerts: AlertRecord[];
  readonly total: number;
}

async function startRoutes(desk: AlertDesk): Promise<AppUnderTest & { readonly acts: string[] }> {
  const acts: string[] = [];
  const app = await startApp((plugged) =>
    alertRoutes(plugged, {
      desk,
      audit: ({ act, actor, subject }) => acts.push(`${act} ${actor} ${subject}`),
      flushAudit: async () => undefined,
    }),
  );
  ends.push(() => app.close());
  return { ...app, acts };
}

test("GET /api/alerts: filters, pages, and what a wrong one answers (D11)", async () => {
  const { round, desk, clock } = await startDesk(["n1", "n2"]);
  const { ask, askAsOperator } = await startRoutes(desk);
  await round({ n1: { diskUsagePercent: 90 }, n2: { cpuTempCelsius: 90 } });
  clock.advance(60_000);
  await round({ n1: { diskUsagePercent: 10, quotaDriftBytes: 5n }, n2: { cpuTempCelsius: 90 } });
  const keysOf = async (query: string, operator = true): Promise<string[]> => {
    const { status, json, text } = await (operator ? askAsOperator : ask)(`/api/alerts${query}`);
    assert.equal(status, 200, text);
    return (json as Listing).alerts.map(({ key, severity }) => `${key} ${severity}`);
  };
  const all = await keysOf("");
  assert.deepEqual(all.toSorted(), [
    "quota_drift:n1 warning",
    "storage_warning:n1 info",
    "storage_warning:n1 warning",
    "temp_warning:n2 critical",
  ]);
  assert.deepEqual(
    (await keysOf("", false)).toSorted(),
    all.filter((key) => !key.startsWith("quota")).toSorted(),
  );
  for (const query of ["?unresolved=true", "?unresolved=1", "?unresolved=true&severity=critical,warning"]) {
    assert.deepEqual((await keysOf(query)).toSorted(), [
      "quota_drift:n1 warning",
      "temp_warning:n2 critical",
    ]);
  }
  assert.deepEqual((await keysOf("?severity=warning&severity=info&node_id=n1")).length, 3);
  assert.deepEqual(await keysOf("?type=temp_warning"), ["temp_warning:n2 critical"]);
  assert.deepEqual(await keysOf("?node_id=nobody"), []);

  const paged: string[] = [];
  let before = "";
  for (let i = 0; i < all.length; i++) {
    const { json } = await askAsOperator(`/api/alerts?limit=1${before}`);
    const { alerts, total } = json as Listing;
    assert.equal(total, all.length);
    before = `&before=${alerts[0]?.id}`;
    paged.push(`${alerts[0]?.key} ${alerts[0]?.severity}`);
  }
  assert.deepEqual(paged, all);
  assert.deepEqual(await keysOf(`?limit=1${before}`), []);

  for (const query of [
    "severity=urgent",
    "severity=",
    "severity=warning,",
    "type=quota",
    "unresolved=yes",
    "limit=0",
    "limit=1001",
    "limit=1e2",
    "limit=-1",
    "before=x",
    "before=18446744073709551616",
    "node_id=a&node_id=b",
    `node_id=${"x".repeat(65)}`,
    "sort=up",
  ]) {
    const { status, problem } = await ask(`/api/alerts?${query}`);
    assert.deepEqual([status, problem?.code], [422, "QUERY_INVALID"], query);
  }
});

test("POST resolve, resolve-all and ack: operators alone, what is unknown, what is resolved already (D11)", async () => {
  const { round, desk } = await startDesk(["n1", "n2"], { isDefaultPassword: () => true });
  const { ask, askAsOperator, acts, session } = await startRoutes(desk);
  await round({ n1: { diskUsagePercent: 90 }, n2: { diskUsagePercent: 97, cpuTempCelsius: 66 } });
  const idOf = (key: string): string =>
    desk.list("operator", {}, {}).alerts.find((alert) => alert.key === key)?.id ?? assert.fail(key);
  const id = idOf("storage_warning:n1");
  for (const path of ["resolve", "resolve-all", "ack"]) {
    assert.equal((await ask(`/api/alerts/${path}`, { body: { id } })).status, 401);
  }
  const post = (path: string, body?: unknown) =>
    askAsOperator(`/api/alerts/${path}`, { method: "POST", ...(body === undefined ? {} : { body }) });

  assert.deepEqual((await post("ack", { id })).json, { acked: [id], already_resolved: [] });
  assert.deepEqual((await post("resolve", { id })).json, {
    resolved: [id],
    already_resolved: [],
    in_force: [],
  });
  assert.deepEqual((await post("resolve", { ids: [id, "nobody"] })).json, {
    resolved: [],
    already_resolved: [id],
    in_force: [],
  });
  assert.deepEqual((await post("ack", { id })).json, { acked: [], already_resolved: [id] });
  const permanent = idOf("default_password");
  assert.deepEqual((await post("resolve", { key: "default_password" })).json, {
    resolved: [],
    already_resolved: [],
    in_force: [permanent],
  });
  assert.deepEqual(
    await round({ n1: { diskUsagePercent: 91 }, n2: { diskUsagePercent: 97, cpuTempCelsius: 66 } }),
    [],
  );
  assert.deepEqual((await post("resolve-all", { severity: "critical", node_id: "n2" })).json, {
    resolved: 1,
  });
  assert.deepEqual((await post("resolve-all")).json, { resolved: 1 });
  assert.deepEqual(desk.summary("operator"), { critical: 1, warning: 0, info: 0, total: 1 });
  assert.deepEqual(acts, [
    `alert.ack ${session.id} storage_warning:n1`,
    `alert.resolve ${session.id} storage_warning:n1`,
    `alert.resolve ${session.id} storage_warning:n2`,
    `alert.resolve ${session.id} temp_warning:n2`,
  ]);

  assert.deepEqual((await post("resolve", { id: "nobody" })).problem?.code, "NO_SUCH_ALERT");
  assert.deepEqual((await post("resolve", { key: "temp_warning:n9" })).status, 404);
  for (const body of [
    {},
    { ids: [] },
    { id: 7 },
    { ids: ["x".repeat(65)] },
    { id, extra: 1 },
    [],
    "x",
    null,
  ]) {
    const { status, problem } = await post("resolve", body);
    assert.ok(status === 422 || problem?.code === "BAD_JSON", JSON.stringify(body));
  }
  assert.equal((await post("resolve-all", { severity: "urgent" })).problem?.code, "ALERT_INVALID");
});

test("answers to visitors are the same bytes whatever users, quotas and attempts there are (D-09)", async () => {
  const answers = await Promise.all(
    [false, true].map(async (isBusy) => {
      const { round, desk } = await startDesk(["n1", "n2"]);
      const { ask } = await startRoutes(desk);
      const events: AlertEvent[] = [];
      desk.onEvent((event) => events.push(event));
      const busy = (i: number): Partial<NodeReading> => ({
        usersAssignedCount: 40 + i,
        activeUsers: i,
        quotaDriftBytes: 17n,
        damagedFileCount: 2,
        invalidFields: ["per_user_detail"],
        perUserStorage: new Map([[`user${i}@example.com`, 999n]]),
        perUserQuota: new Map([[`user${i}@example.com`, 1_000n]]),
      });
      for (let i = 0; i < 20; i++) {
        const shared = { diskUsagePercent: 70 + ((i * 7) % 30), cpuTempCelsius: 60 + ((i * 5) % 30) };
        const users = isBusy ? busy(i) : {};
        await round({ n1: { ...shared, ...users }, n2: i % 9 > 1 ? null : { ...users } });
        if (isBusy && i % 4 === 0) desk.loginFailed("203.0.113.9");
      }
      const texts: string[] = [];
      for (const path of [
        "",
        "?unresolved=true",
        "?limit=3",
        "?type=quota_exceeded",
        "?severity=critical",
        "/summary",
      ]) {
        texts.push((await ask(`/api/alerts${path}`)).text);
      }
      return { texts, told: events.flatMap((event) => event.public ?? []), all: events.length };
    }),
  );
  const [calm, busy] = answers;
  assert.ok((busy?.all ?? 0) > (calm?.all ?? 0));
  assert.deepEqual(busy?.texts, calm?.texts);
  assert.deepEqual(busy?.told, calm?.told);
});
