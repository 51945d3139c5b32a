// The contract of the metadata store about removed nodes, as tests for every implementation.
import assert from "node:assert/strict";
import { NODE_LEASE_MS } from "#base/limits.ts";
import type { HeldRoot } from "./directory.ts";
import type { Speaker } from "./node-caller.ts";
import { sshNode } from "./ssh-nodes-contract.fixture.ts";
import { beat, type Contract, MOCK, refused, registration } from "./store-under-test.fixture.ts";

function rootOf(owner: string): HeldRoot {
  return { owner, rootId: `ROOT-${owner}`, version: 1n, grants: [{ path: "/", user: "v@example.com" }] };
}

/** Declares the tests. */
export function testNodeRemoval(contract: Contract): void {
  contract(
    "a stopped node without roots is taken out, with its place over SSH; one that runs is not (D19)",
    async ({ directory }, clock) => {
      await directory.register(registration("a"));
      await directory.putSshNode(sshNode("a"));
      clock.advance(NODE_LEASE_MS - 1);
      await refused("BAD_ARGUMENT", directory.removeNode("a"));
      assert.equal((await directory.sshNodes()).length, 1);
      clock.advance(1);
      const removed = { outcome: "removed", rootCount: 0, owners: [], ssh: true };
      assert.deepEqual(await directory.removeNode("a"), removed);
      assert.deepEqual([await directory.nodes(), await directory.sshNodes()], [[], []]);
      const unknown = { outcome: "unknown", rootCount: 0, owners: [], ssh: false };
      assert.deepEqual(await directory.removeNode("a"), unknown);
      // New users do not wait for it, even when a host remembers it.
      await directory.awaitNodes(["a"]);
      assert.deepEqual((await directory.missingLists()).awaited, []);
      await directory.putSshNode(sshNode("only-ssh"));
      assert.deepEqual(await directory.removeNode("only-ssh"), { ...unknown, ssh: true });
      // One that has proven nothing may come back, as a node like any other.
      assert.equal((await directory.register(registration("a"))).epoch, 1);
      assert.deepEqual(await directory.missingLists(), { awaited: [], givenUp: [] });
    },
  );

  contract(
    "a node that was taken out comes back with its key no more, before it is readmitted; another key is a node that joined anew (D20)",
    async ({ directory, reopen }, clock) => {
      const named = (keyFingerprint: string): Speaker => ({ kind: "named", keyFingerprint });
      const generic: Speaker = { kind: "generic", keyFingerprint: "K1" };
      await directory.register(registration("a", { speaker: named("K1") }));
      await directory.register(registration("b", { speaker: named("K2") }));
      // It has changed its key since, and both are its own.
      clock.advance(NODE_LEASE_MS);
      await directory.register(registration("a", { speaker: named("K3") }));
      clock.advance(NODE_LEASE_MS);
      assert.equal((await directory.removeNode("a")).outcome, "removed");
      const again = await reopen();
      assert.equal((await again.heartbeat(beat("a", 2, { speaker: named("K3") }))).known, false);
      for (const speaker of [named("K1"), named("K3"), generic]) {
        await refused("CLIENT_CERT_REQUIRED", again.register(registration("a", { speaker })));
      }
      assert.deepEqual(
        (await again.nodes()).map(({ fsId }) => fsId),
        ["b"],
      );
      await again.register(registration("b", { speaker: named("K2") }));
      await again.readmitNode("b", "K2");
      await again.readmitNode("a", "K3");
      await again.register(registration("a", { speaker: named("K3") }));
      clock.advance(NODE_LEASE_MS);
      assert.equal((await again.removeNode("a")).outcome, "removed");
      await again.register(registration("a", { speaker: named("K4") }));
      clock.advance(NODE_LEASE_MS);
      for (const speaker of [named("K1"), named("K3")]) {
        await refused("CLIENT_CERT_REQUIRED", again.register(registration("a", { speaker })));
        // Nor does it speak for the node that has its id by now, whose lease is over.
        await refused("CLIENT_CERT_REQUIRED", again.heartbeat(beat("a", 99, { speaker })));
        const caller = { fsId: "a", epoch: 99, speaker };
        await refused("CLIENT_CERT_REQUIRED", again.claimRoot("u@example.com", caller));
      }
    },
  );

  contract(
    "a call that changes nothing here is of a registered node too, which was not removed and has no newer epoch (D20)",
    async ({ directory }, clock) => {
      const named = (keyFingerprint: string): Speaker => ({ kind: "named", keyFingerprint });
      const node = { fsId: "a", speaker: named("K1") };
      await refused("STARTING", directory.requireNode(node));
      await directory.requireNotRemoved("a", node.speaker);
      await directory.register(registration("a", { speaker: node.speaker }));
      await directory.requireNode(node);
      await directory.requireNode({ ...node, epoch: 1 });
      await refused("FENCED", directory.requireNode({ ...node, epoch: 0 }));
      const stranger: Speaker = { kind: "generic", keyFingerprint: "K2" };
      await refused("CLIENT_CERT_REQUIRED", directory.requireNode({ ...node, speaker: stranger }));
      clock.advance(NODE_LEASE_MS);
      assert.equal((await directory.removeNode("a")).outcome, "removed");
      await refused("CLIENT_CERT_REQUIRED", directory.requireNode(node));
      await refused("CLIENT_CERT_REQUIRED", directory.requireNotRemoved("a", node.speaker));
      await directory.readmitNode("a", "K1");
      await directory.requireNotRemoved("a", node.speaker);
      await refused("STARTING", directory.requireNode(node));
    },
  );

  contract(
    "a node that holds roots goes only with all of them given up; their users are then placed anew (D19)",
    async ({ directory }, clock) => {
      const roots = ["u@example.com", "t@example.com"].map(rootOf);
      await directory.register(registration("a", { roots }));
      await directory.register(registration("b", { roots: [rootOf("w@example.com")] }));
      clock.advance(NODE_LEASE_MS);
      await directory.heartbeat(beat("b", 1, { rootCount: 1n }));
      const owners = ["t@example.com", "u@example.com"];
      for (const given of [undefined, 0, 1, 3]) {
        const { outcome, rootCount, owners: named } = await directory.removeNode("a", given);
        assert.deepEqual([outcome, rootCount, named], ["holds_roots", 2, owners]);
      }
      assert.equal((await directory.nodes()).length, 2);
      assert.equal((await directory.rootsSharedWith("v@example.com")).length, 3);
      const { moveId } = await directory.beginMove({ owner: "u@example.com", target: "b" });
      assert.equal((await directory.removeNode("a", 2)).outcome, "removed");
      // What has come of a root that was given up is no root.
      assert.equal((await directory.rootMoves())[0]?.state, "undone");
      await directory.advanceMove({ fsId: "b", epoch: 1, speaker: MOCK }, moveId, { step: "end" });
      assert.deepEqual(await directory.rootMoves(), []);
      assert.deepEqual(
        (await directory.rootsSharedWith("v@example.com")).map(({ owner }) => owner),
        ["w@example.com"],
      );
      assert.equal(await directory.findRoot("u@example.com"), undefined);
      const placed = await directory.locateRoot("u@example.com");
      assert.equal(placed.fsId, "b");
      assert.notEqual(placed.rootId, "ROOT-u@example.com");
      assert.equal((await directory.findRoot("w@example.com"))?.rootId, "ROOT-w@example.com");
    },
  );

  contract(
    "a root that was placed and never fetched keeps no node: its user is placed anew",
    async ({ directory }, clock) => {
      await directory.register(registration("a"));
      assert.equal((await directory.locateRoot("u@example.com")).fsId, "a");
      clock.advance(NODE_LEASE_MS);
      assert.equal((await directory.removeNode("a")).outcome, "removed");
      await directory.register(registration("b"));
      assert.equal((await directory.locateRoot("u@example.com")).fsId, "b");
    },
  );

  contract(
    "a node that has yet to list its roots is not taken out before it is given up (D19)",
    async ({ directory }, clock) => {
      await directory.register(registration("a"));
      await directory.register(registration("b"));
      // The store turns out to be an older copy.
      await directory.heartbeat(beat("b", 7));
      clock.advance(NODE_LEASE_MS);
      assert.ok((await directory.missingLists()).awaited.includes("a"));
      await refused("BAD_ARGUMENT", directory.removeNode("a"));
      assert.equal(await directory.giveUpNode("a"), true);
      assert.equal((await directory.removeNode("a")).outcome, "removed");
    },
  );
}
