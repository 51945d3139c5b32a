// Tests of a source that hears of its move late: what was true before an attempt to switch ends none.
import assert from "node:assert/strict";
import { test } from "node:test";
import { GroveError } from "#base/errors.ts";
import { fillRoot } from "#storage/local/moved-root.fixture.ts";
import { OWNER } from "#storage/local/store.fixture.ts";
import { until } from "#testing/until.ts";
import { startTwoNodes } from "./two-nodes.fixture.ts";

test("a list of moves from before the freeze does not open the root again, whose switch may be under way", async (context) => {
  const cluster = await startTwoNodes(context, async ({ storage }) => void (await fillRoot(storage)));
  const { directory, faults, from, to, pass, reaches } = cluster;
  let isAway = false;
  faults.before = (step) => {
    if (step === "switch") isAway = true;
    if (isAway) throw new GroveError("STORE_UNAVAILABLE", "the store is away");
  };
  await directory.beginMove({ owner: OWNER, target: "b" });
  const [earlier] = await directory.movesOf({ fsId: "a", epoch: 1, speaker: { kind: "mock" } });
  assert.ok(earlier?.state === "copying");
  await until(() => {
    pass();
    return isAway;
  });
  const { moveId, owner, source, target, attempt, number, secret, otherAddress } = earlier;
  const facts = { moveId, owner, source, target, attempt, number, secret, otherAddress };
  await from.source.follow({ $typeName: "grove.v1.NodeMove", ...facts, state: "copying" });
  assert.equal(from.source.isFrozen(OWNER), true);
  assert.deepEqual(
    from.side.storage.moves.list().map(({ state }) => state),
    ["frozen"],
  );
  isAway = false;
  delete faults.before;
  await reaches((move) => move?.state === "switched");
  await until(() => {
    pass();
    return to.side.storage.root(OWNER) !== undefined && from.side.storage.root(OWNER) === undefined;
  });
});

test("a list of moves that comes late ends no copying that has begun since it was made", async (context) => {
  const cluster = await startTwoNodes(context, async ({ storage }) => void (await fillRoot(storage)));
  const { directory, faults, from, pass, reaches } = cluster;
  const late = Promise.withResolvers<void>();
  let isHeld = false;
  faults.listed = async (fsId) => {
    if (fsId !== "a" || isHeld) return;
    isHeld = true;
    await late.promise;
  };
  await until(() => {
    pass();
    return isHeld;
  });
  // The switch waits, so that the copying goes on.
  faults.before = (step) => {
    if (step === "freeze") throw new GroveError("STORE_UNAVAILABLE", "the store is away");
  };
  await directory.beginMove({ owner: OWNER, target: "b" });
  const { moves } = from.side.storage;
  await until(() => {
    pass();
    return moves.list().length === 1;
  });
  const begun = moves.list();
  late.resolve();
  for (let turn = 0; turn < 50; turn++) {
    await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual(moves.list(), begun);
  }
  delete faults.before;
  pass(60_000);
  const switched = await reaches((move) => move?.state === "switched");
  assert.equal(switched?.owner, OWNER);
});
