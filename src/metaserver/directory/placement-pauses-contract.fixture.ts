// The contract of the metadata store about nodes that take no new roots for a while.
import assert from "node:assert/strict";
import { isGroveError } from "#base/errors.ts";
import { NODE_LEASE_MS } from "#base/limits.ts";
import { beat, type Contract, GIB, registration } from "./store-under-test.fixture.ts";

/** Declares the tests. */
export function testPlacementPauses(contract: Contract): void {
  contract(
    "a paused node gets no new roots, keeps those that it has, and takes new ones once the pause is over or ended (D11, D19)",
    async (store, clock) => {
      const { directory } = store;
      await directory.register(registration("a", { diskFreeBytes: 400n * GIB }));
      await directory.register(registration("b", { diskFreeBytes: 300n * GIB }));
      const first = await directory.locateRoot("u1@example.com");
      assert.equal(first.fsId, "a");
      await directory.setPlacementPause("a", clock.wallMs() + 10_000);
      assert.equal((await directory.locateRoot("u2@example.com")).fsId, "b");
      assert.deepEqual(await directory.locateRoot("u1@example.com"), first);
      // It is no setting of the cluster, and a heartbeat does not end it.
      await directory.heartbeat(beat("a", 1, { diskFreeBytes: 400n * GIB }));
      assert.equal((await directory.locateRoot("u3@example.com")).fsId, "b");
      clock.advance(10_000);
      assert.equal((await directory.locateRoot("u4@example.com")).fsId, "a");
      await directory.setPlacementPause("a", clock.wallMs() + 3_600_000);
      await directory.setPlacementPause("a", undefined);
      assert.equal((await directory.locateRoot("u5@example.com")).fsId, "a");
    },
  );

  contract(
    "where every node is paused, new users are told so, and by which nodes (D11)",
    async (store, clock) => {
      const { directory } = store;
      await directory.register(registration("a"));
      await directory.setPlacementPause("a", clock.wallMs() + 60_000);
      await assert.rejects(directory.locateRoot("u@example.com"), (error) => {
        assert.ok(isGroveError(error, "NODE_DRAINING"));
        assert.equal(error.metadata["maintenance"], "a");
        assert.match(error.message, /^new users wait: every FileServer that is running is in maintenance/);
        return true;
      });
    },
  );

  contract("a node that is removed and comes back is not paused (D19)", async (store, clock) => {
    const { directory } = store;
    await directory.register(registration("a"));
    await directory.setPlacementPause("a", clock.wallMs() + 3_600_000);
    clock.advance(NODE_LEASE_MS);
    assert.equal((await directory.removeNode("a")).outcome, "removed");
    await directory.register(registration("a"));
    assert.equal((await directory.locateRoot("u@example.com")).fsId, "a");
  });
}
