// What is sent of a node that does not answer beside its absence (decisions D11, D22).
import assert from "node:assert/strict";
import { test } from "node:test";
import type { AlertType } from "#wire/webapi/alert.ts";
import type { Condition, Occurrence } from "./condition.ts";
import { nodeCondition, ServiceRun } from "./notification-service.fixture.ts";

const offline = (level: Condition["level"]): Condition[] => [nodeCondition("node_offline", "n1", level)];

function event(type: AlertType): Occurrence {
  return { key: `${type}:n1`, type, level: "critical", nodeId: "n1", nodeName: "n1" };
}

test("what a node's first answer after an absence tells of attempts and of a restore is sent, its restart is not (D11, D22)", () => {
  const run = new ServiceRun({ groupMs: 0 });
  run.run(600, () => offline("critical"));
  const types: AlertType[] = ["mock_token", "node_restored", "service_restart"];
  run.run(
    5,
    () => offline("clear"),
    () => types.map(event),
  );
  run.run(30, () => offline("clear"));
  assert.deepEqual(run.told(), [
    "30 raised node_offline:n1 critical",
    "600 raised mock_token:n1 critical",
    "600 raised node_restored:n1 critical",
    "605 over node_offline:n1 critical",
  ]);
});

test("an attempt whose message waits for others when its node falls silent is sent all the same (D22)", () => {
  const run = new ServiceRun();
  run.run(60, () => offline("clear"));
  run.run(
    5,
    () => offline("clear"),
    () => [event("mock_token"), event("service_restart")],
  );
  run.run(60, () => offline("critical"));
  assert.deepEqual(run.told(), ["90 raised mock_token:n1 critical"]);
});
