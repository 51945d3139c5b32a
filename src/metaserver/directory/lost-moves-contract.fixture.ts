// The contract of the metadata store about roots that are frozen for moves which it, an older copy, has lost.
import assert from "node:assert/strict";
import { NODE_LEASE_MS } from "#base/limits.ts";
import type { Directory, HeldRoot } from "./directory.ts";
import type { RootMove } from "./root-move.ts";
import { beat, type Contract, MOCK, refused, registration } from "./store-under-test.fixture.ts";

const OWNER = "u@example.com";
const MOVE = "01M";
const held: HeldRoot = { owner: OWNER, rootId: "ROOT", version: 1n, grants: [], arrival: "" };
/** The root as it is behind the move. */
const moved: HeldRoot = {
  ...held,
  version: 2n,
  grants: [{ path: "/", user: "v@example.com" }],
  arrival: MOVE,
};
const node = (fsId: string, epoch = 1) => ({ fsId, epoch, speaker: MOCK });

/** A copy of before the move from a to b, and the word of a that it has the root frozen. */
async function recalled(directory: Directory): Promise<RootMove> {
  await directory.register(registration("a", { roots: [held] }));
  await directory.register(registration("b"));
  return directory.advanceMove(node("a"), MOVE, { step: "recall", owner: OWNER, isArriving: false });
}

/** The move as the source hears of it after its look. */
async function looked(directory: Directory, epoch: number): Promise<string> {
  await directory.advanceMove(node("a", epoch), MOVE, { step: "thaw", attempt: 0 });
  const [move] = await directory.movesOf(node("a", epoch));
  return `${move?.state} ${move?.role} ${move?.target}`;
}

async function problemIn(directory: Directory): Promise<string> {
  return (await directory.rootMoves())[0]?.problem ?? "";
}

/** Declares the tests. */
export function testLostMoves(contract: Contract): void {
  contract(
    "a root that is frozen for a move which an older copy has lost is served again once no list has it elsewhere (D27)",
    async (store, clock) => {
      const { directory } = store;
      assert.equal((await recalled(directory)).state, "frozen");
      const again = await store.reopen();
      assert.equal(
        (await again.advanceMove(node("a"), MOVE, { step: "recall", owner: OWNER, isArriving: false })).state,
        "frozen",
      );
      for (const fsId of ["a", "b"]) {
        const rootCount = fsId === "a" ? 1n : 0n;
        assert.equal((await again.heartbeat(beat(fsId, 1, { rootCount }))).sendFull, true, fsId);
      }
      await refused("STARTING", again.locateRoot("new@example.com"));
      await again.register(registration("a", { roots: [held] }));
      assert.equal(await looked(again, 2), "frozen source ");
      assert.match(await problemIn(again), /^b must list their roots first: .*grove node lost ID/);
      await refused("BAD_ARGUMENT", again.decideMove(OWNER, "undo"));
      const arrived = { step: "recall", owner: OWNER, isArriving: true } as const;
      assert.equal((await again.advanceMove(node("b"), MOVE, arrived)).state, "frozen");
      await refused("BAD_ARGUMENT", again.beginMove({ owner: OWNER, target: "b" }));
      await again.register(registration("b"));
      assert.equal(await looked(again, 2), "frozen source ");
      assert.match(await problemIn(again), /^nodes that the store does not know have 30 s to register$/);
      clock.advance(NODE_LEASE_MS);
      assert.equal(await looked(again, 2), "undone source ");
      assert.deepEqual(await again.movesOf(node("b", 2)), []);
      await again.advanceMove(node("a", 2), MOVE, { step: "end" });
      assert.deepEqual(await again.rootMoves(), []);
      assert.equal((await again.findRoot(OWNER))?.fsId, "a");
      assert.equal((await again.advanceMove(node("b", 2), MOVE, arrived)).state, "undone");
      await refused("NO_SUCH_PATH", again.advanceMove(node("b", 2), `${MOVE}Z`, arrived));
      // Should the root come up at the target after all, that is a copy of before.
      const late = await again.register(registration("b", { roots: [moved] }));
      assert.deepEqual(late.copies, [{ owner: OWNER, target: "a" }]);
    },
  );

  for (const order of ["ab", "ba"]) {
    contract(
      `a root that is frozen for a lost move is with the node that lists it with that move, and the frozen one is a copy to confirm (${order}; D27)`,
      async ({ directory }, clock) => {
        await recalled(directory);
        for (const fsId of order) {
          assert.equal(await looked(directory, fsId === "b" && order === "ab" ? 2 : 1), "frozen source ");
          await directory.register(registration(fsId, { roots: [fsId === "a" ? held : moved] }));
        }
        clock.advance(NODE_LEASE_MS);
        assert.equal(await looked(directory, 2), "switched source b");
        assert.equal((await directory.findRoot(OWNER))?.fsId, "b");
        assert.equal((await directory.heartbeat(beat("b", 2, { rootCount: 1n }))).sendFull, true);
        await directory.register(registration("b", { roots: [moved] }));
        const shared = await directory.rootsSharedWith("v@example.com");
        assert.deepEqual(
          shared.map(({ owner, fsId }) => [owner, fsId]),
          [[OWNER, "b"]],
        );
        assert.equal((await directory.decideMove(OWNER, "confirm"))?.state, "confirmed");
        await directory.advanceMove(node("a", 2), MOVE, { step: "end" });
        await directory.advanceMove(node("b", 3), MOVE, { step: "end" });
        assert.deepEqual(await directory.rootMoves(), []);
      },
    );
  }

  contract(
    "a copy that another node lists from before the lost move keeps no root frozen",
    async ({ directory }, clock) => {
      await recalled(directory);
      await directory.register(registration("b", { roots: [{ ...held, arrival: "00M" }] }));
      await directory.register(registration("a", { roots: [held] }));
      clock.advance(NODE_LEASE_MS);
      assert.equal(await looked(directory, 2), "undone source ");
      assert.equal((await directory.findRoot(OWNER))?.fsId, "a");
    },
  );

  contract(
    "a frozen root waits for a node that is away until that has listed its roots or is given up",
    async ({ directory }, clock) => {
      await recalled(directory);
      clock.advance(NODE_LEASE_MS + 1_000);
      await directory.register(registration("a", { roots: [held] }));
      assert.equal(await looked(directory, 2), "frozen source ");
      assert.equal(await directory.giveUpNode("b"), true);
      assert.equal((await directory.decideMove(OWNER, "undo"))?.state, "undone");
      assert.equal(await looked(directory, 2), "undone source ");
    },
  );

  contract(
    "where a rebuilt store has the root on another node, that one's list must have it by the lost move",
    async ({ directory }, clock) => {
      for (const [roots, state] of [
        [[{ ...held, arrival: "00M" }], "frozen source "],
        [[moved], "switched source b"],
      ] as const) {
        await directory.register(registration("b", { roots: [...roots] }));
        await directory.register(registration("a", { roots: [held] }));
        const epochs = new Map((await directory.nodes()).map(({ fsId, epoch }) => [fsId, epoch]));
        const epoch = epochs.get("a") ?? 0;
        await directory.advanceMove(node("a", epoch), MOVE, {
          step: "recall",
          owner: OWNER,
          isArriving: false,
        });
        await directory.register(registration("b", { roots: [...roots] }));
        await directory.register(registration("a", { roots: [held] }));
        clock.advance(NODE_LEASE_MS);
        assert.equal(await looked(directory, epoch + 1), state);
        if (state === "frozen source ") assert.match(await problemIn(directory), /^b lists this root too/);
      }
    },
  );

  contract(
    "what is under a move already, or unknown, is under no lost one, and only its source speaks of that",
    async ({ directory }) => {
      await recalled(directory);
      const recall = { step: "recall", owner: OWNER, isArriving: false } as const;
      await refused("NO_SUCH_PATH", directory.advanceMove(node("b"), MOVE, recall));
      await refused("NO_SUCH_PATH", directory.advanceMove(node("a"), "02M", recall));
      const unknown = { step: "recall", owner: "nobody@example.com", isArriving: false } as const;
      await refused("NO_SUCH_PATH", directory.advanceMove(node("a"), "03M", unknown));
    },
  );
}
