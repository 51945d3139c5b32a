// Tests alerts of actions: a failure stays open until the same action succeeds on the same node (D11).
import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import type { TargetRunner } from "#console/orchestration/action-run.ts";
import type { ActionRecord } from "#wire/webapi/action-record.ts";
import type { RolloutRecord } from "#wire/webapi/rollout.ts";
import { tellingOfHostKeys, tellOfAction, tellOfRollout } from "./action-alerts.ts";
import { type ServiceUnderTest, startService } from "./alert-service.fixture.ts";

const ends: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});

type State = ActionRecord["targets"][number]["state"];

function record(
  action: ActionRecord["action"],
  states: Readonly<Record<string, State>>,
  request: Record<string, unknown> = {},
): ActionRecord {
  const targets = Object.entries(states).map(([id, state]) => ({
    node_id: id,
    node_name: id,
    state,
    message: "why",
  }));
  return { action, request: { action, dry_run: false, ...request }, targets } as unknown as ActionRecord;
}

async function open({ service }: ServiceUnderTest): Promise<string[]> {
  await service.saved();
  const { alerts } = service.list("operator", { isUnresolved: true }, {});
  return alerts.map(({ key }) => key).toSorted();
}

test("what failed is over once the same has succeeded on that node; another action, or another node, ends nothing", async () => {
  const under = await startService(ends, ["n1", "n2"]);
  const { service } = under;
  tellOfAction(record("build", { n1: "failed", n2: "failed" }, { make_target: "build" }), service);
  tellOfAction(record("restart", { n1: "timed_out" }, { target_service: "fileserver" }), service);
  const [buildOn1, buildOn2, restartOn1] = [
    "action_failed:n1:build:build",
    "action_failed:n2:build:build",
    "action_failed:n1:restart:fileserver",
  ];
  assert.deepEqual(await open(under), [buildOn1, restartOn1, buildOn2].toSorted());
  tellOfAction(record("pull", { n1: "succeeded", n2: "succeeded" }), service);
  tellOfAction(record("build", { n1: "succeeded" }, { make_target: "clean" }), service);
  tellOfAction(record("restart", { n1: "succeeded" }, { target_service: "admin" }), service);
  tellOfAction(
    record("build", { n1: "succeeded", n2: "succeeded" }, { make_target: "build", dry_run: true }),
    service,
  );
  assert.equal((await open(under)).length, 3);
  tellOfAction(record("build", { n1: "succeeded", n2: "cancelled" }, { make_target: "build" }), service);
  assert.deepEqual(await open(under), [restartOn1, buildOn2].toSorted());
  tellOfAction(record("restart", { n1: "succeeded" }, { target_service: "all" }), service);
  assert.deepEqual(await open(under), [buildOn2]);
  const [, ended] = under.events.filter(({ kind }) => kind === "resolved");
  assert.equal(ended?.alert.resolved_by, "auto");
});

test("a custom command is the same when it is the same text; a rollout's gate is made good by a later rollout", async () => {
  const under = await startService(ends, ["n1"]);
  const { service } = under;
  tellOfAction(record("custom", { n1: "failed" }, { command: "df -h" }), service);
  tellOfAction(record("custom", { n1: "succeeded" }, { command: "uptime" }), service);
  assert.equal((await open(under)).length, 1);
  tellOfAction(record("custom", { n1: "succeeded" }, { command: "df -h" }), service);
  assert.deepEqual(await open(under), []);
  const rollout = (state: string): RolloutRecord =>
    ({
      nodes: [{ node_id: "n1", node_name: "n1", state, step: "gate", message: "it is not well" }],
    }) as unknown as RolloutRecord;
  tellOfRollout(rollout("failed"), service);
  assert.deepEqual(await open(under), ["action_failed:n1:rollout"]);
  tellOfRollout(rollout("succeeded"), service);
  assert.deepEqual(await open(under), []);
});

test("another host key is told as critical wherever it is seen, so by a log or a rollout's check too", async () => {
  const under = await startService(ends, ["n1"]);
  const message = "the host at svc@n1 port 22 shows SHA256:abc, pinned is SHA256:def; nothing was sent";
  const results = [{ state: "succeeded" }, { state: "unreachable", reason: "HOST_KEY_CHANGED", message }];
  const runner = { run: async () => results.shift() } as unknown as TargetRunner;
  const telling = tellingOfHostKeys(runner, (id) => id, under.service);
  const run = () => telling.run({ id: "n1" } as never, [], {} as never);
  await run();
  assert.deepEqual(await open(under), []);
  assert.equal((await run()).state, "unreachable");
  assert.deepEqual(await open(under), ["host_key_changed:n1"]);
});
