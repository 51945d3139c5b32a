// Tests the texts about maintenance: end, reason, and whether new users stay away.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { LiveNode } from "./live-node.ts";
import { isMaintained, maintenanceMeans, maintenanceText } from "./maintenance.ts";

const maintenance = {
  node_id: "n1",
  starts_at: 1_790_000_000,
  ends_at: 1_790_003_600,
  created_by: "operator:5f3c9a10",
  comment: "a new disk",
  placement_paused: true,
};
const node = (fields: Partial<LiveNode>): LiveNode => ({ id: "n1", name: "fs-1", ...fields }) as LiveNode;

test("a node in maintenance is said to be, until when and why; what an action does has no reason", () => {
  assert.equal(maintenanceText(node({})), undefined);
  assert.equal(isMaintained(node({})), false);
  const wanted = node({ maintenance_until: maintenance.ends_at, maintenance });
  assert.match(maintenanceText(wanted) ?? "", /^in maintenance until .+ \(a new disk\)$/);
  assert.match(
    maintenanceText(node({ maintenance_until: maintenance.ends_at })) ?? "",
    /^in maintenance until [^(]+$/,
  );
  assert.equal(maintenanceMeans(node({ maintenance_until: maintenance.ends_at })), "");
});

test("new users stay away only where the store knows it", () => {
  assert.equal(maintenanceMeans(node({ maintenance })), "Nobody is told of it, and no new user comes to it.");
  const away = { ...maintenance, placement_paused: false, placement_problem: "the store is away" };
  assert.equal(
    maintenanceMeans(node({ maintenance: away })),
    "Nobody is told of it. New users may still come to it, since the store is away; the console goes on trying.",
  );
});
