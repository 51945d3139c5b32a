// The promises of the metadata store as tests that every implementation must pass.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { type ErrorCode, isGroveError } from "#base/errors.ts";
import { NODE_LEASE_MS } from "#base/limits.ts";
import type { Directory, Heartbeat, NodeRegistration, Speaker } from "./directory.ts";

/** One empty store, and how to reach the same store a second time. */
export interface DirectoryUnderTest {
  readonly directory: Directory;
  /** Closes the store and opens it again, as a restarted MetaServer does. */
  reopen(): Promise<Directory>;
}

/** Makes an empty store on the clock; whatever it opened is closed after the test. */
export type OpenForTest = (
  clock: ManualClock,
  cleanUp: (end: () => Promise<void>) => void,
) => Promise<DirectoryUnderTest>;

const MOCK: Speaker = { kind: "mock" };
const GIB = 1n << 30n;

/** A registration with everything that a test does not care about filled in. */
export function registration(fsId: string, facts: Partial<NodeRegistration> = {}): NodeRegistration {
  return {
    fsId,
    name: `Node ${fsId}`,
    address: `${fsId}.example.com:50051`,
    softwareVersion: "0.1.0",
    clusterId: "",
    instanceId: `instance of ${fsId}`,
    dataId: `data of ${fsId}`,
    diskTotalBytes: 1_000n * GIB,
    diskFreeBytes: 500n * GIB,
    diskReserveBytes: 20n * GIB,
    roots: [],
    speaker: MOCK,
    ...facts,
  };
}

function beat(fsId: string, epoch: number, facts: Partial<Heartbeat> = {}): Heartbeat {
  const defaults = { rootsVersion: 1n, diskFreeBytes: 500n * GIB, draining: false, speaker: MOCK };
  return { fsId, epoch, ...defaults, ...facts };
}

async function refused(code: ErrorCode, promise: Promise<unknown>): Promise<void> {
  await assert.rejects(promise, (error) => isGroveError(error, code), code);
}

/** Declares the contract's tests for one implementation. */
export function testDirectoryContract(name: string, open: OpenForTest): void {
  const contract = (
    title: string,
    body: (store: DirectoryUnderTest, clock: ManualClock) => Promise<void>,
  ): void => {
    test(`${name}: ${title}`, { timeout: 20_000 }, async (t) => {
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
      // A renewed certificate with a new key takes the lease over by its first heartbeat.
      await directory.heartbeat(beat("a", 2, { speaker: key("K2") }));
      assert.equal((await directory.register(clone)).epoch, 3);
      clock.advance(NODE_LEASE_MS);
      assert.equal((await directory.register(registration("a", { speaker: key("K9") }))).epoch, 4);
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
      // The node's own certificate may, and does not change whose key was first.
      await directory.register(registration("a", { speaker: { kind: "named", keyFingerprint: "K3" } }));
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
    assert.deepEqual(await directory.heartbeat(beat("a", 7)), { known: true, sendFull: true });
    assert.deepEqual(await directory.heartbeat(beat("a", 7)), { known: true, sendFull: false });
    await refused("FENCED", directory.heartbeat(beat("a", 1)));
  });

  contract(
    "a node whose roots are older than seen before is asked for all of them",
    async ({ directory }) => {
      await directory.register(registration("a"));
      for (const [rootsVersion, sendFull] of [
        [5n, false],
        [5n, false],
        [6n, false],
        [4n, true],
      ] as const) {
        assert.equal((await directory.heartbeat(beat("a", 1, { rootsVersion }))).sendFull, sendFull);
      }
    },
  );

  contract(
    "a new user's root goes to the node with the most free bytes above its reserve, and stays (D19)",
    async (store) => {
      const { directory } = store;
      await directory.register(registration("a", { diskFreeBytes: 100n * GIB }));
      await directory.register(registration("b", { diskFreeBytes: 101n * GIB }));
      await directory.register(
        registration("c", { diskFreeBytes: 200n * GIB, diskReserveBytes: 190n * GIB }),
      );
      const root = await directory.locateRoot("u@example.com");
      assert.equal(root.fsId, "b");
      assert.equal(root.address, "b.example.com:50051");
      assert.match(root.rootId, /^[0-9A-HJKMNP-TV-Z]{26}$/);
      await directory.heartbeat(beat("b", 1, { diskFreeBytes: 0n }));
      assert.deepEqual(await directory.locateRoot("u@example.com"), root);
      assert.deepEqual(await (await store.reopen()).findRoot("u@example.com"), root);
    },
  );

  contract("draining and dead nodes get no new roots but keep theirs (D19)", async ({ directory }, clock) => {
    await refused("NODE_DRAINING", directory.locateRoot("u@example.com"));
    await directory.register(registration("a"));
    await directory.heartbeat(beat("a", 1, { draining: true }));
    await refused("NODE_DRAINING", directory.locateRoot("u@example.com"));
    await directory.heartbeat(beat("a", 1));
    assert.equal((await directory.locateRoot("u@example.com")).live, true);
    clock.advance(NODE_LEASE_MS);
    await refused("NODE_DRAINING", directory.locateRoot("v@example.com"));
    assert.deepEqual(
      { ...(await directory.locateRoot("u@example.com")), rootId: "" },
      { owner: "u@example.com", rootId: "", fsId: "a", address: "a.example.com:50051", live: false },
    );
  });

  contract("200 first calls of one user at once make one root", async ({ directory }) => {
    await directory.register(registration("a"));
    await directory.register(registration("b"));
    const node = { fsId: "a", epoch: 1, speaker: MOCK };
    const roots = await Promise.all(
      Array.from({ length: 200 }, (_, index) =>
        index % 2 === 0 ? directory.locateRoot("u@example.com") : directory.claimRoot("u@example.com", node),
      ),
    );
    assert.equal(new Set(roots.map(({ rootId, fsId }) => `${rootId} ${fsId}`)).size, 1);
    assert.equal(
      (await directory.nodes()).reduce((sum, { rootCount }) => sum + rootCount, 0),
      1,
    );
  });

  contract(
    "a lost store is rebuilt from registrations, and places nothing before they could come (D19)",
    async ({ directory }, clock) => {
      const grants = [{ path: "/docs", user: "v@example.com" }];
      const roots = [{ owner: "u@example.com", rootId: "ROOT-U", version: 3n, grants }];
      const { clusterId } = await directory.register(registration("b", { clusterId: "OLD-CLUSTER" }));
      assert.equal(clusterId, "OLD-CLUSTER");
      await refused("STARTING", directory.locateRoot("u@example.com"));
      clock.advance(NODE_LEASE_MS - 1);
      await refused("STARTING", directory.locateRoot("u@example.com"));
      await directory.register(registration("a", { clusterId: "OLD-CLUSTER", roots }));
      const root = await directory.locateRoot("u@example.com");
      assert.deepEqual([root.rootId, root.fsId], ["ROOT-U", "a"]);
      const shared = await directory.rootsSharedWith("v@example.com");
      assert.deepEqual(
        shared.map(({ owner, path, fsId }) => [owner, path, fsId]),
        [["u@example.com", "/docs", "a"]],
      );
      clock.advance(1);
      assert.ok((await directory.locateRoot("w@example.com")).rootId);
    },
  );

  contract("the wait for registrations outlives a restart", async (store, clock) => {
    await store.directory.adoptClusterId("OLD-CLUSTER");
    clock.advance(10_000);
    const again = await store.reopen();
    await again.register(registration("a", { clusterId: "OLD-CLUSTER" }));
    clock.advance(NODE_LEASE_MS - 10_001);
    await refused("STARTING", again.locateRoot("u@example.com"));
    clock.advance(1);
    assert.equal((await again.locateRoot("u@example.com")).fsId, "a");
  });

  contract(
    "a root that two nodes claim stays where it is recorded, and is told as a conflict (D19)",
    async ({ directory }) => {
      const held = (rootId: string): NodeRegistration["roots"] => [
        { owner: "u@example.com", rootId, version: 1n, grants: [] },
      ];
      await directory.register(registration("a", { roots: held("R1") }));
      const { conflicts } = await directory.register(registration("b", { roots: held("R2") }));
      assert.deepEqual(conflicts, [
        { owner: "u@example.com", heldRootId: "R2", recordedRootId: "R1", recordedFsId: "a" },
      ]);
      assert.equal((await directory.findRoot("u@example.com"))?.fsId, "a");
      assert.deepEqual((await directory.register(registration("a", { roots: held("R1") }))).conflicts, []);
    },
  );

  contract(
    "a placement that nobody has fetched yields to the node that holds the user's root",
    async ({ directory }) => {
      await directory.register(registration("a"));
      await directory.locateRoot("u@example.com");
      const roots = [{ owner: "u@example.com", rootId: "OLDER", version: 1n, grants: [] }];
      assert.deepEqual((await directory.register(registration("b", { roots }))).conflicts, []);
      const root = await directory.findRoot("u@example.com");
      assert.deepEqual([root?.fsId, root?.rootId], ["b", "OLDER"]);
    },
  );

  contract("a placement that its node has fetched does not yield", async ({ directory }) => {
    await directory.register(registration("a"));
    await directory.claimRoot("u@example.com", { fsId: "a", epoch: 1, speaker: MOCK });
    const roots = [{ owner: "u@example.com", rootId: "OLDER", version: 1n, grants: [] }];
    assert.equal((await directory.register(registration("b", { roots }))).conflicts.length, 1);
    assert.equal((await directory.findRoot("u@example.com"))?.fsId, "a");
  });

  contract(
    "a claim for a root that lives elsewhere answers where, and changes nothing (D19)",
    async ({ directory }) => {
      await directory.register(registration("a"));
      await directory.register(registration("b", { diskFreeBytes: 30n * GIB }));
      const root = await directory.claimRoot("u@example.com", { fsId: "b", epoch: 1, speaker: MOCK });
      assert.deepEqual([root.fsId, root.address], ["a", "a.example.com:50051"]);
      const stranger = { fsId: "c", epoch: 1, speaker: MOCK };
      await refused("STARTING", directory.claimRoot("u@example.com", stranger));
    },
  );

  contract("grants in any order and number end as their versions say (F-03)", async ({ directory }) => {
    await directory.register(registration("a"));
    await directory.register(registration("b"));
    await directory.claimRoot("u@example.com", { fsId: "a", epoch: 1, speaker: MOCK });
    const change = (version: bigint, user: string, granted: boolean, fsId = "a"): Promise<boolean> =>
      directory.setGrant({
        owner: "u@example.com",
        path: "/docs",
        user,
        version,
        granted,
        node: { fsId, epoch: 1, speaker: MOCK },
      });
    assert.equal(await change(3n, "v@example.com", false), true);
    assert.equal(await change(2n, "v@example.com", true), false);
    assert.equal(await change(2n, "w@example.com", true), true);
    assert.equal(await change(2n, "w@example.com", true), false);
    await refused("WRONG_NODE", change(9n, "v@example.com", true, "b"));
    assert.deepEqual(await directory.rootsSharedWith("v@example.com"), []);
    assert.equal((await directory.rootsSharedWith("w@example.com")).length, 1);
    // A registration with the state of version 2 cannot bring back what version 3 ended; one of version 4 decides all.
    const held = (version: bigint, user: string): NodeRegistration["roots"] => [
      { owner: "u@example.com", rootId: rootId ?? "", version, grants: [{ path: "/docs", user }] },
    ];
    const rootId = (await directory.findRoot("u@example.com"))?.rootId;
    await directory.register(registration("a", { roots: held(2n, "v@example.com") }));
    assert.deepEqual(await directory.rootsSharedWith("v@example.com"), []);
    await directory.register(registration("a", { roots: held(4n, "v@example.com") }));
    assert.equal((await directory.rootsSharedWith("v@example.com")).length, 1);
    assert.deepEqual(await directory.rootsSharedWith("w@example.com"), []);
  });

  contract("a closed store refuses instead of hanging", async ({ directory }) => {
    await directory.close();
    await refused("STORE_UNAVAILABLE", directory.clusterId());
    await directory.close();
  });
}
