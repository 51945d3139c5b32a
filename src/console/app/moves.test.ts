// Tests that operators take a node out of service, bring it back, and rebalance: plan, moves, copies, audit lines.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { ManualClock } from "#base/clock.ts";
import { startFakeNode } from "#base/fake-nodes.fixture.ts";
import { MoveRunner } from "#console/services/move-runner.ts";
import { progressOf } from "#console/services/root-move-service.ts";
import type { NodeStore } from "#metaserver/directory/directory.ts";
import type { RootMove } from "#metaserver/directory/root-move.ts";
import { until } from "#testing/until.ts";
import type { OperatorCluster } from "#wire/webapi/cluster.ts";
import type { Problem } from "#wire/webapi/problem.ts";
import type { DrainPlanView, MoveList, RebalancePlanView } from "#wire/webapi/root-move.ts";
import {
  type FilledStore,
  type OperatedConsole,
  operatedConsole,
  testConsoleOptions,
  USER,
} from "./console.fixture.ts";

const TIMEOUT = { timeout: 120_000 };
const ROOT_BYTES = 5_000_000;

interface ActingNodes extends Awaited<ReturnType<typeof testConsoleOptions>> {
  /** From now on moves that have begun switch. */
  readonly switchMoves: () => void;
}

interface TwoNodes extends OperatedConsole {
  readonly filled: FilledStore;
  list(): Promise<MoveList>;
  /** From now on moves that have begun switch. */
  switchMoves(): void;
}

/** Options over n1 with Alice's root and an empty n2, both of which heartbeat and tell sizes. */
async function actingNodes(t: TestContext): Promise<ActingNodes> {
  const other = await startFakeNode("n2", []);
  const under = await testConsoleOptions(t, [other]);
  const { ends, filled } = under;
  ends.unshift(() => other.close());
  const { store, epochs } = filled;
  let mayMove = false;
  let told = 0;
  const callerOf = (fsId: string): { fsId: string; epoch: number; speaker: { kind: "mock" } } => ({
    fsId,
    epoch: epochs.get(fsId) ?? 0,
    speaker: { kind: "mock" },
  });
  const act = async (): Promise<void> => {
    for (const [fsId, epoch] of epochs) {
      const beat = { fsId, epoch, rootsVersion: 1n, draining: false, speaker: { kind: "mock" } } as const;
      await store.heartbeat({ ...beat, diskFreeBytes: fsId === "n1" ? 300_000_000_000n : 900_000_000_000n });
    }
    const question = await store.sizesWanted();
    if (question > told) {
      told = question;
      const sizes = { n1: [{ owner: USER, bytes: ROOT_BYTES }], n2: [] };
      for (const [fsId, list] of Object.entries(sizes)) {
        await store.noteRootSizes(callerOf(fsId), { question, page: 0, isLast: true, sizes: list });
      }
    }
    const moves = await store.rootMoves();
    for (const { source, target, moveId } of moves.filter(({ state }) => state === "undone")) {
      for (const fsId of [source, target]) await store.advanceMove(callerOf(fsId), moveId, { step: "end" });
    }
    const move = moves.find(({ state }) => state === "copying");
    if (move === undefined || !mayMove) return;
    const { attempt } = await store.advanceMove(callerOf(move.target), move.moveId, { step: "freeze" });
    await store.advanceMove(callerOf(move.target), move.moveId, { step: "switch", attempt });
  };
  const acting = new AbortController();
  const ended = (async () => {
    while (!acting.signal.aborted) {
      await act().catch(() => undefined);
      await sleep(100);
    }
  })();
  ends.push(() => {
    acting.abort();
    return ended;
  });
  return {
    ...under,
    switchMoves() {
      mayMove = true;
    },
  };
}

/** A console over these nodes. */
async function startTwoNodes(t: TestContext): Promise<TwoNodes> {
  const { options, ends, filled, switchMoves } = await actingNodes(t);
  const { ask, visit } = await operatedConsole(options, ends);
  return {
    filled,
    ask,
    visit,
    list: async () => (await ask("/api/moves")).json as MoveList,
    switchMoves,
  };
}

/** The store with some methods of the test's own. */
function storeWith<T extends object>(store: T, own: Partial<T>): T {
  const read = (_: object, name: string): unknown => {
    const key = name as keyof T;
    if (own[key] !== undefined) return own[key];
    const value = store[key] as unknown;
    return typeof value === "function" ? (value.bind(store) as unknown) : value;
  };
  return new Proxy(store, { get: read as never });
}

/** A runner whose store does some things in a way of its own. */
function runnerOver(
  { dataFolder, clock, log, withNodeStore }: ActingNodes["options"],
  own: (store: NodeStore) => Partial<NodeStore>,
): Promise<MoveRunner> {
  const withStore: typeof withNodeStore = (work) =>
    withNodeStore((store) => work(storeWith(store, own(store))));
  return MoveRunner.open({ dataFolder, clock, log, withStore });
}

test(
  "a node is taken out of service by a plan that is shown first, and its copies go once confirmed",
  TIMEOUT,
  async (t) => {
    const { filled, ask, list, visit, switchMoves } = await startTwoNodes(t);
    const plan = (await ask("/api/drains/n1/plan", { method: "POST" })).json as DrainPlanView;
    const names = { from: "n1", from_name: "Node 1", to: "n2", to_name: "Node 2" };
    assert.deepEqual(plan.moves, [{ owner: USER, bytes: ROOT_BYTES, ...names }]);
    assert.deepEqual(
      [plan.moves_total, plan.bytes_total, plan.blocked_by, plan.without_room],
      [1, ROOT_BYTES, [], []],
    );
    assert.deepEqual([await filled.store.drainedNodes(), await filled.store.rootMoves()], [[], []]);
    assert.equal((await ask("/api/drains/n1", { method: "PUT" })).status, 200);
    assert.deepEqual(await filled.store.drainedNodes(), ["n1"]);
    await until(async () => (await list()).moves[0]?.state === "copying", "the move to begin");
    const [drained] = (await list()).drains;
    assert.deepEqual(
      [drained?.node_id, drained?.driven, drained?.roots_left, drained?.under_way],
      ["n1", true, 1, 1],
    );
    const seen = async (): Promise<true | undefined> =>
      ((await ask("/api/cluster")).json as OperatorCluster).nodes.find(({ id }) => id === "n1")?.drained;
    await until(async () => (await seen()) === true, "the node list to say so");
    const visited = (await visit("/api/cluster")).text;
    assert.ok(!visited.includes("drained"), "visitors learn nothing of it");
    for (const path of ["/api/moves"]) assert.equal((await visit(path)).status, 401);
    switchMoves();
    await until(async () => (await list()).moves[0]?.state === "switched", "the switch");
    await until(async () => (await list()).drains[0]?.driven === false, "the end of the drain");
    const copies = async (): Promise<unknown> => {
      const [drain] = (await list()).drains;
      return [drain?.kept_copies, drain?.removing_copies];
    };
    assert.deepEqual(await copies(), [1, 0]);
    const confirmed = await ask("/api/drains/n1/confirm", { method: "POST" });
    assert.deepEqual(confirmed.json, { decided: 1 });
    assert.deepEqual(await copies(), [0, 1]);
    assert.deepEqual(
      (await filled.store.rootMoves()).map(({ state }) => state),
      ["confirmed"],
    );
    assert.equal((await ask("/api/drains/n1", { method: "DELETE" })).status, 200);
    assert.deepEqual(await filled.store.drainedNodes(), []);
    await until(async () => (await seen()) === undefined, "the node list to forget it");
    const audit = (await ask("/api/audit?act=drain.*")).text;
    for (const act of ["drain.begin", "drain.confirm", "drain.end"])
      assert.ok(audit.includes(`"${act}"`), act);
  },
);

test("a drain that cannot end is refused with the reason, and nothing begins", TIMEOUT, async (t) => {
  const { filled, ask } = await startTwoNodes(t);
  await filled.store.beginMove({ owner: USER, target: "n2" });
  const refused = await ask("/api/drains/n2", { method: "PUT" });
  assert.equal(refused.status, 409);
  assert.equal((refused.json as Problem).code, "MOVES_REFUSED");
  assert.match((refused.json as Problem).detail, /Roots are on their way to Node 2 \(alice@example\.com\)/);
  assert.deepEqual(await filled.store.drainedNodes(), []);
  assert.equal((await ask(`/api/moves/${USER}/confirm`, { method: "POST" })).status, 409);
  const undone = await ask(`/api/moves/${USER}/undo`, { method: "POST" });
  assert.equal((undone.json as { state: string }).state, "undone");
  assert.equal((await ask("/api/moves/nobody@example.com/undo", { method: "POST" })).status, 404);
  assert.equal((await ask("/api/drains/n9/plan", { method: "POST" })).status, 404);
  assert.ok((await ask("/api/audit?act=move.*")).text.includes('"move.undo"'));
});

test("a rebalancing moves what its plan has shown, and that plan once", TIMEOUT, async (t) => {
  const { ask, list, switchMoves } = await startTwoNodes(t);
  switchMoves();
  const plan = (await ask("/api/rebalance/plan", { method: "POST" })).json as RebalancePlanView;
  assert.deepEqual(
    plan.moves.map(({ owner, from, to }) => [owner, from, to]),
    [[USER, "n1", "n2"]],
  );
  const other = await ask("/api/rebalance", { method: "POST", body: { plan_id: "another" } });
  assert.equal(other.status, 409);
  const begun = await ask("/api/rebalance", { method: "POST", body: { plan_id: plan.plan_id } });
  assert.deepEqual(begun.json, { decided: 1 });
  assert.equal(
    (await ask("/api/rebalance", { method: "POST", body: { plan_id: plan.plan_id } })).status,
    409,
  );
  await until(async () => (await list()).moves[0]?.state === "switched", "the switch");
  assert.equal((await list()).rebalance, null);
  assert.ok((await ask("/api/audit?act=rebalance.*")).text.includes('"rebalance.begin"'));
});

test(
  "a drain goes on in the next console, and stops once the node is back in service",
  TIMEOUT,
  async (t) => {
    const { options, filled } = await actingNodes(t);
    const { dataFolder, clock, log, withNodeStore, directory } = options;
    const away = (): Promise<never> => Promise.reject(new Error("the store is away"));
    const before = await MoveRunner.open({ dataFolder, clock, log, withStore: away });
    await before.drain("n1", []);
    await until(() => before.drainOf("n1")?.problem === "the store is away", "the reason why it waits");
    await before.close();
    await filled.store.setDrained("n1", true);
    const after = await MoveRunner.open({ dataFolder, clock, log, withStore: withNodeStore });
    await until(async () => (await directory.rootMoves())[0]?.target === "n2", "the move to begin");
    await filled.store.setDrained("n1", false);
    await until(() => after.drainOf("n1") === undefined, "the end of the drain");
    await after.close();
    await directory.close();
  },
);

test("a node's roots go to the shared engine once one of its nodes runs", TIMEOUT, async (t) => {
  const { ask, list, filled } = await startTwoNodes(t);
  const order = { method: "POST", body: { to_engine: true } } as const;
  const alone = (await ask("/api/drains/n1/plan", order)).json as DrainPlanView;
  assert.deepEqual([alone.to_engine, alone.engine_nodes, alone.without_room_total], [true, 0, 0]);
  assert.match(alone.blocked_by.join(), /^No FileServer of the shared engine runs: start one/);
  assert.equal((await ask("/api/drains/n1", { method: "PUT", body: { to_engine: true } })).status, 409);
  await filled.joinEngine("n2");
  const plan = (await ask("/api/drains/n1/plan", order)).json as DrainPlanView;
  assert.deepEqual([plan.to_engine, plan.on_engine, plan.engine_nodes], [true, false, 1]);
  assert.deepEqual(
    plan.moves.map(({ owner, to }) => [owner, to]),
    [[USER, "n2"]],
  );
  // The other way has no room: the only other node holds no roots on its disk.
  const other = (await ask("/api/drains/n1/plan", { method: "POST" })).json as DrainPlanView;
  assert.deepEqual([other.to_engine, other.engine_nodes, other.without_room_total], [false, 1, 1]);
  assert.equal((await ask("/api/drains/n1", { method: "PUT", body: { to_engine: true } })).status, 200);
  await until(async () => (await filled.store.rootMoves())[0]?.target === "n2", "the move to the engine");
  const [drained] = (await list()).drains;
  assert.deepEqual([drained?.driven, drained?.to_engine, drained?.under_way], [true, true, 1]);
  assert.match((await ask("/api/audit?act=drain.*")).text, /"to":"engine"/);
});

test("a planned move that the store cannot take now is begun in a later turn", TIMEOUT, async (t) => {
  const { options } = await actingNodes(t);
  const { directory } = options;
  let asked = 0;
  // The store breaks off in the middle of a turn, once.
  const runner = await runnerOver(options, (store) => ({
    beginMove: (order) =>
      ++asked === 1 ? Promise.reject(new Error("the store is away")) : store.beginMove(order),
  }));
  await runner.rebalance([{ owner: USER, target: "n2" }]);
  await until(() => asked === 1, "the first try");
  assert.equal(runner.rebalancing()?.waiting, 1);
  await until(async () => (await directory.rootMoves())[0]?.target === "n2", "the move to begin");
  await until(() => runner.rebalancing() === undefined, "nothing that waits");
  assert.equal(asked, 2);
  await runner.close();
  await directory.close();
});

test("a drain that is begun in the middle of a turn goes on in the next one", TIMEOUT, async (t) => {
  const { options, filled } = await actingNodes(t);
  const { directory } = options;
  const reading = Promise.withResolvers<void>();
  const goesOn = Promise.withResolvers<void>();
  const runner = await runnerOver(options, (store) => ({
    // By now the turn knows which nodes are drained.
    listRoots: async (after) => {
      reading.resolve();
      await goesOn.promise;
      return await store.listRoots(after);
    },
  }));
  await runner.rebalance([{ owner: "nobody@example.com", target: "n2" }]);
  await reading.promise;
  await filled.store.setDrained("n1", true);
  await runner.drain("n1", [{ owner: USER, target: "n2" }]);
  goesOn.resolve();
  await until(() => runner.rebalancing()?.waiting === 0, "the end of the turn");
  assert.notEqual(runner.drainOf("n1"), undefined);
  await until(async () => (await directory.rootMoves())[0]?.target === "n2", "the move to begin");
  await runner.close();
  await directory.close();
});

test("a drained root whose move is undone goes by a new plan", TIMEOUT, async (t) => {
  const { options, filled } = await actingNodes(t);
  const { directory } = options;
  const clock = new ManualClock();
  const done: string[] = [];
  const runner = await runnerOver({ ...options, clock }, (store) => ({
    beginMove: (order) => {
      done.push(`move to ${order.target}`);
      return store.beginMove(order);
    },
    wantRootSizes: () => {
      done.push("plan");
      return store.wantRootSizes();
    },
  }));
  const turning = setInterval(() => clock.advance(2_000), 20);
  t.after(() => clearInterval(turning));
  await filled.store.setDrained("n1", true);
  await runner.drain("n1", [{ owner: USER, target: "n2" }]);
  await until(async () => (await directory.rootMoves()).length === 1, "the move to begin");
  await filled.store.decideMove(USER, "undo");
  await until(() => done.length > 2, "the move to begin again");
  assert.deepEqual(done.slice(0, 3), ["move to n2", "plan", "move to n2"]);
  await runner.close();
  await directory.close();
});

test("progress is told by bytes, never whole before the switch, and no time while it waits", () => {
  const move: Pick<RootMove, "bytes" | "problem" | "startedMs" | "state"> = {
    bytes: 25_000_000,
    problem: "",
    startedMs: 1_000,
    state: "copying",
  };
  assert.deepEqual(progressOf(move, 100_000_000, 11_000), { percent: 25, remaining_seconds: 30 });
  assert.deepEqual(progressOf({ ...move, bytes: 2e8 }, 1e8, 11_000), { percent: 99, remaining_seconds: 0 });
  assert.equal(progressOf({ ...move, problem: "n2 is full" }, 1e8, 11_000).remaining_seconds, null);
  assert.equal(progressOf(move, null, 11_000).percent, null);
  assert.deepEqual(progressOf({ ...move, state: "frozen" }, 1e8, 11_000), {
    percent: 99,
    remaining_seconds: 0,
  });
  assert.equal(progressOf({ ...move, state: "switched" }, 1e8, 11_000).percent, null);
});
