// Tests maintenance: muted alerts, the store's pause, the line for all viewers, both ways to end it (D11).
import assert from "node:assert/strict";
import { test } from "node:test";
import { until } from "#testing/until.ts";
import type { OperatorCluster, PublicCluster } from "#wire/webapi/cluster.ts";
import { maintenanceList, type NodeMaintenance } from "#wire/webapi/maintenance.ts";
import { type ConsoleUnderTest, startTestConsole } from "./console.fixture.ts";

const bearer = (token: string): { headers: Record<string, string> } => ({
  headers: { authorization: `Bearer ${token}` },
});

async function nodeSeenBy(under: ConsoleUnderTest, token: string): Promise<OperatorCluster["nodes"][number]> {
  const cluster = (await under.ask("/api/cluster", bearer(token))).json as OperatorCluster;
  const [node] = cluster.nodes;
  assert.ok(node);
  return node;
}

test("a node is put into maintenance in one step, shown at once, and taken out of it by a step", async (t) => {
  const told: [string, number | undefined][] = [];
  const under = await startTestConsole(t, {
    pausePlacement: async (fsId, untilWallMs) => {
      told.push([fsId, untilWallMs]);
    },
  });
  const token = await under.signIn();
  const body = { duration: "2h", comment: "a new disk" };
  const begun = await under.ask("/api/maintenance/n1", { method: "PUT", body, ...bearer(token) });
  assert.equal(begun.status, 200);
  const made = begun.json as NodeMaintenance;
  assert.equal(made.ends_at - made.starts_at, 7_200);
  assert.deepEqual([made.placement_paused, made.comment], [true, "a new disk"]);
  assert.match(made.created_by, /^operator:/);
  assert.deepEqual(told, [["n1", made.ends_at * 1_000]]);
  await until(async () => (await nodeSeenBy(under, token)).maintenance !== undefined);
  assert.deepEqual((await nodeSeenBy(under, token)).maintenance, made);
  const visited = ((await under.ask("/api/cluster")).json as PublicCluster).nodes[0];
  assert.equal(visited?.maintenance_until, made.ends_at);
  assert.ok(!("maintenance" in (visited ?? {})), "visitors are not told why, nor by whom");
  const notices = (await under.ask("/api/notices", bearer(token))).json as { maintenance: { id: string }[] };
  assert.deepEqual(
    notices.maintenance.map(({ id }) => id),
    ["node:n1"],
  );

  const ended = await under.ask("/api/maintenance/n1", { method: "DELETE", ...bearer(token) });
  assert.equal(ended.status, 200);
  assert.deepEqual(told.at(-1), ["n1", undefined]);
  // A cached view may be shown briefly.
  await until(async () => {
    const { maintenance, maintenance_until: end } = await nodeSeenBy(under, token);
    return maintenance === undefined && end === undefined;
  });
  assert.equal((await under.ask("/api/maintenance/n1", { method: "DELETE", ...bearer(token) })).status, 404);
  const audit = (await under.ask("/api/audit?act=maintenance.*", bearer(token))).text;
  for (const act of ["maintenance.begin", "maintenance.end"]) assert.ok(audit.includes(`"${act}"`), act);
});

test("it ends by itself, outlives a restart of its console's timers, and takes another end", async (t) => {
  const under = await startTestConsole(t);
  const token = await under.signIn();
  const put = async (duration: string): Promise<NodeMaintenance> =>
    (await under.ask("/api/maintenance/n1", { method: "PUT", body: { duration }, ...bearer(token) }))
      .json as NodeMaintenance;
  const first = await put("2h");
  assert.equal(first.placement_paused, true, "the store was really told");
  const second = await put("1h");
  assert.ok(second.ends_at < first.ends_at);
  assert.equal(second.starts_at, first.starts_at);
  const list = async (): Promise<NodeMaintenance[]> =>
    maintenanceList.parse((await under.ask("/api/maintenance", bearer(token))).json).maintenance;
  assert.deepEqual(await list(), [second]);
  under.moveTime(3_600_000);
  assert.deepEqual(await list(), []);
  await until(async () => (await nodeSeenBy(under, token)).maintenance === undefined);
});

test("a store that cannot be told is told again; until then it is said that new users may still come", async (t) => {
  let isAway = true;
  const under = await startTestConsole(t, {
    pausePlacement: () => (isAway ? Promise.reject(new Error("the store is away")) : Promise.resolve()),
  });
  const token = await under.signIn();
  const body = { duration: "2h" };
  const begun = await under.ask("/api/maintenance/n1", { method: "PUT", body, ...bearer(token) });
  const { placement_paused: isPaused, placement_problem: problem } = begun.json as NodeMaintenance;
  assert.deepEqual([begun.status, isPaused, problem], [200, false, "the store is away"]);
  isAway = false;
  await until(async () => (await nodeSeenBy(under, token)).maintenance?.placement_paused === true);
});

test("what has no end, ends in the past or too late, or is of no node, is refused with its place", async (t) => {
  const under = await startTestConsole(t);
  const token = await under.signIn();
  for (const [body, pointer] of [
    [{}, "/duration"],
    [{ duration: "soon" }, "/duration"],
    [{ duration: "0h" }, "/duration"],
    [{ duration: "400d" }, "/duration"],
    [{ duration: "18:00", time_zone: "Mars/Olympus" }, "/duration"],
    [{ duration: "2h", ends_at: 4e9 }, "/duration"],
    [{ ends_at: 5 }, "/ends_at"],
  ] as const) {
    const answer = await under.ask("/api/maintenance/n1", { method: "PUT", body, ...bearer(token) });
    assert.equal(answer.status, 422, JSON.stringify(body));
    assert.deepEqual(
      [answer.problem?.code, answer.problem?.errors?.[0]?.pointer],
      ["MAINTENANCE_INVALID", pointer],
    );
  }
  const nobody = await under.ask("/api/maintenance/n9", {
    method: "PUT",
    body: { duration: "2h" },
    ...bearer(token),
  });
  assert.deepEqual([nobody.status, nobody.problem?.code], [404, "NO_SUCH_NODE"]);
});
