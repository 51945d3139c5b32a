// Rollouts through the console's front door: three real sshds, a real repository, a real Makefile, a service that is restarted (spec 4.7, D7).
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { withoutSshServer } from "#testing/ssh-server.ts";
import type { ActionRecord } from "#webapi/action-record.ts";
import type { RolloutRecord } from "#webapi/rollout.ts";
import { type RolloutCluster, startRolloutCluster } from "./rollout-cluster.fixture.ts";

const skip = withoutSshServer();

let cluster: RolloutCluster;

before(async () => {
  if (skip === false) cluster = await startRolloutCluster();
});

after(async () => {
  await cluster?.stop();
});

const states = ({ nodes }: RolloutRecord): string[] =>
  nodes.map(({ node_id, state, step, wave }) => `${wave} ${node_id} ${state} ${step ?? "-"}`);

test("a rollout goes to one node and then to the rest; one that fails its gate stops there, and one call brings the commit before back", {
  skip,
}, async (t) => {
  const desk = await cluster.startConsole(t);
  const good = cluster.commit({});
  const first = await desk.end((await desk.begin()).id);
  assert.equal(first.reason, undefined);
  assert.equal(first.state, "succeeded");
  assert.deepEqual(states(first), ["0 r1 succeeded gate", "1 r2 succeeded gate", "1 r3 succeeded gate"]);
  assert.deepEqual(
    cluster.nodes.map((node) => cluster.commitOf(node)),
    [good, good, good],
  );
  const bad = cluster.commit({ health: 503 });
  const begun = await desk.begin({ gates: { health_seconds: 2 } });
  const stopped = await desk.end(begun.id);
  assert.deepEqual(
    [stopped.state, stopped.reason],
    ["failed", "r1, gate: r1 was not well within 2 seconds of its restart: /health does not answer"],
  );
  assert.deepEqual(states(stopped), ["0 r1 failed gate", "1 r2 skipped -", "1 r3 skipped -"]);
  assert.deepEqual(
    cluster.nodes.map((node) => cluster.commitOf(node)),
    [bad, good, good],
  );
  assert.equal(stopped.can_go_back, true);
  const answer = await desk.act(`/api/actions/rollouts/${begun.id}/back`, {});
  assert.equal(answer.status, 202, answer.text);
  const back = await desk.end((answer.json as RolloutRecord).id);
  assert.deepEqual([back.state, back.reason, back.back_of], ["succeeded", undefined, begun.id]);
  assert.deepEqual(states(back), ["0 r1 succeeded gate"]);
  assert.equal(cluster.commitOf(cluster.nodes[0]!), good);
  const reset = back.nodes[0]?.steps.find(({ step }) => step === "back");
  assert.deepEqual(reset?.argv, ["git", "reset", "--hard", good]);
  const action = (await desk.act(`/api/actions/${reset?.action_id}`)).json as ActionRecord;
  assert.deepEqual([action.state, action.targets[0]?.git_after], ["succeeded", good]);
  const kept = (await desk.act(`/api/actions/rollouts/${begun.id}`)).json as RolloutRecord;
  assert.equal(kept.back_by, back.id);
});
