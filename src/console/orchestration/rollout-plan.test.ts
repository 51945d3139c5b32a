// Tests a rollout's plan: its commands for each node, and their order (spec 4.7; decisions D7, T14, T15).
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { SshNode } from "#base/ssh-node.ts";
import { type RolloutRecord, type RolloutRequest, rolloutRequest } from "#wire/webapi/rollout.ts";
import { planBack, planForward, plannedSteps, type RolloutNode } from "./rollout-plan.ts";

const BEFORE = "a".repeat(40);

function node(id: string, services: SshNode["services"] = { fileserver: {}, admin: {} }): SshNode {
  return { id, host: "h", port: 22, user: "svc", hostKey: "", repository: "/opt/grove", services };
}

const request = (more: object = {}): RolloutRequest =>
  rolloutRequest.parse({ nodes: "all", branch: "main", target_service: "all", ...more });

const order = (plan: readonly RolloutNode[]): string[] =>
  plan.map(({ node: { id }, wave }) => `${wave} ${id}`);

test("one node goes first, the one that was chosen or the first that was named; the rest follows in steps", () => {
  const enrolled = ["n4", "n2", "n1", "n3"].map((id) => node(id));
  assert.deepEqual(order(planForward(request(), enrolled)), ["0 n1", "1 n2", "2 n3", "3 n4"]);
  assert.deepEqual(order(planForward(request({ step_size: 2 }), enrolled)), ["0 n1", "1 n2", "1 n3", "2 n4"]);
  const chosen = request({ nodes: ["n3", "n1", "n2"], canary: "n2", step_size: 50 });
  assert.deepEqual(order(planForward(chosen, enrolled)), ["0 n2", "1 n3", "1 n1"]);
});

test("every node is in one step exactly, and no step after the first is larger than it may be", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 50 }), fc.integer({ min: 1, max: 50 }), (count, size) => {
      const enrolled = Array.from({ length: count }, (_, at) => node(`n${at}`));
      const plan = planForward(request({ step_size: size }), enrolled);
      assert.equal(new Set(plan.map(({ node: { id } }) => id)).size, count);
      const sizes = new Map<number, number>();
      for (const { wave } of plan) sizes.set(wave, (sizes.get(wave) ?? 0) + 1);
      assert.equal(sizes.get(0), 1);
      for (const [wave, members] of sizes) assert.ok(wave === 0 || members <= size);
      assert.deepEqual(
        plan.map(({ wave }) => wave),
        plan.map(({ wave }) => wave).toSorted((a, b) => a - b),
      );
    }),
  );
});

test("a dry run shows each word; the console itself is never restarted by a rollout (T14)", () => {
  const [only] = planForward(request(), [node("n1", { fileserver: {}, metaserver: {}, admin: {} })]);
  assert.ok(only !== undefined);
  assert.deepEqual(
    plannedSteps(only).map(({ step, argv }) => `${step}: ${argv.join(" ")}`),
    [
      "check: git rev-parse HEAD && git status --porcelain --untracked-files=no",
      "pull: git pull --ff-only --end-of-options origin main",
      "build: make build",
      "restart: sudo -n systemctl restart svc-fileserver && sudo -n systemctl restart svc-metaserver",
    ],
  );
  assert.equal(only.restartsFileServer, true);
});

test("of all nodes those are meant that have the service; of those that were named each must have it", () => {
  const enrolled = [node("n1"), node("n2", { metaserver: {} }), node("n3", { admin: {} })];
  assert.deepEqual(order(planForward(request(), enrolled)), ["0 n1", "1 n2"]);
  assert.deepEqual(order(planForward(request({ target_service: "metaserver" }), enrolled)), ["0 n2"]);
  assert.throws(() => planForward(request({ nodes: ["n1", "n3"] }), enrolled), /n3 runs no service/);
  assert.throws(() => planForward(request({ nodes: ["n1", "n9"] }), enrolled), /"n9" is enrolled/);
  assert.throws(() => planForward(request({ canary: "n3" }), enrolled), /n3/);
  assert.throws(() => planForward(request(), []), /no enrolled node/);
});

test("the way back is an exact reset that keeps local changes, on the nodes that were changed and on no others", () => {
  const enrolled = [node("n1"), node("n2"), node("n3")];
  const requested = request();
  const kept = planForward(requested, enrolled).map((each, at) => ({
    node_id: each.node.id,
    wave: each.wave,
    changed: at < 2,
    ...(at === 1 ? {} : { commit_before: BEFORE }),
  }));
  const record = { request: requested, nodes: kept } as unknown as RolloutRecord;
  const back = planBack(record, enrolled);
  assert.deepEqual(order(back.nodes), ["0 n1"]);
  assert.deepEqual(back.left, []);
  const [only] = back.nodes;
  assert.ok(only !== undefined);
  const stash = ["git", "stash", "push", "--message", "before going back to aaaaaaaaaaaa"];
  const argv = ["git", "add", "--update", "&&", ...stash, "&&", "git", "reset", "--keep", BEFORE];
  assert.deepEqual(plannedSteps(only)[1], { step: "back", argv });
  assert.throws(() => planBack(record, []), /"n1" is enrolled/);
});

test("a node that is not enrolled any more is named, and keeps no other from going back", () => {
  const kept = ["n1", "n2"].map((id, wave) => ({
    node_id: id,
    node_name: id,
    wave,
    changed: true,
    commit_before: BEFORE,
  }));
  const record = { request: request(), nodes: kept } as unknown as RolloutRecord;
  const { nodes, left } = planBack(record, [node("n2")]);
  assert.deepEqual(order(nodes), ["1 n2"]);
  assert.deepEqual(
    left.map(({ node_id, state, message }) => [node_id, state, message]),
    [["n1", "skipped", "not enrolled any more, so it stays as it is; grove node add enrols it"]],
  );
});

test("whatever a record holds as a commit, only the whole name of one becomes an argument (T15)", () => {
  fc.assert(
    fc.property(
      fc.oneof(fc.string(), fc.constantFrom("--hard", "HEAD~1", `${BEFORE} x`, "A".repeat(40))),
      (text) => {
        const kept = { node_id: "n1", wave: 0, changed: true, commit_before: text };
        const record = { request: request(), nodes: [kept] } as unknown as RolloutRecord;
        assert.deepEqual(planBack(record, [node("n1")]), { nodes: [], left: [] });
      },
    ),
  );
});
