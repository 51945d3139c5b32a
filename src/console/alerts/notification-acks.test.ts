// What an operator's acknowledgement keeps from being sent, before an alert's first message and after it (D11).
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Condition, Occurrence } from "./condition.ts";
import { diskCondition, ServiceRun } from "./notification-service.fixture.ts";

/** A run after its start-up hold, with every disk at 50 %. */
function calm(): ServiceRun {
  const run = new ServiceRun();
  run.run(60, () => [diskCondition("n1", 50)]);
  return run;
}

test("an acknowledgement before the first message keeps it from no receiver, and from being repeated (D11)", () => {
  const run = calm();
  const full = (): Condition[] => [diskCondition("n1", 90)];
  // The console shows the alert a minute before the message about it.
  run.run(10, full);
  assert.deepEqual(
    [run.service.acked("storage_warning:n1"), run.service.acked("storage_warning:n1")],
    [true, false],
  );
  assert.deepEqual(
    run.service.alerts(run.now).map(({ tracked, toldAtMs }) => [tracked.isAcked, toldAtMs]),
    [[true, undefined]],
  );
  run.run(9 * 3_600, full);
  assert.deepEqual(run.told(), ["95 raised storage_warning:n1 warning"]);
  run.run(100, () => [diskCondition("n1", 99)]);
  run.run(5 * 3_600, () => [diskCondition("n1", 99)]);
  assert.deepEqual(
    run.told().map((line) => line.split(" ")[1]),
    ["raised", "worse", "repeat"],
  );
});

test("an acknowledgement before the first message covers neither a worse alert nor the next one (D11)", () => {
  const reasons = (seconds: number, change: (run: ServiceRun) => void): (string | undefined)[] => {
    const run = calm();
    run.run(seconds, () => [diskCondition("n1", 90)]);
    assert.equal(run.service.acked("storage_warning:n1"), true);
    change(run);
    run.run(4 * 3_600 + 60, () => [diskCondition("n1", 99)]);
    return run.told().map((line) => line.split(" ")[1]);
  };
  const twice = ["raised", "repeat"];
  assert.deepEqual(
    reasons(20, () => undefined),
    twice,
  );
  assert.deepEqual(
    reasons(5, (run) => run.run(100, () => [diskCondition("n1", 10)])),
    twice,
  );
  assert.deepEqual(
    reasons(20, (run) => run.service.forget("storage_warning:n1", run.now)),
    twice,
  );
});

test("what was seen or told again as a warning is news once it is critical again (D11)", () => {
  const reasons = (warningSeconds: number, change: (run: ServiceRun) => void): (string | undefined)[] => {
    const run = calm();
    run.run(200, () => [diskCondition("n1", 97)]);
    run.run(200, () => [diskCondition("n1", 85)]);
    change(run);
    run.run(warningSeconds, () => [diskCondition("n1", 85)]);
    run.run(100, () => [diskCondition("n1", 97)]);
    return run.told().map((line) => line.split(" ").slice(1).join(" "));
  };
  const [raised, worse] = ["raised storage_warning:n1 critical", "worse storage_warning:n1 critical"];
  assert.deepEqual(
    reasons(600, ({ service }) => assert.equal(service.acked("storage_warning:n1"), true)),
    [raised, worse],
  );
  assert.deepEqual(
    reasons(4 * 3_600, () => undefined),
    [raised, "repeat storage_warning:n1 warning", worse],
  );
  assert.deepEqual(
    reasons(600, () => undefined),
    [raised],
  );
});

test("an acknowledged event that repeats before its first message stays acknowledged (D11)", () => {
  const run = calm();
  const event: Occurrence = { key: "mock_token:n1", type: "mock_token", level: "critical", nodeId: "n1" };
  const isAcked = (): readonly boolean[] => run.service.alerts(run.now).map(({ tracked }) => tracked.isAcked);
  run.run(
    1,
    () => [],
    () => [event],
  );
  run.service.acked(event.key);
  run.run(
    40,
    () => [],
    (second) => (second % 10 === 0 ? [event] : []),
  );
  assert.deepEqual([run.told(), isAcked()], [["90 raised mock_token:n1 critical"], [true]]);
});

test("nobody is told again of a group whose alerts all were seen, until one of them ends (D11)", () => {
  const run = calm();
  run.run(60, () => [diskCondition("n1", 90)]);
  run.service.acked("storage_warning:n1");
  run.run(9 * 3_600, () => [diskCondition("n1", 90)]);
  run.run(200, () => [diskCondition("n1", 10)]);
  assert.deepEqual(
    run.told().map((line) => line.split(" ")[1]),
    ["raised", "over"],
  );
});
