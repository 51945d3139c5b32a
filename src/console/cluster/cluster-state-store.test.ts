// Node status over time: stale, offline after 30 s, start-up grace, removed nodes (T5, D19, D24).
import assert from "node:assert/strict";
import { test } from "node:test";
import { NODE_OFFLINE_AFTER_MS } from "#base/limits.ts";
import { listedNode, nodeReading, testCluster } from "./cluster-state.fixture.ts";
import { CONSOLE_NODES_MAX } from "./cluster-state.ts";
import { VANISHED_NODE_KEPT_MS } from "./cluster-state-store.ts";

const SECOND = 1_000;

test("a node that stops answering is stale at once, keeps its status for 30 s and is offline after them (T5, D24)", () => {
  const { book, clock } = testCluster("n1");
  book.answered("n1", nodeReading({ diskUsagePercent: 85 }));
  assert.deepEqual(pick(book.node("n1")), { status: "warning", stale: false });
  for (let passedMs = 5 * SECOND; passedMs <= NODE_OFFLINE_AFTER_MS; passedMs += 5 * SECOND) {
    clock.advance(5 * SECOND);
    book.failed("n1", "timed out");
    assert.deepEqual(pick(book.node("n1")), { status: "warning", stale: true }, `after ${passedMs} ms`);
  }
  clock.advance(SECOND);
  assert.deepEqual(pick(book.node("n1")), { status: "offline", stale: true });
  assert.equal(book.node("n1")?.pollError, "timed out");
  assert.equal(book.node("n1")?.lastGood?.diskUsagePercent, 85, "its last figures stay");
  book.answered("n1", nodeReading());
  assert.deepEqual(pick(book.node("n1")), { status: "online", stale: false });
  assert.equal(book.node("n1")?.pollError, undefined);
});

test("one missed poll in between starts no count: the 30 s run from the last good one (T5)", () => {
  const { book, clock } = testCluster("n1");
  for (let round = 0; round < 20; round++) {
    if (round % 2 === 0) book.answered("n1", nodeReading());
    else book.failed("n1", "reset");
    clock.advance(5 * SECOND);
    assert.equal(book.node("n1")?.status, "online");
  }
});

test("the wall clock may jump by a day in either direction: nobody is offline for it (two clocks)", () => {
  const { book, clock } = testCluster("n1");
  for (const jumpMs of [86_400_000, -2 * 86_400_000]) {
    book.answered("n1", nodeReading());
    clock.jumpWall(jumpMs);
    clock.advance(SECOND);
    book.failed("n1", "reset");
    assert.equal(book.node("n1")?.status, "online");
  }
});

test("a console that itself stood still does not hold that time against the nodes", () => {
  const { book, clock } = testCluster("n1", "n2");
  book.answered("n1", nodeReading());
  const steadyMs = clock.steadyMs.bind(clock);
  let stoodStillMs = 0;
  clock.steadyMs = () => steadyMs() + stoodStillMs;
  stoodStillMs = 3_600_000;
  book.failed("n1", "timed out while nobody ran");
  assert.equal(book.node("n1")?.status, "online");
  clock.advance(NODE_OFFLINE_AFTER_MS - 5 * SECOND);
  assert.equal(book.node("n1")?.status, "online");
  clock.advance(6 * SECOND);
  assert.equal(book.node("n1")?.status, "offline", "the silence afterwards counts");
});

test("at the start a node is unknown, and offline only after 30 s without an answer (spec 3.2, D24)", () => {
  const { book, clock } = testCluster("n1");
  assert.equal(book.isStarting(), true);
  assert.deepEqual(pick(book.node("n1")), { status: "unknown", stale: true });
  book.failed("n1", "refused");
  assert.equal(book.isStarting(), false, "every node has been polled");
  clock.advance(NODE_OFFLINE_AFTER_MS);
  assert.equal(book.node("n1")?.status, "unknown");
  clock.advance(SECOND);
  assert.equal(book.node("n1")?.status, "offline");
});

test("the start ends after 30 s even when a node was never polled or the store never answered", () => {
  const { book, clock } = testCluster("n1");
  clock.advance(NODE_OFFLINE_AFTER_MS);
  assert.equal(book.isStarting(), true);
  clock.advance(SECOND);
  assert.equal(book.isStarting(), false);
});

test("a node that vanishes from the store is stale at once, offline after 30 s, and forgotten after 24 h (D19)", () => {
  const { book, clock } = testCluster("n1", "n2");
  book.answered("n1", nodeReading());
  book.answered("n2", nodeReading());
  book.list([listedNode("n2")]);
  assert.deepEqual(pick(book.node("n1")), { status: "online", stale: true });
  assert.match(book.node("n1")?.pollError ?? "", /does not list/);
  book.answered("n1", nodeReading());
  assert.equal(book.node("n1")?.stale, true, "an answer that was under way does not bring it back");
  clock.advance(NODE_OFFLINE_AFTER_MS + SECOND);
  assert.equal(book.node("n1")?.status, "offline");
  clock.advance(VANISHED_NODE_KEPT_MS - NODE_OFFLINE_AFTER_MS - SECOND);
  book.list([listedNode("n2")]);
  assert.equal(book.node("n1")?.status, "offline");
  clock.advance(SECOND);
  book.list([listedNode("n2")]);
  assert.equal(book.node("n1"), undefined);
  assert.deepEqual(
    book.nodes().map((node) => node.id),
    ["n2"],
  );
});

test("a node that an operator has removed is forgotten at once; one that was given up and is listed stays", () => {
  const { book } = testCluster("n1", "n2", "n3");
  for (const id of ["n1", "n2", "n3"]) book.answered(id, nodeReading());
  book.list([listedNode("n2")], ["n1", "n2"]);
  assert.deepEqual(
    book.nodes().map(({ id, stale }) => [id, stale]),
    [
      ["n2", false],
      ["n3", true],
    ],
  );
});

test("a store that was lost for a moment and comes back leaves every node as it was", () => {
  const { book, clock } = testCluster("n1");
  book.answered("n1", nodeReading());
  book.list([]);
  clock.advance(10 * SECOND);
  book.list([listedNode("n1")]);
  book.answered("n1", nodeReading());
  assert.deepEqual(pick(book.node("n1")), { status: "online", stale: false });
});

test(`at most ${CONSOLE_NODES_MAX} nodes are kept: those that vanished first go first, those that are listed never`, () => {
  const { book, clock } = testCluster();
  const names = (prefix: string) =>
    Array.from({ length: 1_000 }, (_, index) => listedNode(`${prefix}-${index}`));
  for (const prefix of ["a", "b", "c"]) {
    book.list(names(prefix));
    clock.advance(SECOND);
  }
  assert.equal(book.nodes().length, CONSOLE_NODES_MAX);
  assert.equal(book.node("a-0"), undefined);
  assert.equal(book.node("c-999")?.id, "c-999");
});

test("listeners hear of a poll with the state after it, and of every change, until they end that", () => {
  const { book, clock } = testCluster("n1");
  const heard: string[] = [];
  const ends = [
    book.onChange((id) => heard.push(`changed ${id} ${book.node(id)?.status}`)),
    book.onPoll((outcome) => heard.push(`polled ${outcome.node.status} ${outcome.reading !== undefined}`)),
    book.onRound(() => heard.push("round")),
  ];
  book.answered("n1", nodeReading({ cpuTempCelsius: 66 }));
  book.failed("n1", "reset");
  clock.advance(5 * SECOND);
  assert.deepEqual(heard, [
    "changed n1 warning",
    "polled warning true",
    "changed n1 warning",
    "polled warning false",
    "round",
  ]);
  for (const end of ends) end();
  book.answered("n1", nodeReading());
  clock.advance(5 * SECOND);
  assert.equal(heard.length, 5);
});

test("who keeps what polls and rounds bring is called before those who ask them, whoever came first", () => {
  const { book, clock } = testCluster("n1");
  const heard: string[] = [];
  book.onPoll(() => heard.push("asked after the poll"));
  book.onRound(() => heard.push("asked after the round"));
  book.onPoll(() => heard.push("kept the poll"), "first");
  const end = book.onRound(() => heard.push("kept the round"), "first");
  book.answered("n1", nodeReading());
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
