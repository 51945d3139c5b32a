// The contract of the metadata store about an older copy of it that was put back.
import assert from "node:assert/strict";
import { NODE_LEASE_MS } from "#base/limits.ts";
import type { Directory, HeldRoot } from "./directory.ts";
import type { NodeCaller } from "./node-caller.ts";
import { beat, type Contract, MOCK, refused, registration } from "./store-under-test.fixture.ts";

const ALICE = "alice@example.com";
const BOB = "bob@example.com";

function rootOf(owner: string, rootId = `ROOT-${owner}`): HeldRoot {
  return { owner, rootId, version: 3n, grants: [] };
}

/** A node that is about to make a root. */
function maker(fsId: string, epoch: number): NodeCaller {
  return { fsId, epoch, speaker: MOCK, needsNumber: true };
}

/** A copy with Alice's root on `a` and none of Bob's; since then hers has moved to `b`, and his was made on `a`. */
async function olderCopy(directory: Directory): Promise<void> {
  await directory.register(registration("a", { roots: [rootOf(ALICE)] }));
  await directory.register(registration("b"));
  assert.equal((await directory.heartbeat(beat("b", 1, { rootCount: 1n }))).sendFull, true);
}

/** Declares the tests. */
export function testOlderCopies(contract: Contract): void {
  contract(
    "a node with as many roots as an older copy has of it is asked which they are before anybody gets a new one (D19)",
    async ({ directory }, clock) => {
      await olderCopy(directory);
      await directory.register(registration("b", { roots: [rootOf(ALICE)] }));
      clock.advance(NODE_LEASE_MS);
      assert.equal((await directory.heartbeat(beat("a", 1, { rootCount: 1n }))).sendFull, true);
      await refused("STARTING", directory.locateRoot(BOB));
      await directory.register(registration("a", { roots: [rootOf(BOB)] }));
      assert.equal((await directory.locateRoot(BOB)).rootId, `ROOT-${BOB}`);
      assert.ok((await directory.locateRoot("new@example.com")).rootId);
    },
  );

  contract(
    "a node whose list does not come makes the others list theirs once, not at each of its heartbeats (D19)",
    async ({ directory }) => {
      await olderCopy(directory);
      await directory.register(registration("a", { roots: [rootOf(ALICE)] }));
      for (let i = 0; i < 2; i++) {
        assert.equal((await directory.heartbeat(beat("b", 1, { rootCount: 1n }))).sendFull, true);
        assert.equal((await directory.heartbeat(beat("a", 2, { rootCount: 1n }))).sendFull, false);
      }
      assert.deepEqual((await directory.missingLists()).awaited, ["b"]);
    },
  );

  for (const order of [
    ["a", "b"],
    ["b", "a"],
  ] as const) {
    contract(
      `after an older copy a root is with the node that lists it, and the one before makes no empty one (${order.join(", ")}; D19)`,
      async ({ directory }, clock) => {
        await olderCopy(directory);
        clock.advance(NODE_LEASE_MS);
        const lists = { a: [rootOf(BOB)], b: [rootOf(ALICE)] };
        const epochs = { a: 1, b: 1 };
        await refused("STARTING", directory.claimRoot(ALICE, maker("a", 1)));
        for (const fsId of order) {
          const lease = await directory.register(registration(fsId, { roots: lists[fsId] }));
          epochs[fsId] = lease.epoch;
          if (fsId === order[0]) {
            await refused("STARTING", directory.claimRoot(ALICE, maker("a", epochs.a)));
          }
        }
        for (const fsId of order) {
          const { sendFull } = await directory.heartbeat(beat(fsId, epochs[fsId], { rootCount: 1n }));
          if (!sendFull) continue;
          await refused("STARTING", directory.claimRoot(ALICE, maker("a", epochs.a)));
          const { conflicts } = await directory.register(registration(fsId, { roots: lists[fsId] }));
          assert.deepEqual(conflicts, []);
        }
        const claimed = await directory.claimRoot(ALICE, maker("a", epochs.a));
        assert.deepEqual([claimed.fsId, claimed.rootId], ["b", `ROOT-${ALICE}`]);
        assert.deepEqual((await directory.missingLists()).awaited, []);
      },
    );
  }

  contract(
    "a root that no node lists after an older copy is made anew, with another id, on an operator's word alone (D19)",
    async ({ directory }, clock) => {
      await olderCopy(directory);
      await directory.register(registration("b"));
      await directory.register(registration("a"));
      clock.advance(NODE_LEASE_MS);
      const node = maker("a", 2);
      for (let i = 0; i < 2; i++) await refused("ROOT_LOST", directory.claimRoot(ALICE, node));
      await refused("BAD_ARGUMENT", directory.beginMove({ owner: ALICE, target: "b" }));
      assert.equal((await directory.removeNode("a")).outcome, "holds_roots");
      assert.deepEqual(await directory.giveUpRoot(ALICE), { fsId: "a" });
      const made = await directory.claimRoot(ALICE, node);
      assert.deepEqual([made.fsId, made.replacesLost], ["a", true]);
      assert.notEqual(made.rootId, `ROOT-${ALICE}`);
      assert.equal((await directory.claimRoot(ALICE, node)).rootId, made.rootId);
    },
  );

  contract(
    "a node that is asked again and was refused no root keeps no loss from being told (D19)",
    async ({ directory }) => {
      await olderCopy(directory);
      await directory.register(registration("b"));
      await directory.register(registration("a"));
      await directory.heartbeat(beat("b", 2, { rootsVersion: 2n }));
      for (let i = 0; i < 2; i++) {
        assert.equal((await directory.heartbeat(beat("b", 2, { rootsVersion: 1n }))).sendFull, true);
      }
      await refused("ROOT_LOST", directory.claimRoot(ALICE, maker("a", 2)));
    },
  );

  contract(
    "who lists a root again that it did not list keeps it, with what has been shared of it since (D19)",
    async ({ directory }) => {
      await olderCopy(directory);
      await directory.register(registration("b"));
      await directory.register(registration("a"));
      const { conflicts } = await directory.register(registration("a", { roots: [rootOf(ALICE)] }));
      assert.deepEqual(conflicts, []);
      assert.equal((await directory.heartbeat(beat("a", 3, { rootCount: 1n }))).sendFull, false);
      assert.equal((await directory.claimRoot(ALICE, maker("a", 3))).rootId, `ROOT-${ALICE}`);
    },
  );

  contract(
    "whose address has changed since the older copy keeps the root, and gets no second one (D19, D34)",
    async ({ directory }) => {
      const grants = [{ path: "/docs", user: "v@example.com" }];
      const [first, second] = ["alice@new.example", "bob@new.example"];
      await directory.register(registration("a", { roots: [rootOf(ALICE, "R1"), rootOf(BOB, "R2")] }));
      await directory.register(registration("b"));
      assert.equal((await directory.heartbeat(beat("b", 1, { rootCount: 1n }))).sendFull, true);
      await directory.register(registration("b"));
      // Bob has Alice's former address by now.
      const roots = [{ ...rootOf(first, "R1"), grants }, rootOf(ALICE, "R2")];
      assert.deepEqual((await directory.register(registration("a", { roots }))).conflicts, []);
      const ids = await Promise.all([first, ALICE, BOB, second].map((owner) => directory.findRoot(owner)));
      assert.deepEqual(
        ids.map((root) => root?.rootId),
        ["R1", "R2", undefined, undefined],
      );
      const shared = await directory.rootsSharedWith("v@example.com");
      assert.deepEqual(
        shared.map(({ owner, rootId }) => [owner, rootId]),
        [[first, "R1"]],
      );
      // A node that nobody asked takes no root under another name.
      const stranger = registration("b", { roots: [rootOf(second, "R1")] });
      assert.equal((await directory.register(stranger)).conflicts.length, 1);
    },
  );

  contract(
    "a root that was lost and made anew on its node is the one that the node lists after an older copy (D19)",
    async ({ directory }) => {
      await olderCopy(directory);
      await directory.register(registration("b"));
      const news = registration("a", { roots: [rootOf(ALICE, "ROOT-2")] });
      assert.deepEqual((await directory.register(news)).conflicts, []);
      assert.equal((await directory.findRoot(ALICE))?.rootId, "ROOT-2");
    },
  );
}
