// Tests the routes below /api/alerts: filters, pages, acts, visitors (spec 4.1, 5.8.4, D11).
import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { AlertEvent } from "#console/alerts/alert-state-machine.ts";
import { ALERTS_RESOLVED_KEPT } from "#console/alerts/resolved-alerts.ts";
import type { NodeReading } from "#console/cluster/cluster-state.ts";
import { alertRoutes } from "#console/routes/alert-routes.ts";
import { startService } from "#console/services/alert-service.fixture.ts";
import type { AlertService } from "#console/services/alert-service.ts";
import type { AlertRecord } from "#wire/webapi/alert.ts";
import { type AppUnderTest, startApp } from "./app.fixture.ts";

const ends: (() => Promise<unknown>)[] = [];
after(async () => {
  for (const end of ends.toReversed()) await end();
});

interface Listing {
  readonly alerts: AlertRecord[];
  readonly total: number;
}

async function startRoutes(service: AlertService): Promise<AppUnderTest & { readonly acts: string[] }> {
  const acts: string[] = [];
  const app = await startApp((plugged) =>
    alertRoutes(plugged, {
      alerts: service,
      audit: ({ act, actor, subject }) => acts.push(`${act} ${actor} ${subject}`),
      flushAudit: async () => undefined,
    }),
  );
  ends.push(() => app.close());
  return { ...app, acts };
}

test("GET /api/alerts: filters, pages, and what a wrong one answers (D11)", async () => {
  const { round, service, clock } = await startService(ends, ["n1", "n2"]);
  const { ask, askAsOperator } = await startRoutes(service);
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
  assert.deepEqual((await keysOf("", false)).toSorted(), all.toSorted());
  for (const query of ["?unresolved=true", "?unresolved=1", "?unresolved=true&severity=critical,warning"]) {
    assert.deepEqual((await keysOf(query)).toSorted(), [
      "quota_drift:n1 warning",
      "temp_warning:n2 critical",
    ]);
  }
  assert.deepEqual((await keysOf("?resolved=true")).toSorted(), [
    "storage_warning:n1 info",
    "storage_warning:n1 warning",
  ]);
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
  const { round, service } = await startService(ends, ["n1", "n2"], { isDefaultPassword: () => true });
  const { ask, askAsOperator, acts, session } = await startRoutes(service);
  await round({ n1: { diskUsagePercent: 90 }, n2: { diskUsagePercent: 97, cpuTempCelsius: 66 } });
  const idOf = (key: string): string =>
    service.list("operator", {}, {}).alerts.find((alert) => alert.key === key)?.id ?? assert.fail(key);
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
  assert.deepEqual(service.summary("operator"), { critical: 1, warning: 0, info: 0, total: 1 });
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

test("of more alerts than are kept when they have ended, each has its line in the audit log (D24)", async () => {
  const { round, service } = await startService(ends, ["n1", "n2"]);
  const { askAsOperator, acts } = await startRoutes(service);
  const full = (node: string): Partial<NodeReading> => {
    const users = Array.from({ length: ALERTS_RESOLVED_KEPT }, (_, i) => `${node}-${i}@example.com`);
    const each = new Map(users.map((user) => [user, 1_000n]));
    return { perUserStorage: each, perUserQuota: each };
  };
  await round({ n1: full("n1"), n2: full("n2") });
  const { json } = await askAsOperator("/api/alerts/resolve-all", { method: "POST" });
  assert.deepEqual(json, { resolved: 2 * ALERTS_RESOLVED_KEPT });
  assert.equal(new Set(acts).size, 2 * ALERTS_RESOLVED_KEPT);
  assert.ok(acts.every((act) => / quota_exceeded:n[12]-\d+@example\.com$/.test(act)));
});

test("answers to visitors are the same bytes whatever users, quotas and attempts there are (W-09)", async () => {
  const answers = await Promise.all(
    [false, true].map(async (isBusy) => {
      const { round, service } = await startService(ends, ["n1", "n2"]);
      const { ask } = await startRoutes(service);
      const events: AlertEvent[] = [];
      service.onEvent((event) => events.push(event));
      const busy = (i: number): Partial<NodeReading> => ({
        usersAssignedCount: 40 + i,
        activeUsers: i,
        quotaDriftBytes: i % 5 === 0 ? -17n * BigInt(i + 1) : 0n,
        damagedFileCount: i > 12 ? 2 + i : 0,
        invalidFields: [...(i % 6 === 0 ? ["load_avg_1m"] : []), "per_user_detail"],
        perUserStorage: new Map([[`user${i}@example.com`, 999n]]),
        perUserQuota: new Map([[`user${i}@example.com`, 1_000n]]),
      });
      for (let i = 0; i < 20; i++) {
        const shared = {
          diskUsagePercent: 70 + ((i * 7) % 30),
          cpuTempCelsius: 60 + ((i * 5) % 30),
          authMock: i % 4 === 0,
        };
        // The same failures of other files.
        const calm = {
          quotaDriftBytes: i % 5 === 0 ? 1n : 0n,
          damagedFileCount: i > 12 ? 1 : 0,
          invalidFields: i % 6 === 0 ? ["load_avg_1m"] : [],
        };
        const users = isBusy ? busy(i) : calm;
        await round({ n1: { ...shared, ...users }, n2: i % 9 > 1 ? null : { ...users } });
        if (isBusy && i % 4 === 0) service.loginFailed("203.0.113.9");
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
