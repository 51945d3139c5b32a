// The contract of the metadata store about roots that move, and nodes that are drained.
import assert from "node:assert/strict";
import { lastEpochBefore, NODE_LEASE_MS } from "#base/limits.ts";
import type { HeldRoot } from "./directory.ts";
import type { NodeCaller } from "./node-caller.ts";
import type { RootMove } from "./root-move.ts";
import { beat, type Contract, GIB, MOCK, refused, registration } from "./store-under-test.fixture.ts";

const OWNER = "u@example.com";
const held = { owner: OWNER, rootId: "ROOT", version: 1n, grants: [] };
const node = (fsId: string): NodeCaller => ({ fsId, epoch: 1, speaker: MOCK });
const TARGET = { owner: OWNER, target: "b" };

/** Declares the tests. */
export function testRootMoves(contract: Contract): void {
  contract(
    "a root moves in steps that may be repeated, and its place changes with the switch alone (D19)",
    async (store) => {
      const { directory } = store;
      await directory.register(registration("a", { roots: [held] }));
      await directory.register(registration("b"));
      const move = await directory.beginMove(TARGET);
      assert.deepEqual(await directory.beginMove(TARGET), move);
      assert.equal(move.state, "copying");
      const { moveId } = move;
      const [asSource] = await directory.movesOf(node("a"));
      const [asTarget] = await directory.movesOf(node("b"));
      assert.deepEqual([asSource?.role, asSource?.otherAddress], ["source", "b.example.com:50051"]);
      assert.deepEqual([asTarget?.role, asTarget?.otherAddress], ["target", "a.example.com:50051"]);
      const progress = { step: "progress", bytes: 5, rows: 3, left: 2, problem: "" } as const;
      assert.equal((await directory.advanceMove(node("b"), moveId, progress)).rows, 3);
      await refused("FENCED", directory.advanceMove(node("b"), moveId, { step: "switch", attempt: 0 }));
      const { attempt } = await directory.advanceMove(node("b"), moveId, { step: "freeze" });
      assert.equal((await directory.findRoot(OWNER))?.fsId, "a");
      const again = await store.reopen();
      const step = { step: "switch", attempt } as const;
      assert.equal((await again.advanceMove(node("b"), moveId, step)).state, "switched");
      assert.equal((await again.advanceMove(node("b"), moveId, step)).state, "switched");
      const place = await again.findRoot(OWNER);
      assert.deepEqual([place?.fsId, place?.rootId], ["b", "ROOT"]);
      // The target has yet to serve it: a claim there must make no empty root.
      await refused("STARTING", again.claimRoot(OWNER, { ...node("b"), needsNumber: true }));
      await refused("BAD_ARGUMENT", again.decideMove(OWNER, "undo"));
      assert.equal((await again.decideMove(OWNER, "confirm"))?.state, "confirmed");
      await again.advanceMove(node("a"), moveId, { step: "end" });
      assert.equal((await again.rootMoves()).length, 1);
      await again.advanceMove(node("b"), moveId, { step: "end" });
      assert.deepEqual(await again.rootMoves(), []);
    },
  );

  contract(
    "an attempt that the source has taken back cannot switch, and a move that has not switched is undone",
    async ({ directory }) => {
      await directory.register(registration("a", { roots: [held] }));
      await directory.register(registration("b"));
      const { moveId } = await directory.beginMove(TARGET);
      const { attempt } = await directory.advanceMove(node("b"), moveId, { step: "freeze" });
      await refused("BAD_ARGUMENT", directory.advanceMove(node("b"), moveId, { step: "thaw", attempt }));
      await refused("BAD_ARGUMENT", directory.advanceMove(node("a"), moveId, { step: "switch", attempt }));
      assert.equal(
        (await directory.advanceMove(node("a"), moveId, { step: "thaw", attempt })).state,
        "copying",
      );
      await refused("FENCED", directory.advanceMove(node("b"), moveId, { step: "switch", attempt }));
      const second = await directory.advanceMove(node("b"), moveId, { step: "freeze" });
      assert.equal(second.attempt, attempt + 1);
      // A late wish to thaw is of the attempt before.
      assert.equal(
        (await directory.advanceMove(node("a"), moveId, { step: "thaw", attempt })).state,
        "frozen",
      );
      assert.equal((await directory.decideMove(OWNER, "undo"))?.state, "undone");
      await refused(
        "FENCED",
        directory.advanceMove(node("b"), moveId, { step: "switch", attempt: second.attempt }),
      );
      assert.equal((await directory.findRoot(OWNER))?.fsId, "a");
      for (const side of ["a", "b"]) await directory.advanceMove(node(side), moveId, { step: "end" });
      assert.deepEqual(await directory.rootMoves(), []);
      assert.equal(await directory.decideMove(OWNER, "undo"), undefined);
    },
  );

  contract(
    "moves that cannot be are refused, and other nodes learn nothing of them",
    async ({ directory }, clock) => {
      await directory.register(registration("a", { roots: [held] }));
      await directory.register(registration("b"));
      await directory.register(registration("c"));
      await refused("BAD_ARGUMENT", directory.beginMove({ owner: "v@example.com", target: "b" }));
      await refused("BAD_ARGUMENT", directory.beginMove({ owner: OWNER, target: "a" }));
      await refused("BAD_ARGUMENT", directory.beginMove({ owner: OWNER, target: "x" }));
      await directory.setDrained("c", true);
      await refused("BAD_ARGUMENT", directory.beginMove({ owner: OWNER, target: "c" }));
      const { moveId } = await directory.beginMove(TARGET);
      await refused("BAD_ARGUMENT", directory.beginMove({ owner: OWNER, target: "c" }));
      assert.deepEqual(await directory.movesOf(node("c")), []);
      await refused("NO_SUCH_PATH", directory.advanceMove(node("c"), moveId, { step: "freeze" }));
      await refused("FENCED", directory.movesOf({ ...node("a"), epoch: 0 }));
      clock.advance(NODE_LEASE_MS);
      await directory.register(registration("a", { roots: [held], knownEpoch: 1 }));
      await directory.decideMove(OWNER, "undo");
    },
  );

  contract(
    "a root leaves the shared engine by the node that has taken it over, and no lease of before counts any more",
    async (store, clock) => {
      const { directory } = store;
      const leased = (leaseEpoch: bigint) => ({ roots: [{ ...held, leaseEpoch }], onEngine: true }) as const;
      await directory.register(registration("a", leased(4n)));
      await directory.register(registration("b"));
      const { moveId } = await directory.beginMove(TARGET);
      await directory.advanceMove(node("b"), moveId, { step: "freeze" });
      clock.advance(NODE_LEASE_MS);
      await directory.register(registration("c", { onEngine: true }));
      await directory.register(registration("b", { knownEpoch: 1 }));
      const caller = (fsId: string, epoch = 1): NodeCaller => ({ ...node(fsId), epoch });
      assert.deepEqual(await directory.movesOf(caller("c")), []);
      await refused("FENCED", directory.advanceMove(caller("b", 2), moveId, { step: "switch", attempt: 2 }));
      await directory.register(registration("c", { ...leased(5n), knownEpoch: 1 }));
      const again = await store.reopen();
      const [seen] = await again.movesOf(caller("c", 2));
      assert.deepEqual([seen?.role, seen?.source, seen?.state], ["source", "c", "frozen"]);
      await again.advanceMove(caller("c", 2), moveId, { step: "thaw", attempt: 1 });
      const { attempt } = await again.advanceMove(caller("b", 2), moveId, { step: "freeze" });
      await again.advanceMove(caller("b", 2), moveId, { step: "switch", attempt });
      clock.advance(NODE_LEASE_MS);
      // A process that has the root by a later lease has not heard of the switch.
      await again.register(registration("a", { ...leased(6n), knownEpoch: 1 }));
      assert.equal((await again.findRoot(OWNER))?.fsId, "b");
      // The source has ended: another node of the engine removes what is left of the root there, and no other.
      await again.register(registration("d"));
      assert.deepEqual(await again.movesOf(caller("d")), []);
      const [kept] = await again.movesOf(caller("a", 2));
      assert.deepEqual([kept?.role, kept?.state], ["source", "switched"]);
      await refused("BAD_ARGUMENT", again.decideMove(OWNER, "confirm"));
      await again.heartbeat(beat("b", 2, { rootCount: 1n }));
      await again.decideMove(OWNER, "confirm");
      await refused("NO_SUCH_PATH", again.advanceMove(caller("d"), moveId, { step: "end" }));
      await again.advanceMove(caller("a", 2), moveId, { step: "end" });
      await again.register(registration("b", { knownEpoch: 2 }));
      await again.advanceMove(caller("b", 3), moveId, { step: "end" });
      // In the engine again, epochs begin anew.
      await again.register(registration("a", { onEngine: true, knownEpoch: 2 }));
      const back = await again.beginMove({ owner: OWNER, target: "a" });
      await again.advanceMove(caller("a", 3), back.moveId, { step: "freeze" });
      await again.advanceMove(caller("a", 3), back.moveId, { step: "switch", attempt: 1 });
      // A list of before, which is late.
      await again.register(registration("c", { ...leased(7n), knownEpoch: 2 }));
      assert.equal((await again.findRoot(OWNER))?.fsId, "a");
      await again.register(
        registration("c", { ...leased(BigInt(lastEpochBefore(back.number) + 2)), knownEpoch: 3 }),
      );
      assert.equal((await again.findRoot(OWNER))?.fsId, "c");
    },
  );

  contract(
    "a root that is handed over within the shared engine leaves nothing behind to be confirmed",
    async ({ directory }) => {
      const leased = (leaseEpoch: bigint) => ({ roots: [{ ...held, leaseEpoch }], onEngine: true }) as const;
      await directory.register(registration("a", leased(4n)));
      await directory.register(registration("b", { onEngine: true }));
      const { moveId } = await directory.beginMove(TARGET);
      const { attempt } = await directory.advanceMove(node("b"), moveId, { step: "freeze" });
      // The lease may tell of the new holder before its step does.
      await directory.register(registration("b", { ...leased(5n), knownEpoch: 1 }));
      const [seen] = await directory.movesOf(node("a"));
      assert.deepEqual([seen?.source, seen?.target], ["a", "b"]);
      const target = { ...node("b"), epoch: 2 };
      const step = { step: "switch", attempt } as const;
      assert.equal((await directory.advanceMove(target, moveId, step)).state, "confirmed");
      assert.equal((await directory.advanceMove(target, moveId, step)).state, "confirmed");
      assert.equal((await directory.findRoot(OWNER))?.fsId, "b");
      await directory.advanceMove(node("a"), moveId, { step: "end" });
      await directory.advanceMove(target, moveId, { step: "end" });
      assert.deepEqual(await directory.rootMoves(), []);
    },
  );

  contract(
    "a node of the shared engine takes the place of a target there that has ended, at any step, and no other node does",
    async ({ directory }, clock) => {
      const adopt = (fsId: string, moveId: string): Promise<RootMove> =>
        directory.advanceMove(node(fsId), moveId, { step: "adopt" });
      await directory.register(registration("a", { roots: [held] }));
      await directory.register(registration("b", { onEngine: true }));
      const { moveId } = await directory.beginMove(TARGET);
      const { attempt } = await directory.advanceMove(node("b"), moveId, { step: "freeze" });
      await directory.register(registration("c", { onEngine: true }));
      await directory.register(registration("d"));
      assert.deepEqual(await directory.movesOf(node("c")), []);
      await refused("NO_SUCH_PATH", adopt("c", moveId));
      clock.advance(NODE_LEASE_MS);
      await directory.register(registration("c", { knownEpoch: 1, onEngine: true }));
      await directory.register(registration("d", { knownEpoch: 1 }));
      const caller = (fsId: string): NodeCaller => ({ ...node(fsId), epoch: 2 });
      assert.deepEqual(await directory.movesOf(caller("d")), []);
      await refused("NO_SUCH_PATH", directory.advanceMove(caller("d"), moveId, { step: "adopt" }));
      const [seen] = await directory.movesOf(caller("c"));
      assert.deepEqual(
        [seen?.target, seen?.state, seen?.otherAddress],
        ["b", "frozen", "a.example.com:50051"],
      );
      const taken = await directory.advanceMove(caller("c"), moveId, { step: "adopt" });
      assert.deepEqual([taken.target, taken.state], ["c", "frozen"]);
      assert.deepEqual(await directory.advanceMove(caller("c"), moveId, { step: "adopt" }), taken);
      // The one before comes back too late.
      await directory.register(registration("b", { knownEpoch: 1, onEngine: true }));
      await refused("NO_SUCH_PATH", directory.advanceMove(caller("b"), moveId, { step: "switch", attempt }));
      const next = await directory.advanceMove(caller("c"), moveId, { step: "freeze" });
      await directory.advanceMove(caller("c"), moveId, { step: "switch", attempt: next.attempt });
      assert.equal((await directory.findRoot(OWNER))?.fsId, "c");
    },
  );

  contract(
    "a target that took the root over from its source, and ended, is the source for the next target",
    async ({ directory }, clock) => {
      await directory.register(registration("a", { roots: [{ ...held, leaseEpoch: 1n }], onEngine: true }));
      await directory.register(registration("b", { onEngine: true }));
      const { moveId } = await directory.beginMove(TARGET);
      const taken = { ...held, leaseEpoch: 2n };
      await directory.register(registration("b", { knownEpoch: 1, roots: [taken], onEngine: true }));
      clock.advance(NODE_LEASE_MS);
      await directory.register(registration("c", { onEngine: true }));
      const { source, target } = await directory.advanceMove(node("c"), moveId, { step: "adopt" });
      assert.deepEqual([source, target], ["b", "c"]);
    },
  );

  contract(
    "who takes a root over from a target that had taken it over is the source of its move",
    async ({ directory }) => {
      await directory.register(registration("a", { roots: [{ ...held, leaseEpoch: 1n }], onEngine: true }));
      await directory.register(registration("b", { onEngine: true }));
      await directory.beginMove(TARGET);
      const taken = (leaseEpoch: bigint): HeldRoot => ({ ...held, leaseEpoch });
      await directory.register(registration("b", { knownEpoch: 1, roots: [taken(2n)], onEngine: true }));
      await directory.register(registration("c", { roots: [taken(3n)], onEngine: true }));
      const [move] = await directory.rootMoves();
      assert.deepEqual([move?.source, move?.target, move?.state], ["c", "b", "copying"]);
    },
  );

  contract(
    "a source that has not heard of the switch yet is no sign of an older store",
    async ({ directory }, clock) => {
      await directory.register(registration("a", { roots: [held] }));
      await directory.register(registration("b"));
      const { moveId } = await directory.beginMove(TARGET);
      const { attempt } = await directory.advanceMove(node("b"), moveId, { step: "freeze" });
      await directory.advanceMove(node("b"), moveId, { step: "switch", attempt });
      const { sendFull } = await directory.heartbeat(beat("a", 1, { rootCount: 1n }));
      assert.equal(sendFull, false);
      // After the time of a lease it has heard, unless it was away: it is asked, and nobody waits for that.
      clock.advance(NODE_LEASE_MS);
      assert.equal((await directory.heartbeat(beat("a", 1, { rootCount: 1n }))).sendFull, true);
      assert.deepEqual((await directory.missingLists()).awaited, []);
      assert.equal((await directory.heartbeat(beat("a", 1, { rootCount: 2n }))).sendFull, true);
      assert.deepEqual((await directory.missingLists()).awaited, ["a", "b"]);
    },
  );

  contract(
    "a drained node gets no new roots, keeps those that it has, and can be removed once it is empty",
    async ({ directory }, clock) => {
      await directory.register(registration("a", { roots: [held], diskFreeBytes: 900n * GIB }));
      await directory.register(registration("b"));
      assert.equal((await directory.locateRoot("v@example.com")).fsId, "a");
      await directory.setDrained("a", true);
      assert.deepEqual(await directory.drainedNodes(), ["a"]);
      assert.equal((await directory.locateRoot("w@example.com")).fsId, "b");
      // A root that was placed and never made is placed anew.
      assert.equal((await directory.locateRoot("v@example.com")).fsId, "b");
      assert.equal((await directory.locateRoot(OWNER)).fsId, "a");
      const { moveId } = await directory.beginMove(TARGET);
      const { attempt } = await directory.advanceMove(node("b"), moveId, { step: "freeze" });
      await directory.advanceMove(node("b"), moveId, { step: "switch", attempt });
      clock.advance(NODE_LEASE_MS);
      await refused("BAD_ARGUMENT", directory.removeNode("a"));
      // The copy may be all that is left while the root's node does not run.
      await refused("BAD_ARGUMENT", directory.decideMove(OWNER, "confirm"));
      await directory.heartbeat(beat("b", 1, { rootCount: 1n }));
      await directory.decideMove(OWNER, "confirm");
      assert.equal((await directory.removeNode("a")).outcome, "removed");
      assert.deepEqual(await directory.drainedNodes(), []);
      await directory.advanceMove(node("b"), moveId, { step: "end" });
      assert.deepEqual(await directory.rootMoves(), []);
      await refused("BAD_ARGUMENT", directory.setDrained("x", true));
    },
  );

  contract(
    "nodes tell the sizes of their roots when they are asked, in pages, and each answer replaces the one before",
    async ({ directory }, clock) => {
      await directory.register(registration("a", { roots: [held] }));
      await directory.register(registration("b_1"));
      assert.equal(await directory.sizesWanted(), 0);
      const question = await directory.wantRootSizes();
      assert.equal(await directory.sizesWanted(), question);
      const sizes = [{ owner: OWNER, bytes: 7 }];
      const page = { question, page: 0, isLast: false, sizes };
      await directory.noteRootSizes(node("a"), page);
      assert.deepEqual(await directory.rootSizes(), []);
      const last = { ...page, page: 1, isLast: true, sizes: [{ owner: "v@example.com", bytes: 8 }] };
      await directory.noteRootSizes(node("a"), last);
      await directory.noteRootSizes(node("b_1"), { ...page, isLast: true, sizes: [] });
      const told = await directory.rootSizes();
      assert.deepEqual(
        told.map(({ fsId, sizes: all }) => [fsId, all.length]),
        [
          ["a", 2],
          ["b_1", 0],
        ],
      );
      const next = await directory.wantRootSizes();
      assert.ok(next > question);
      await directory.noteRootSizes(node("a"), { ...page, question: next, isLast: true });
      assert.deepEqual((await directory.rootSizes())[0], { fsId: "a", question: next, sizes });
      await refused("STARTING", directory.noteRootSizes(node("x"), page));
      clock.advance(300_002);
      assert.equal(await directory.sizesWanted(), 0);
    },
  );
}
