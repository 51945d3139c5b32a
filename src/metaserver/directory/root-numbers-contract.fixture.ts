// The contract of the metadata store about the numbers of roots.
import assert from "node:assert/strict";
import { CLUSTER_ROOT_NUMBERS_FROM as FIRST } from "#base/limits.ts";
import { type Contract, MOCK, registration } from "./store-under-test.fixture.ts";

/** Declares the tests. */
export function testRootNumbers(contract: Contract): void {
  contract(
    "each root that a node makes gets a number of its own in the whole cluster (D19)",
    async (store) => {
      const { directory } = store;
      await directory.register(registration("a"));
      const node = { fsId: "a", epoch: 1, speaker: MOCK };
      const maker = { ...node, needsNumber: true };
      assert.equal((await directory.claimRoot("u@example.com", node)).number, undefined);
      assert.equal((await directory.claimRoot("u@example.com", maker)).number, FIRST);
      assert.equal((await directory.claimRoot("v@example.com", maker)).number, FIRST + 1);
      const again = await store.reopen();
      assert.equal((await again.claimRoot("w@example.com", maker)).number, FIRST + 2);
    },
  );

  contract("a visitor's node gets no number for a root that lives elsewhere", async ({ directory }) => {
    await directory.register(registration("a"));
    await directory.claimRoot("u@example.com", { fsId: "a", epoch: 1, speaker: MOCK });
    await directory.register(registration("b"));
    const visited = { fsId: "b", epoch: 1, speaker: MOCK, needsNumber: true };
    assert.equal((await directory.claimRoot("u@example.com", visited)).number, undefined);
  });

  contract("a store that was lost gives no number again that a node lists (D19)", async ({ directory }) => {
    const held = (owner: string, number: number) => ({
      owner,
      rootId: owner,
      version: 1n,
      grants: [],
      number,
    });
    const roots = [
      held("u@example.com", FIRST + 7),
      held("v@example.com", 3),
      held("w@example.com", 2 ** 31),
    ];
    await directory.register(registration("a", { roots: roots.slice(0, 2) }));
    await directory.register(registration("b", { roots: roots.slice(2) }));
    const maker = { fsId: "a", epoch: 1, speaker: MOCK, needsNumber: true };
    assert.equal((await directory.claimRoot("u@example.com", maker)).number, FIRST + 8);
  });
}
