// The contract of the metadata store about roots that a restored node lacks, for every implementation.
import assert from "node:assert/strict";
import type { HeldRoot } from "./directory.ts";
import type { NodeCaller } from "./node-caller.ts";
import { type Contract, MOCK, refused, registration } from "./store-under-test.fixture.ts";

const DAVE = "dave@example.com";

function rootOf(owner: string): HeldRoot {
  return { owner, rootId: `ROOT-${owner}`, version: 7n, grants: [{ path: "/", user: "v@example.com" }] };
}

/** Declares the tests. */
export function testLostRoots(contract: Contract): void {
  contract(
    "a restored node gets no new root in the place of one that it held before, until that is given up (D19)",
    async ({ directory }, clock) => {
      await directory.register(registration("a", { roots: [rootOf(DAVE), rootOf("eve@example.com")] }));
      clock.advance(5_000);
      const restoredAtMs = clock.wallMs();
      const node: NodeCaller = { fsId: "a", epoch: 1, speaker: MOCK, restoredAtMs };
      const { restoredAtMs: _at, ...unrestored } = node;
      assert.equal((await directory.claimRoot(DAVE, unrestored)).rootId, `ROOT-${DAVE}`);
      for (let i = 0; i < 2; i++) await refused("ROOT_LOST", directory.claimRoot(DAVE, node));
      assert.equal((await directory.findRoot(DAVE))?.rootId, `ROOT-${DAVE}`, "nothing was changed");
      clock.advance(5_000);
      assert.deepEqual(await directory.giveUpRoot(DAVE), { fsId: "a" });
      await refused("ROOT_LOST", directory.claimRoot("eve@example.com", node));
      const { replacesLost, ...made } = await directory.claimRoot(DAVE, node);
      assert.equal(replacesLost, true);
      assert.notEqual(made.rootId, `ROOT-${DAVE}`);
      assert.equal(made.fsId, "a");
      assert.deepEqual(await directory.claimRoot(DAVE, node), made, "asked again, it is the same");
      assert.deepEqual(
        (await directory.rootsSharedWith("v@example.com")).map(({ owner }) => owner),
        ["eve@example.com"],
        "what was shared of the old one is not shared of the new one",
      );
    },
  );

  contract(
    "what was given up before a later restore is asked for again, and who is new is nobody's loss (D19)",
    async ({ directory }, clock) => {
      await directory.register(registration("a", { roots: [rootOf(DAVE)] }));
      clock.advance(5_000);
      assert.deepEqual(await directory.giveUpRoot(DAVE), { fsId: "a" });
      clock.advance(5_000);
      const node: NodeCaller = { fsId: "a", epoch: 1, speaker: MOCK, restoredAtMs: clock.wallMs() };
      await refused("ROOT_LOST", directory.claimRoot(DAVE, node));
      assert.equal(await directory.giveUpRoot("nobody@example.com"), undefined);
      clock.advance(5_000);
      const fresh = await directory.locateRoot("frank@example.com");
      assert.equal(
        await directory.giveUpRoot("frank@example.com"),
        undefined,
        "placed, and held by nobody yet",
      );
      assert.equal((await directory.claimRoot("frank@example.com", node)).rootId, fresh.rootId);
      assert.equal((await directory.claimRoot("frank@example.com", node)).rootId, fresh.rootId);
    },
  );
}
