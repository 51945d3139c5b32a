// Node status over time: stale, offline after 30 s, start-up grace, removed nodes (T5, D19, D24).
import assert from "node:assert/strict";
import { test } from "node:test";
import { NODE_OFFLINE_AFTER_MS } from "#base/limits.ts";
import { listedNode, nodeReading, testCluster } from "./cluster-state.fixture.ts";
import { CONSOLE_NODES_MAX } from "./cluster-state.ts";
import { VANISHED_NODE_KEPT_MS } from "./cluster-state-store.ts";

const SECOND = 1_000;

test("a node that stops answering is stale at once, keeps its status for 30 s and is offline after them (T5, D24)", () => {
  const { clusterState, clock } = testCluster("n1");
  clusterState.answered("n1", nodeReading({ diskUsagePercent: 85 }));
  assert.deepEqual(pick(clusterState.node("n1")), { status: "warning", stale: false });
  for (let passedMs = 5 * SECOND; passedMs <= NODE_OFFLINE_AFTER_MS; passedMs += 5 * SECOND) {
    clock.advance(5 * SECOND);
    clusterState.failed("n1", "timed out");
    assert.deepEqual(
      pick(clusterState.node("n1")),
      { status: "warning", stale: true },
      `after ${passedMs} ms`,
    );
  }
  clock.advance(SECOND);
  assert.deepEqual(pick(clusterState.node("n1")), { status: "offline", stale: true });
  assert.equal(clusterState.node("n1")?.pollError, "timed out");
  assert.equal(clusterState.node("n1")?.lastGood?.diskUsagePercent, 85, "its last figures stay");
  clusterState.answered("n1", nodeReading());
  assert.deepEqual(pick(clusterState.node("n1")), { status: "online", stale: false });
  assert.equal(clusterState.node("n1")?.pollError, undefined);
});

test("one missed poll in between starts no count: the 30 s run from the last good one (T5)", () => {
  const { clusterState, clock } = testCluster("n1");
  for (let round = 0; round < 20; round++) {
    if (round % 2 === 0) clusterState.answered("n1", nodeReading());
    else clusterState.failed("n1", "reset");
    clock.advance(5 * SECOND);
    assert.equal(clusterState.node("n1")?.status, "online");
  }
});

test("the wall clock may jump by a day in either direction: nobody is offline for it (two clocks)", () => {
  const { clusterState, clock } = testCluster("n1");
  for (const jumpMs of [86_400_000, -2 * 86_400_000]) {
    clusterState.answered("n1", nodeReading());
    clock.jumpWall(jumpMs);
    clock.advance(SECOND);
    clusterState.failed("n1", "reset");
    assert.equal(clusterState.node("n1")?.status, "online");
  }
});

test("a console that itself stood still does not hold that time against the nodes", () => {
  const { clusterState, clock } = testCluster("n1", "n2");
  clusterState.answered("n1", nodeReading());
  const steadyMs = clock.steadyMs.bind(clock);
  let stoodStillMs = 0;
  clock.steadyMs = () => steadyMs() + stoodStillMs;
  stoodStillMs = 3_600_000;
  clusterState.failed("n1", "timed out while nobody ran");
  assert.equal(clusterState.node("n1")?.status, "online");
  clock.advance(NODE_OFFLINE_AFTER_MS - 5 * SECOND);
  assert.equal(clusterState.node("n1")?.status, "online");
  clock.advance(6 * SECOND);
  assert.equal(clusterState.node("n1")?.status, "offline", "the silence afterwards counts");
});

test("at the start a node is unknown, and offline only after 30 s without an answer (spec 3.2, D24)", () => {
  const { clusterState, clock } = testCluster("n1");
  assert.equal(clusterState.isStarting(), true);
  assert.deepEqual(pick(clusterState.node("n1")), { status: "unknown", stale: true });
  clusterState.failed("n1", "refused");
  assert.equal(clusterState.isStarting(), false, "every node has been polled");
  clock.advance(NODE_OFFLINE_AFTER_MS);
  assert.equal(clusterState.node("n1")?.status, "unknown");
  clock.advance(SECOND);
  assert.equal(clusterState.node("n1")?.status, "offline");
});

test("the start ends after 30 s even when a node was never polled or the store never answered", () => {
  const { clusterState, clock } = testCluster("n1");
  clock.advance(NODE_OFFLINE_AFTER_MS);
  assert.equal(clusterState.isStarting(), true);
  clock.advance(SECOND);
  assert.equal(clusterState.isStarting(), false);
});

test("a node that vanishes from the store is stale at once, offline after 30 s, and forgotten after 24 h (D19)", () => {
  const { clusterState, clock } = testCluster("n1", "n2");
  clusterState.answered("n1", nodeReading());
  clusterState.answered("n2", nodeReading());
  clusterState.list([listedNode("n2")]);
  assert.deepEqual(pick(clusterState.node("n1")), { status: "online", stale: true });
  assert.match(clusterState.node("n1")?.pollError ?? "", /does not list/);
  clusterState.answered("n1", nodeReading());
  assert.equal(clusterState.node("n1")?.stale, true, "an answer that was under way does not bring it back");
  clock.advance(NODE_OFFLINE_AFTER_MS + SECOND);
  assert.equal(clusterState.node("n1")?.status, "offline");
  clock.advance(VANISHED_NODE_KEPT_MS - NODE_OFFLINE_AFTER_MS - SECOND);
  clusterState.list([listedNode("n2")]);
  assert.equal(clusterState.node("n1")?.status, "offline");
  clock.advance(SECOND);
  clusterState.list([listedNode("n2")]);
  assert.equal(clusterState.node("n1"), undefined);
  assert.deepEqual(
    clusterState.nodes().map((node) => node.id),
    ["n2"],
  );
});

test("a node that an operator has removed is forgotten at once; one that was given up and is listed stays", () => {
  const { clusterState } = testCluster("n1", "n2", "n3");
  for (const id of ["n1", "n2", "n3"]) clusterState.answered(id, nodeReading());
  clusterState.list([listedNode("n2")], ["n1", "n2"]);
  assert.deepEqual(
    clusterState.nodes().map(({ id, stale }) => [id, stale]),
    [
      ["n2", false],
      ["n3", true],
    ],
  );
});

test("a store that was lost for a moment and comes back leaves every node as it was", () => {
  const { clusterState, clock } = testCluster("n1");
  clusterState.answered("n1", nodeReading());
  clusterState.list([]);
  clock.advance(10 * SECOND);
  clusterState.list([listedNode("n1")]);
  clusterState.answered("n1", nodeReading());
  assert.deepEqual(pick(clusterState.node("n1")), { status: "online", stale: false });
});

test(`at most ${CONSOLE_NODES_MAX} nodes are kept: those that vanished first go first, those that are listed never`, () => {
  const { clusterState, clock } = testCluster();
  const names = (prefix: string) =>
    Array.from({ length: 1_000 }, (_, index) => listedNode(`${prefix}-${index}`));
  for (const prefix of ["a", "b", "c"]) {
    clusterState.list(names(prefix));
    clock.advance(SECOND);
  }
  assert.equal(clusterState.nodes().length, CONSOLE_NODES_MAX);
  assert.equal(clusterState.node("a-0"), undefined);
  assert.equal(clusterState.node("c-999")?.id, "c-999");
});

test("listeners hear of a poll with the state after it, and of every change, until they end that", () => {
  const { clusterState, clock } = testCluster("n1");
  const heard: string[] = [];
  const ends = [
    clusterState.onChange((id) => heard.push(`changed ${id} ${clusterState.node(id)?.status}`)),
    clusterState.onPoll((outcome) =>
      heard.push(`polled ${outcome.node.status} ${outcome.reading !== undefined}`),
    ),
    clusterState.onRound(() => heard.push("round")),
  ];
  clusterState.answered("n1", nodeReading({ cpuTempCelsius: 66 }));
  clusterState.failed("n1", "reset");
  clock.advance(5 * SECOND);
  assert.deepEqual(heard, [
    "changed n1 warning",
    "polled warning true",
    "changed n1 warning",
    "polled warning false",
    "round",
  ]);
  for (const end of ends) end();
  clusterState.answered("n1", nodeReading());
  clock.advance(5 * SECOND);
  assert.equal(heard.length, 5);
});

test("who keeps what polls and rounds bring is called before those who ask them, whoever came first", () => {
  const { clusterState, clock } = testCluster("n1");
  const heard: string[] = [];
  clusterState.onPoll(() => heard.push("asked after the poll"));
  clusterState.onRound(() => heard.push("asked after the round"));
  clusterState.onPoll(() => heard.push("kept the poll"), "first");
  const end = clusterState.onRound(() => heard.push("kept the round"), "first");
  clusterState.answered("n1", nodeReading());
  clock.advance(5 * SECOND);
  assert.deepEqual(heard, [
    "kept the poll",
    "asked after the poll",
    "kept the round",
    "asked after the round",
  ]);
  end();
  clock.advance(5 * SECOND);
  assert.deepEqual(heard.slice(4), ["asked after the round"]);
});

function pick(node: { status: string; stale: boolean } | undefined): unknown {
  return node === undefined ? undefined : { status: node.status, stale: node.stale };
}
