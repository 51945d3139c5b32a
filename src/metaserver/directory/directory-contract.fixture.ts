// The promises of the metadata store as tests that every implementation must pass.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { NODE_LEASE_MS } from "#base/limits.ts";
import { testAddressChanges } from "./address-changes-contract.fixture.ts";
import { testCredentials } from "./credentials-contract.fixture.ts";
import { testDepartedRoots } from "./departed-roots-contract.fixture.ts";
import type { NodeRegistration } from "./directory.ts";
import { testGroups } from "./groups-contract.fixture.ts";
import { testListings } from "./listings-contract.fixture.ts";
import { testLostMoves } from "./lost-moves-contract.fixture.ts";
import { testLostRoots } from "./lost-roots-contract.fixture.ts";
import type { Speaker } from "./node-caller.ts";
import { testNodeRemoval } from "./node-removal-contract.fixture.ts";
import { testNotices } from "./notices-contract.fixture.ts";
import { testOlderCopies } from "./older-copy-contract.fixture.ts";
import { testPlacementPauses } from "./placement-pauses-contract.fixture.ts";
import { testRootMoves } from "./root-moves-contract.fixture.ts";
import { testRootNumbers } from "./root-numbers-contract.fixture.ts";
import { testRoots } from "./roots-contract.fixture.ts";
import { testSecurityReports } from "./security-contract.fixture.ts";
import { testSshNodes } from "./ssh-nodes-contract.fixture.ts";
import {
  beat,
  type Contract,
  MOCK,
  type OpenForTest,
  refused,
  registration,
} from "./store-under-test.fixture.ts";
import { testSubjects } from "./subjects-contract.fixture.ts";
import { testUserStates } from "./user-states-contract.fixture.ts";

/** Ends a test that hangs; a machine with much else to do takes seconds for what takes it milliseconds alone. */
const TEST_TIMEOUT_MS = 120_000;

/** Declares the contract's tests for one implementation; `skip` is the reason not to run them, or false. */
export function testDirectoryContract(
  name: string,
  open: OpenForTest,
  options: { readonly skip?: string | false } = {},
): void {
  const contract: Contract = (title, body) => {
    test(`${name}: ${title}`, { timeout: TEST_TIMEOUT_MS, skip: options.skip ?? false }, async (t) => {
      const clock = new ManualClock();
      await body(await open(clock, (end) => t.after(end)), clock);
    });
  };

  contract(
    "the first registration of a new cluster makes its id, which stays over restarts (D19)",
    async (store) => {
      assert.equal(await store.directory.clusterId(), undefined);
      const { clusterId, epoch } = await store.directory.register(registration("a"));
      assert.match(clusterId, /^[0-9A-HJKMNP-TV-Z]{26}$/);
      assert.equal(epoch, 1);
      const again = await store.reopen();
      assert.equal(await again.clusterId(), clusterId);
      assert.equal((await again.register(registration("b"))).clusterId, clusterId);
    },
  );

  contract("another cluster's node is refused, and nothing of it is kept (D19)", async ({ directory }) => {
    const { clusterId } = await directory.register(registration("a"));
    await refused("CLUSTER_MISMATCH", directory.register(registration("b", { clusterId: "OTHER" })));
    await refused("CLUSTER_MISMATCH", directory.adoptClusterId("OTHER"));
    await directory.adoptClusterId(clusterId);
    assert.deepEqual(
      (await directory.nodes()).map(({ fsId }) => fsId),
      ["a"],
    );
    assert.equal(await directory.clusterId(), clusterId);
  });

  contract(
    "a live id is held against any other data directory, until its lease ends (D19)",
    async ({ directory }, clock) => {
      await directory.register(registration("a"));
      clock.advance(NODE_LEASE_MS - 1);
      await refused("NODE_ID_HELD", directory.register(registration("a", { dataId: "clone" })));
      assert.equal((await directory.nodes())[0]?.epoch, 1);
      clock.advance(1);
      assert.equal((await directory.register(registration("a", { dataId: "clone" }))).epoch, 2);
    },
  );

  contract(
    "the same data directory is taken back at once with the next epoch in mock mode (D19)",
    async ({ directory }) => {
      await directory.register(registration("a"));
      const { epoch } = await directory.register(registration("a", { instanceId: "restarted" }));
      assert.equal(epoch, 2);
    },
  );

  contract(
    "with certificates the key decides, not the data directory (D19)",
    async ({ directory }, clock) => {
      const key = (keyFingerprint: string): Speaker => ({ kind: "named", keyFingerprint });
      await directory.register(registration("a", { speaker: key("K1") }));
      const clone = registration("a", { speaker: key("K2") });
      await refused("NODE_ID_HELD", directory.register(clone));
      const restarted = registration("a", { speaker: key("K1"), dataId: "new disk" });
      assert.equal((await directory.register(restarted)).epoch, 2);
      // Another process with a certificate for the id takes over neither by the known nor by a newer epoch.
      for (const epoch of [2, 9]) {
        await refused("NODE_ID_HELD", directory.heartbeat(beat("a", epoch, { speaker: key("K2") })));
        await refused(
          "NODE_ID_HELD",
          directory.heartbeat(beat("a", epoch, { speaker: key("K2"), instanceId: "another" })),
        );
      }
      assert.equal((await directory.nodes())[0]?.epoch, 2);
      // The registered process changes its key by its first heartbeat with the new one.
      await directory.heartbeat(beat("a", 2, { speaker: key("K2"), instanceId: restarted.instanceId }));
      assert.equal((await directory.register(clone)).epoch, 3);
      clock.advance(NODE_LEASE_MS);
      assert.equal((await directory.register(registration("a", { speaker: key("K9") }))).epoch, 4);
    },
  );

  contract(
    "with another key the holder's own data directory decides, which alone names the process that registered from it last (D19)",
    async ({ directory }) => {
      const named = (keyFingerprint: string): Speaker => ({ kind: "named", keyFingerprint });
      const first = registration("a", { speaker: named("K1") });
      await directory.register(first);
      const next = (facts: Partial<NodeRegistration>): NodeRegistration =>
        registration("a", { speaker: named("K2"), predecessorId: first.instanceId, ...facts });
      for (const stranger of [
        next({ predecessorId: "" }),
        next({ predecessorId: "of before the backup" }),
        next({ dataId: "restored" }),
      ]) {
        await refused("NODE_ID_HELD", directory.register(stranger));
      }
      const second = next({});
      assert.equal((await directory.register(second)).epoch, 2);
      // A certificate that names no node proves nothing beyond its key.
      const generic: Speaker = { kind: "generic", keyFingerprint: "K1" };
      const unnamed = registration("a", { speaker: generic, predecessorId: second.instanceId });
      await refused("NODE_ID_HELD", directory.register(unnamed));
      // The former holder of the directory is a stranger now.
      await refused("NODE_ID_HELD", directory.register(next({ speaker: named("K3") })));
      await refused("FENCED", directory.heartbeat(beat("a", 1, { speaker: named("K2") })));
    },
  );

  contract(
    "a lease of mock mode is taken over by the same data directory with a certificate",
    async ({ directory }) => {
      await directory.register(registration("a"));
      const speaker: Speaker = { kind: "named", keyFingerprint: "K1" };
      await refused("NODE_ID_HELD", directory.register(registration("a", { speaker, dataId: "clone" })));
      assert.equal((await directory.register(registration("a", { speaker }))).epoch, 2);
      assert.equal((await directory.register(registration("a", { speaker, dataId: "new disk" }))).epoch, 3);
    },
  );

  contract(
    "a certificate that names no node speaks only for ids first registered with its key (D20)",
    async ({ directory }, clock) => {
      const generic = (keyFingerprint: string): Speaker => ({ kind: "generic", keyFingerprint });
      await directory.register(registration("a", { speaker: generic("K1") }));
      clock.advance(NODE_LEASE_MS);
      await refused(
        "CLIENT_CERT_REQUIRED",
        directory.register(registration("a", { speaker: generic("K2") })),
      );
      await refused("CLIENT_CERT_REQUIRED", directory.heartbeat(beat("a", 1, { speaker: generic("K2") })));
      const impostor = { fsId: "a", epoch: 1, speaker: generic("K2") };
      await refused("CLIENT_CERT_REQUIRED", directory.claimRoot("u@example.com", impostor));
      // The node's own certificate may, and does not change the first key.
      await directory.register(registration("a", { speaker: { kind: "named", keyFingerprint: "K3" } }));
      await refused("NODE_ID_HELD", directory.heartbeat(beat("a", 2, { speaker: generic("K1") })));
      clock.advance(NODE_LEASE_MS);
      assert.equal((await directory.heartbeat(beat("a", 2, { speaker: generic("K1") }))).known, true);
    },
  );

  contract(
    "an older epoch is fenced in every control call, the newer one goes on (D19)",
    async ({ directory }) => {
      await directory.register(registration("a"));
      await directory.register(registration("a"));
      await refused("FENCED", directory.heartbeat(beat("a", 1)));
      const node = { fsId: "a", epoch: 1, speaker: MOCK };
      await refused("FENCED", directory.claimRoot("u@example.com", node));
      const grant = {
        owner: "u@example.com",
        path: "/",
        user: "v@example.com",
        version: 1n,
        granted: true,
        node,
      };
      await refused("FENCED", directory.setGrant(grant));
      assert.deepEqual(await directory.heartbeat(beat("a", 2)), { known: true, sendFull: false });
      assert.equal(await directory.findRoot("u@example.com"), undefined);
    },
  );

  contract(
    "a registration that comes once more, late or because its answer was lost, does not fence its own process (M-02)",
    async ({ directory }) => {
      const first = registration("a");
      assert.equal((await directory.register(first)).epoch, 1);
      assert.equal((await directory.register(first)).epoch, 1);
      assert.equal((await directory.heartbeat(beat("a", 1))).known, true);
      // The same process registers anew with its epoch: that is another registration.
      const again = { ...first, lastEpoch: 1 };
      assert.equal((await directory.register(again)).epoch, 2);
      assert.equal((await directory.register(again)).epoch, 2);
      assert.equal((await directory.register(first)).epoch, 2);
      assert.equal((await directory.heartbeat(beat("a", 2))).known, true);
      // Another process, or this one after another, begins the next.
      assert.equal((await directory.register(registration("a"))).epoch, 3);
      assert.equal((await directory.register(again)).epoch, 4);
    },
  );

  contract(
    "a process is replaced only by naming its epoch, so that a late registration of one that is gone changes nothing (M-02)",
    async ({ directory }, clock) => {
      const gone = { ...registration("a"), knownEpoch: 0 };
      assert.equal((await directory.register(gone)).epoch, 1);
      const next = { ...registration("a"), knownEpoch: 0, address: "next.example.com:50051" };
      const held = await directory.register(next);
      assert.deepEqual([held.epoch, held.heldEpoch], [0, 1]);
      assert.equal((await directory.heartbeat(beat("a", 1))).known, true);
      const named = await directory.register({ ...next, knownEpoch: 1 });
      assert.deepEqual([named.epoch, named.heldEpoch], [2, undefined]);
      // A late copy with the epoch that was right for it then, during the lease and after it.
      for (const waitMs of [0, NODE_LEASE_MS]) {
        clock.advance(waitMs);
        for (const knownEpoch of [0, 1]) {
          assert.equal((await directory.register({ ...gone, knownEpoch })).heldEpoch, 2);
        }
      }
      const [node] = await directory.nodes();
      assert.deepEqual([node?.epoch, node?.live, node?.address], [2, false, next.address]);
      assert.equal((await directory.heartbeat(beat("a", 2))).known, true);
      // The answer to its own was lost: it sends the same again.
      assert.equal((await directory.register({ ...next, knownEpoch: 1 })).epoch, 2);
    },
  );

  contract(
    "a process that had the node before another took it is fenced also when it registers; one whose store was lost is not (D19)",
    async ({ directory }) => {
      const first = registration("a");
      await directory.register({ ...first, knownEpoch: 0 });
      const second = registration("a");
      await directory.register({ ...second, knownEpoch: 1 });
      await refused("FENCED", directory.register({ ...first, lastEpoch: 1, knownEpoch: 1 }));
      assert.equal((await directory.nodes())[0]?.epoch, 2);
      // To a process with epoch 7 a store with epoch 2 is an older copy: it registers once it names epoch 2.
      const newer = registration("a", { lastEpoch: 7, knownEpoch: 7 });
      assert.equal((await directory.register(newer)).heldEpoch, 2);
      assert.equal((await directory.register({ ...newer, knownEpoch: 2 })).epoch, 8);
    },
  );

  contract(
    "a heartbeat of a newer epoch than the store's asks for a registration, and of another process it renews nothing (D19)",
    async ({ directory }, clock) => {
      const own = registration("a");
      await directory.register(own);
      clock.advance(NODE_LEASE_MS);
      const late = beat("a", 7, { instanceId: "of before the store was lost" });
      assert.deepEqual(await directory.heartbeat(late), { known: true, sendFull: true });
      assert.deepEqual((await directory.nodes())[0]?.live, false);
      const { instanceId } = own;
      assert.equal((await directory.heartbeat(beat("a", 1, { instanceId }))).known, true);
      assert.deepEqual((await directory.nodes())[0]?.live, true);
      assert.equal((await directory.heartbeat(beat("a", 7, { instanceId }))).sendFull, true);
      assert.deepEqual((await directory.nodes())[0]?.epoch, 7);
    },
  );

  contract(
    "after the store is lost epochs go on from what the node's process remembers, so that older ones stay fenced (D19)",
    async ({ directory }) => {
      assert.equal((await directory.register(registration("a", { lastEpoch: 7 }))).epoch, 8);
      await refused("FENCED", directory.heartbeat(beat("a", 6)));
      assert.equal((await directory.register(registration("a", { lastEpoch: 3 }))).epoch, 9);
    },
  );

  contract(
    "a heartbeat renews the lease; without one for 30 s the node is dead, and a late one revives it (D19)",
    async ({ directory }, clock) => {
      const isLive = async (): Promise<boolean | undefined> => (await directory.nodes())[0]?.live;
      await directory.register(registration("a"));
      clock.advance(20_000);
      await directory.heartbeat(beat("a", 1));
      clock.advance(NODE_LEASE_MS - 1);
      assert.equal(await isLive(), true);
      clock.advance(1);
      assert.equal(await isLive(), false);
      assert.equal((await directory.heartbeat(beat("a", 1))).known, true);
      assert.equal(await isLive(), true);
    },
  );

  contract("a jump of the wall clock neither ends nor stretches a lease (C-01)", async (store, clock) => {
    await store.directory.register(registration("a"));
    clock.jumpWall(13 * 3_600_000);
    assert.equal((await store.directory.nodes())[0]?.live, true);
    clock.jumpWall(-20 * 3_600_000);
    const again = await store.reopen();
    clock.advance(NODE_LEASE_MS);
    assert.equal((await again.nodes())[0]?.live, false);
  });

  contract("leases go on over a restart of the MetaServer", async (store, clock) => {
    await store.directory.register(registration("a"));
    clock.advance(NODE_LEASE_MS - 1_000);
    const again = await store.reopen();
    await refused("NODE_ID_HELD", again.register(registration("a", { dataId: "clone" })));
    clock.advance(1_000);
    assert.equal((await again.nodes())[0]?.live, false);
  });

  contract("only a store that lacks the node answers known = false (D19)", async ({ directory }) => {
    assert.deepEqual(await directory.heartbeat(beat("a", 7)), { known: false, sendFull: false });
    await directory.register(registration("a"));
    for (let i = 0; i < 2; i++) {
      assert.deepEqual(await directory.heartbeat(beat("a", 7)), { known: true, sendFull: true });
    }
    await directory.register(registration("a", { lastEpoch: 7 }));
    assert.deepEqual(await directory.heartbeat(beat("a", 8)), { known: true, sendFull: false });
    await refused("FENCED", directory.heartbeat(beat("a", 1)));
  });

  contract(
    "a node whose roots are older than seen before is asked for all of them, until they have come",
    async ({ directory }) => {
      await directory.register(registration("a"));
      for (const [rootsVersion, sendFull] of [
        [5n, false],
        [5n, false],
        [6n, false],
        [4n, true],
        // The answer before may be lost.
        [4n, true],
      ] as const) {
        assert.equal((await directory.heartbeat(beat("a", 1, { rootsVersion }))).sendFull, sendFull);
      }
      await directory.register(registration("a"));
      assert.equal((await directory.heartbeat(beat("a", 2, { rootsVersion: 4n }))).sendFull, false);
    },
  );

  testRoots(contract);
  testOlderCopies(contract);
  testLostMoves(contract);
  testRootMoves(contract);
  testDepartedRoots(contract);
  testRootNumbers(contract);
  testListings(contract);
  testSubjects(contract);
  testAddressChanges(contract);
  testUserStates(contract);
  testGroups(contract);
  testNotices(contract);
  testSshNodes(contract);
  testNodeRemoval(contract);
  testPlacementPauses(contract);
  testLostRoots(contract);
  testCredentials(contract);
  testSecurityReports(contract);

  contract("a closed store refuses instead of hanging", async ({ directory }) => {
    await directory.close();
    await refused("STORE_UNAVAILABLE", directory.clusterId());
    await directory.close();
  });
}
