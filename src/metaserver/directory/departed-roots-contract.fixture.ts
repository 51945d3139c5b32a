// The contract of the metadata store about an older copy of it, which has roots where they were before they moved.
import assert from "node:assert/strict";
import { NODE_LEASE_MS } from "#base/limits.ts";
import type { Directory, HeldRoot } from "./directory.ts";
import type { ToldDeparture } from "./root-move.ts";
import { beat, type Contract, MOCK, refused, registration } from "./store-under-test.fixture.ts";

const OWNER = "u@example.com";
const held: HeldRoot = { owner: OWNER, rootId: "ROOT", version: 1n, grants: [] };
const later: HeldRoot = { ...held, version: 2n, grants: [{ path: "/", user: "v@example.com" }] };
const departed = (target: string, moveId: string): { readonly departed: readonly ToldDeparture[] } => ({
  departed: [{ rootId: "ROOT", target, moveId }],
});

async function homeIn(directory: Directory): Promise<string | undefined> {
  return (await directory.findRoot(OWNER))?.fsId;
}

/** True when the store wants the node's whole list. */
async function isAsked(directory: Directory, fsId: string, epoch: number): Promise<boolean> {
  return (await directory.heartbeat(beat(fsId, epoch, { rootsVersion: 1n, rootCount: 1n }))).sendFull;
}

/** Declares the tests. */
export function testDepartedRoots(contract: Contract): void {
  testSurvivor(contract);
  testLostThere(contract);
  for (const first of ["a", "b"]) {
    contract(
      `an older copy of the store hears from the former node where a root went, and has it there once that lists it; ${first} registers first (D27)`,
      async (store) => {
        const { directory } = store;
        await directory.register(registration("a", { roots: [held] }));
        const [a, b] = [registration("a", departed("b", "01M")), registration("b", { roots: [later] })];
        const [one, other] = first === "a" ? [a, b] : [b, a];
        await directory.register(one);
        assert.equal(await homeIn(directory), "a", "one word alone changes nothing");
        assert.equal((await directory.register(other)).conflicts.length, 0);
        if (first === "b") {
          for (let i = 0; i < 2; i++) {
            assert.equal(await isAsked(directory, "b", 1), true, "the answer before may be lost");
          }
          assert.deepEqual((await directory.register(b)).conflicts, []);
          assert.equal(await isAsked(directory, "b", 1), false, "its list has come");
        }
        const again = await store.reopen();
        assert.equal(await homeIn(again), "b");
        const shared = await again.rootsSharedWith("v@example.com");
        assert.deepEqual(
          shared.map(({ owner, fsId }) => [owner, fsId]),
          [[OWNER, "b"]],
        );
        // What it says of the move again, at each registration, changes nothing any more.
        await again.register(a);
        assert.equal(await homeIn(again), "b");
      },
    );
  }

  contract(
    "a root that has departed since the older copy, and whose owner has another name by now, is found under that (D27, D34)",
    async ({ directory }) => {
      const renamed: HeldRoot = { ...later, owner: "new@example.com" };
      await directory.register(registration("a", { roots: [held] }));
      await directory.register(registration("a", departed("b", "01M")));
      const { conflicts } = await directory.register(registration("b", { roots: [renamed] }));
      assert.deepEqual(conflicts, []);
      const root = await directory.findRoot(renamed.owner);
      assert.deepEqual([root?.rootId, root?.fsId], ["ROOT", "b"]);
      assert.equal(await directory.findRoot(OWNER), undefined);
      // A list without it does not take it as lost: it is held there.
      assert.equal(await isAsked(directory, "b", 1), false);
    },
  );

  contract(
    "a list with a root that the store has on another node asks that one for its list, once for each such news",
    async ({ directory }) => {
      await directory.register(registration("a", { roots: [held] }));
      const { conflicts } = await directory.register(registration("b", { roots: [later] }));
      assert.equal(conflicts.length, 1);
      assert.equal(await isAsked(directory, "a", 1), true);
      assert.equal(await isAsked(directory, "a", 1), true, "the answer before may be lost");
      await directory.register(registration("a", { roots: [held] }));
      assert.equal(await isAsked(directory, "a", 2), false);
      await directory.register(registration("b", { roots: [later] }));
      assert.equal(await isAsked(directory, "a", 2), false, "it is no news");
    },
  );

  contract(
    "a root that has moved on is found behind all of its moves, in whatever order its nodes tell of them",
    async ({ directory }) => {
      await directory.register(registration("a", { roots: [held] }));
      const [b, c] = [registration("b", departed("c", "02M")), registration("c", { roots: [later] })];
      await directory.register(c);
      await directory.register(b);
      await directory.register(registration("a", departed("b", "01M")));
      assert.equal(await isAsked(directory, "b", 1), true);
      await directory.register(b);
      assert.equal(await homeIn(directory), "a");
      assert.equal(await isAsked(directory, "c", 1), true);
      // The first of them says the same again.
      await directory.register(registration("a", departed("b", "01M")));
      await directory.register(c);
      assert.equal(await homeIn(directory), "c");
    },
  );

  contract(
    "a node's word on a root counts only where the store has that there, and no move of it that is later",
    async ({ directory }) => {
      await directory.register(registration("b", { roots: [later] }));
      await directory.register(registration("a", departed("c", "09M")));
      await directory.register(registration("c", { roots: [later] }));
      assert.equal(await homeIn(directory), "b", "it was never on the node that gives it away");
      await directory.register(registration("a"));
      await directory.beginMove({ owner: OWNER, target: "a" });
      const node = (fsId: string, epoch: number) => ({ fsId, epoch, speaker: MOCK });
      const [move] = await directory.movesOf(node("a", 2));
      const moveId = move?.moveId ?? "";
      const { attempt } = await directory.advanceMove(node("a", 2), moveId, { step: "freeze" });
      await directory.advanceMove(node("a", 2), moveId, { step: "switch", attempt });
      assert.equal(await homeIn(directory), "a");
      // Its folder is a backup of before the root came back.
      await directory.register(registration("a", departed("b", "00M")));
      await directory.register(registration("b", { roots: [later] }));
      assert.equal(await homeIn(directory), "a");
    },
  );

  contract(
    "a copy that a backup brings back after its move has ended is under that move again, which waits to be confirmed (D27)",
    async (store) => {
      const { directory } = store;
      const moveId = await moved(directory);
      // As the node of the root, the engine's nodes, and nodes from before this do.
      for (const copy of [held, { ...held, arrival: "", leaseEpoch: 0n }])
        assert.equal((await directory.register(registration("a", { roots: [copy] }))).copies, undefined);
      assert.deepEqual(await directory.rootMoves(), []);
      const restored = registration("a", { roots: [{ ...held, arrival: "" }] });
      const { conflicts, copies } = await directory.register(restored);
      assert.deepEqual(copies, [{ owner: OWNER, target: "b" }]);
      assert.equal(conflicts.length, 1);
      assert.equal((await directory.register(restored)).copies, undefined, "it is found once");
      const again = await store.reopen();
      assert.equal(await homeIn(again), "b");
      const { fsId, epoch } = (await again.nodes()).find((node) => node.fsId === "a") ?? {
        fsId: "",
        epoch: 0,
      };
      const [move] = await again.movesOf({ fsId, epoch, speaker: MOCK });
      assert.deepEqual(
        [move?.moveId, move?.state, move?.role, move?.target, move?.otherAddress],
        [moveId, "switched", "source", "b", "b.example.com:50051"],
      );
      assert.equal((await again.decideMove(OWNER, "confirm"))?.state, "confirmed");
    },
  );

  contract(
    "a copy that came by a later move than the store knows is none from before, and pages tell of copies too",
    async ({ directory }) => {
      const moveId = await moved(directory);
      const later = registration("a", { roots: [{ ...held, arrival: `${moveId}Z` }] });
      assert.equal((await directory.register(later)).copies, undefined);
      const paged = (page: number, isLast: boolean, roots: readonly HeldRoot[]) =>
        registration("a", {
          roots,
          instanceId: "paged",
          dataId: "data of a",
          page: { registration: 1n, page, isLast },
        });
      await directory.register(paged(0, false, [{ ...held, arrival: "" }]));
      const { copies } = await directory.register(paged(1, true, []));
      assert.deepEqual(copies, [{ owner: OWNER, target: "b" }]);
    },
  );

  contract(
    "a copy that is taken back has its node again, makes none there before it is served, and what the lost node has is a copy of before",
    async ({ directory }, clock) => {
      await directory.register(registration("a", { roots: [later] }));
      await directory.register(registration("b"));
      const { moveId } = await directory.beginMove({ owner: OWNER, target: "b" });
      const node = (fsId: string, epoch = 1) => ({ fsId, epoch, speaker: MOCK });
      const { attempt } = await directory.advanceMove(node("b"), moveId, { step: "freeze" });
      await refused("BAD_ARGUMENT", directory.decideMove(OWNER, "take_back"));
      await directory.advanceMove(node("b"), moveId, { step: "switch", attempt });
      await refused("BAD_ARGUMENT", directory.decideMove(OWNER, "take_back"));
      clock.advance(NODE_LEASE_MS + 1_000);
      assert.equal((await directory.decideMove(OWNER, "take_back"))?.state, "returned");
      assert.equal((await directory.decideMove(OWNER, "take_back"))?.state, "returned");
      assert.equal(await homeIn(directory), "a");
      await refused("STARTING", directory.claimRoot(OWNER, { ...node("a"), needsNumber: true }));
      assert.deepEqual(await directory.rootsSharedWith("v@example.com"), []);
      // The lost node is back before the former one has heard of anything: it is asked once that one has.
      const back = registration("b", { roots: [{ ...later, arrival: moveId }], dataId: "data of b" });
      assert.equal((await directory.register(back)).copies, undefined);
      assert.equal(await isAsked(directory, "b", 2), false);
      await directory.advanceMove(node("a"), moveId, { step: "end" });
      assert.equal(await isAsked(directory, "b", 2), true);
      assert.equal(await isAsked(directory, "b", 2), true, "the answer before may be lost");
      assert.deepEqual(await directory.rootMoves(), []);
      assert.deepEqual((await directory.register(back)).copies, [{ owner: OWNER, target: "a" }]);
      assert.equal(await isAsked(directory, "b", 2), false);
      await directory.register(registration("a", { roots: [{ ...held, arrival: `${moveId}+` }] }));
      assert.equal(await homeIn(directory), "a");
    },
  );
}

/** What a node does about a root that has moved there and that a restore of it has lost. */
function testLostThere(contract: Contract): void {
  contract(
    "a root that has moved to a node which has lost it since is not confirmed, nor made anew, but taken back while that node runs",
    async ({ directory }) => {
      await directory.register(registration("a", { roots: [held] }));
      await directory.register(registration("b"));
      const { moveId } = await directory.beginMove({ owner: OWNER, target: "b" });
      const node = (fsId: string) => ({ fsId, epoch: 1, speaker: MOCK });
      const { attempt } = await directory.advanceMove(node("b"), moveId, { step: "freeze" });
      const { changedMs } = await directory.advanceMove(node("b"), moveId, { step: "switch", attempt });
      const tell = (problem: string) =>
        directory.advanceMove(node("b"), moveId, { step: "progress", bytes: 0, rows: 0, left: 0, problem });
      await tell("the root is not here");
      assert.equal((await directory.rootMoves())[0]?.changedMs, changedMs, "the copy is of the switch");
      await refused("BAD_ARGUMENT", directory.decideMove(OWNER, "confirm"));
      const claim = () => directory.claimRoot(OWNER, { ...node("b"), needsNumber: true });
      await refused("ROOT_LOST", claim());
      // A newer backup has brought it back.
      await tell("");
      await refused("STARTING", claim());
      await refused("BAD_ARGUMENT", directory.decideMove(OWNER, "take_back"));
      await tell("the root is not here");
      assert.equal((await directory.decideMove(OWNER, "take_back"))?.state, "returned");
      assert.equal(await homeIn(directory), "a");
      await directory.advanceMove(node("a"), moveId, { step: "end" });
      assert.deepEqual(await directory.rootMoves(), []);
    },
  );

  contract("a node of the shared engine need not serve a root itself that has moved there", async (store) => {
    const { directory } = store;
    await directory.register(registration("a", { roots: [held] }));
    await directory.register(registration("b", { onEngine: true }));
    const { moveId } = await directory.beginMove({ owner: OWNER, target: "b" });
    const node = { fsId: "b", epoch: 1, speaker: MOCK };
    const { attempt } = await directory.advanceMove(node, moveId, { step: "freeze" });
    await directory.advanceMove(node, moveId, { step: "switch", attempt });
    const counts = { bytes: 0, rows: 0, left: 0 };
    await directory.advanceMove(node, moveId, {
      step: "progress",
      ...counts,
      problem: "the root is not here",
    });
    assert.equal((await directory.decideMove(OWNER, "confirm"))?.state, "confirmed");
  });
}

function testSurvivor(contract: Contract): void {
  contract(
    "a node whose process has survived its loss lists the root that was taken back, which is no sign of an older store",
    async ({ directory }, clock) => {
      await directory.register(registration("a", { roots: [later] }));
      await directory.register(registration("b"));
      const { moveId } = await directory.beginMove({ owner: OWNER, target: "b" });
      const node = (fsId: string) => ({ fsId, epoch: 1, speaker: MOCK });
      const { attempt } = await directory.advanceMove(node("b"), moveId, { step: "freeze" });
      await directory.advanceMove(node("b"), moveId, { step: "switch", attempt });
      const bBeats = () => isAsked(directory, "b", 1);
      assert.equal(await bBeats(), false);
      clock.advance(NODE_LEASE_MS + 1_000);
      await directory.decideMove(OWNER, "take_back");
      assert.equal(await bBeats(), true);
      assert.deepEqual((await directory.missingLists()).awaited, []);
      assert.ok((await directory.locateRoot("new@example.com")).rootId);
      const listed = { roots: [{ ...later, arrival: moveId }], knownEpoch: 1 };
      assert.equal((await directory.register(registration("b", listed))).conflicts.length, 1);
      // The former node does not list it yet.
      await directory.register(registration("a", { knownEpoch: 1 }));
      await directory.register(registration("b", { ...listed, knownEpoch: 2 }));
      assert.equal(await homeIn(directory), "a");
    },
  );
}

/** Moves the root from a to b, until nothing of the move is left; its id. */
async function moved(directory: Directory): Promise<string> {
  await directory.register(registration("a", { roots: [held] }));
  await directory.register(registration("b"));
  const { moveId } = await directory.beginMove({ owner: OWNER, target: "b" });
  const node = (fsId: string) => ({ fsId, epoch: 1, speaker: MOCK });
  const { attempt } = await directory.advanceMove(node("b"), moveId, { step: "freeze" });
  await directory.advanceMove(node("b"), moveId, { step: "switch", attempt });
  await directory.decideMove(OWNER, "confirm");
  for (const side of ["a", "b"]) await directory.advanceMove(node(side), moveId, { step: "end" });
  assert.deepEqual(await directory.rootMoves(), []);
  return moveId;
}
