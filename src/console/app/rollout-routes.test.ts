// Tests rollouts through the API: three real sshds, a git repository, a built service (spec 4.7, D7).
import assert from "node:assert/strict";
import { appendFileSync, existsSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { WebSocket } from "ws";
import { withoutSshServer } from "#testing/ssh-server.ts";
import type { ActionRecord } from "#wire/webapi/action-record.ts";
import type { RolloutRecord } from "#wire/webapi/rollout.ts";
import { askHttp } from "./app.fixture.ts";
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
  const service = await cluster.startConsole(t);
  const good = cluster.commit({});
  const first = await service.end((await service.begin()).id);
  assert.equal(first.reason, undefined);
  assert.equal(first.state, "succeeded");
  assert.deepEqual(states(first), ["0 r1 succeeded gate", "1 r2 succeeded gate", "1 r3 succeeded gate"]);
  assert.deepEqual(
    cluster.nodes.map((node) => cluster.commitOf(node)),
    [good, good, good],
  );
  const bad = cluster.commit({ health: 503 });
  const begun = await service.begin({ gates: { health_seconds: 8, observe_seconds: 0 } });
  const stopped = await service.end(begun.id);
  assert.deepEqual(
    [stopped.state, stopped.reason],
    ["failed", "r1, gate: r1 was not well within 8 seconds of its restart: /health does not answer"],
  );
  assert.deepEqual(states(stopped), ["0 r1 failed gate", "1 r2 skipped -", "1 r3 skipped -"]);
  assert.deepEqual(
    cluster.nodes.map((node) => cluster.commitOf(node)),
    [bad, good, good],
  );
  assert.equal(stopped.can_go_back, true);
  const [canary] = cluster.nodes;
  assert.ok(canary !== undefined);
  appendFileSync(join(canary.repository, "behaviour.json"), "\nby hand");
  cluster.conflict(canary, good);
  const answer = await service.act(`/api/rollouts/${begun.id}/back`, {});
  assert.equal(answer.status, 202, answer.text);
  const back = await service.end((answer.json as RolloutRecord).id);
  assert.deepEqual([back.state, back.reason, back.back_of], ["succeeded", undefined, begun.id]);
  assert.deepEqual(states(back), ["0 r1 succeeded gate"]);
  assert.equal(cluster.commitOf(canary), good);
  assert.match(cluster.stashOf(canary), /^\+by hand$/m);
  const reset = back.nodes[0]?.steps.find(({ step }) => step === "back");
  assert.deepEqual(reset?.argv.slice(-4), ["git", "reset", "--keep", good]);
  const action = (await service.act(`/api/actions/${reset?.action_id}`)).json as ActionRecord;
  assert.deepEqual([action.state, action.targets[0]?.git_after], ["succeeded", good]);
  const kept = (await service.act(`/api/rollouts/${begun.id}`)).json as RolloutRecord;
  assert.equal(kept.back_by, back.id);
  cluster.commit({ errorsPerSecond: 50 });
  const failing = await service.end((await service.begin({ nodes: ["r1"] })).id);
  assert.match(
    failing.reason ?? "",
    /^r1, gate: r1 fails \S+ operations a second since its restart; before it were 0,/,
  );
  cluster.commit({});
});

test("a dry run shows the words of every node and changes nothing; a failing step stops it with its words before any restart", {
  skip,
}, async (t) => {
  const service = await cluster.startConsole(t);
  const before = cluster.nodes.map((node) => cluster.commitOf(node));
  const planned = await service.begin({ dry_run: true, canary: "r2" });
  assert.deepEqual(
    planned.nodes.map(({ node_id, wave, steps }) => [
      node_id,
      wave,
      steps.map(({ step, argv }) => `${step}: ${argv.slice(0, 4).join(" ")}`).slice(1, 3),
    ]),
    [
      ["r2", 0],
      ["r1", 1],
      ["r3", 1],
    ].map((place) => [...place, ["pull: git pull --ff-only --end-of-options", "build: make build"]]),
  );
  assert.equal(planned.state, "planned");
  assert.equal((await service.act(`/api/rollouts/${planned.id}`)).status, 404);
  const { total } = (await service.act("/api/rollouts")).json as { total: number };
  assert.equal(total, 0);
  const newest = cluster.commit({});
  const stopped = await service.end((await service.begin({ make_target: "broken" })).id);
  assert.equal(stopped.reason, "r1, build: exit code 2: make: *** [Makefile:4: broken] Error 3");
  assert.deepEqual(states(stopped), ["0 r1 failed build", "1 r2 skipped -", "1 r3 skipped -"]);
  assert.deepEqual(
    cluster.nodes.map((node) => cluster.commitOf(node)),
    [newest, before[1], before[2]],
  );
  const [first] = cluster.nodes;
  assert.ok(first !== undefined);
  writeFileSync(join(first.repository, "Makefile"), "build:\n");
  const dirty = await service.end((await service.begin()).id);
  assert.match(
    dirty.reason ?? "",
    /^r1, check: .* has a change of its own \(keep with 'git stash'\): M Makefile$/,
  );
  assert.equal(dirty.can_go_back, false);
  const answer = await service.act(`/api/rollouts/${dirty.id}/back`, {});
  assert.equal(answer.problem?.code, "ACTION_INVALID");
  const back = (await service.act(`/api/rollouts/${stopped.id}/back`, { dry_run: true }))
    .json as RolloutRecord;
  assert.deepEqual(
    back.nodes.map(({ node_id, steps }) => [node_id, steps[1]?.argv.join(" ")]),
    [
      [
        "r1",
        `git add --update && git stash push --message before going back to ${before[0]?.slice(0, 12)} && git reset --keep ${before[0]}`,
      ],
    ],
  );
  cluster.restore(first);
});

test("while it runs its nodes are its own and its state is told live; it is cancelled, and a console that ends leaves it interrupted, never running", {
  skip,
}, async (t) => {
  const service = await cluster.startConsole(t);
  const [first] = cluster.nodes;
  assert.ok(first !== undefined);
  const mark = join(first.repository, "begun.log");
  const slow = async (): Promise<RolloutRecord> => {
    rmSync(mark, { force: true });
    const begun = await service.begin({ nodes: ["r1"], make_target: "slow" });
    while (!existsSync(mark)) await sleep(50);
    return begun;
  };
  const one = await slow();
  const visitor = await askHttp(`${service.console.url}/api/rollouts/${one.id}`);
  assert.equal(visitor.status, 401);
  const held = await service.act("/api/actions/run", { action: "build", nodes: ["r1"] });
  assert.deepEqual([held.status, held.problem?.locked?.[0]?.action_id], [409, one.id]);
  assert.equal((await service.act(`/api/rollouts/${one.id}/back`, {})).status, 409);
  const heard: RolloutRecord[] = [];
  const socket = new WebSocket(`${service.console.url.replace("http", "ws")}/ws/actions`, {
    headers: { authorization: `Bearer ${service.token}` },
  });
  t.after(() => socket.terminate());
  socket.on("open", () => socket.send(JSON.stringify({ type: "subscribe", rollout_id: one.id })));
  socket.on("message", (raw: Buffer) => {
    const { type, data } = JSON.parse(raw.toString()) as { type: string; data: RolloutRecord };
    if (type === "rollout.state") heard.push(data);
  });
  while (heard.length === 0) await sleep(20);
  assert.equal((await service.act(`/api/rollouts/${one.id}/cancel`, {})).status, 202);
  const cancelled = await service.end(one.id);
  assert.deepEqual([cancelled.state, ...states(cancelled)], ["cancelled", "0 r1 cancelled build"]);
  while (heard.at(-1)?.state === "running") await sleep(20);
  assert.deepEqual(heard.at(-1), cancelled);
  const two = await slow();
  await service.restart();
  const record = (await service.act(`/api/rollouts/${two.id}`)).json as RolloutRecord;
  assert.deepEqual([record.state, ...states(record)], ["interrupted", "0 r1 unfinished build"]);
  assert.equal(record.can_go_back, true);
});

test("a console that stops ends rollouts and other actions at the same time", { skip }, async (t) => {
  const service = await cluster.startConsole(t);
  const [first] = cluster.nodes;
  assert.ok(first !== undefined);
  const mark = join(first.repository, "begun.log");
  const make = join(first.ssh.programs, "make");
  rmSync(mark, { force: true });
  writeFileSync(make, `#!/bin/sh\ntrap '' TERM\ntouch '${mark}'\nwhile :; do sleep 1; done\n`, {
    mode: 0o755,
  });
  t.after(() => rmSync(make, { force: true }));
  await service.begin({ nodes: ["r1"] });
  const custom = { action: "custom", nodes: ["r2"], command: "sleep 300", timeout_seconds: 300 };
  assert.equal((await service.act("/api/actions/run", custom)).status, 202);
  const records = async (): Promise<ActionRecord[]> =>
    ((await service.act("/api/actions/history")).json as { records: ActionRecord[] }).records;
  const find = async (action: string): Promise<ActionRecord | undefined> =>
    (await records()).find((record) => record.action === action);
  while (!existsSync(mark) || (await find("custom"))?.targets[0]?.state !== "running") await sleep(50);
  await service.restart();
  const [stubborn, other] = [await find("build"), await find("custom")];
  assert.deepEqual([stubborn?.state, other?.state], ["cancelled", "cancelled"]);
  assert.ok((other?.finished_at ?? 0) < (stubborn?.finished_at ?? 0), "one after the other");
});
