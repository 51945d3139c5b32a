// The contract of the metadata store about roots and grants: placement, claims, rebuilding, versions.
import assert from "node:assert/strict";
import { NODE_LEASE_MS, ROOTS_LISTED_MAX } from "#base/limits.ts";
import type { NodeRegistration } from "./directory.ts";
import {
  beat,
  type Contract,
  GIB,
  MOCK,
  patiently,
  refused,
  registration,
} from "./store-under-test.fixture.ts";

/** Declares the tests. */
export function testRoots(contract: Contract): void {
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
    await assert.rejects(directory.locateRoot("u@example.com"), { metadata: { new_users: "wait" } });
    await directory.register(registration("a"));
    await directory.heartbeat(beat("a", 1, { draining: true }));
    await refused("NODE_DRAINING", directory.locateRoot("u@example.com"));
    await directory.heartbeat(beat("a", 1));
    assert.equal((await directory.locateRoot("u@example.com")).live, true);
    clock.advance(NODE_LEASE_MS);
    await refused("NODE_DRAINING", directory.locateRoot("v@example.com"));
    const { fsId, live, isUnmade } = await directory.locateRoot("u@example.com");
    assert.deepEqual([fsId, live, isUnmade], ["a", false, true]);
    await directory.heartbeat(beat("a", 1));
    await directory.claimRoot("u@example.com", { fsId: "a", epoch: 1, speaker: MOCK });
    assert.equal((await directory.findRoot("u@example.com"))?.isUnmade, undefined);
  });

  contract(
    "all roots are listed by pages, each once, and a page has at most 1000 of them",
    async ({ directory }) => {
      assert.deepEqual(await directory.listRoots(), []);
      const owners = Array.from({ length: ROOTS_LISTED_MAX + 2 }, (_, index) => `u${index}@example.com`);
      const held = (some: readonly string[], node: string): NodeRegistration["roots"] =>
        some.map((owner) => ({ owner, rootId: `${node}-${owner}`, version: 1n, grants: [] }));
      await directory.register(registration("a", { roots: held(owners.slice(0, 3), "a") }));
      await directory.register(registration("b", { roots: held(owners.slice(3), "b") }));
      const first = await directory.listRoots();
      assert.equal(first.length, ROOTS_LISTED_MAX);
      const second = await directory.listRoots(first.at(-1)?.owner);
      assert.equal(second.length, 2);
      assert.deepEqual(await directory.listRoots(second.at(-1)?.owner), []);
      const nodeOf = new Map([...first, ...second].map(({ owner, fsId }) => [owner, fsId]));
      assert.deepEqual([...nodeOf.keys()].toSorted(), owners.toSorted());
      assert.deepEqual(
        [...nodeOf]
          .filter(([, fsId]) => fsId === "a")
          .map(([owner]) => owner)
          .toSorted(),
        owners.slice(0, 3).toSorted(),
      );
    },
  );

  contract("200 first calls of one user at once make one root", async ({ directory }) => {
    await directory.register(registration("a"));
    await directory.register(registration("b"));
    const node = { fsId: "a", epoch: 1, speaker: MOCK };
    const roots = await Promise.all(
      Array.from({ length: 200 }, (_, index) =>
        patiently(() =>
          index % 2 === 0
            ? directory.locateRoot("u@example.com")
            : directory.claimRoot("u@example.com", node),
        ),
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
      assert.equal((await directory.findRootById("ROOT-U"))?.owner, "u@example.com");
      assert.equal(await directory.findRootById("ROOT-V"), undefined);
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
    "a root of a shared engine is where the newest lease is, whatever older lists say (D19)",
    async ({ directory }) => {
      const held = (leaseEpoch: bigint): NodeRegistration["roots"] => [
        { owner: "u@example.com", rootId: "R1", version: 7n, grants: [], leaseEpoch },
      ];
      const register = async (node: string, leaseEpoch: bigint): Promise<number> => {
        const { conflicts } = await directory.register(registration(node, { roots: held(leaseEpoch) }));
        return conflicts.length;
      };
      assert.equal(await register("a", 1n), 0);
      assert.equal(await register("b", 2n), 0);
      assert.equal((await directory.findRoot("u@example.com"))?.fsId, "b");
      assert.equal(await register("a", 1n), 1);
      assert.equal(await register("a", 2n), 1);
      assert.equal((await directory.findRoot("u@example.com"))?.fsId, "b");
      assert.equal(await register("a", 3n), 0);
      assert.equal((await directory.findRoot("u@example.com"))?.fsId, "a");
      const other = { owner: "u@example.com", rootId: "R2", version: 7n, grants: [], leaseEpoch: 9n };
      assert.equal((await directory.register(registration("b", { roots: [other] }))).conflicts.length, 1);
    },
  );

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

  contract(
    "a node that holds more roots than the store has of it shows that the store was restored from an older copy (D19)",
    async ({ directory }, clock) => {
      const roots = ["u", "v"].map((name) => ({
        owner: `${name}@example.com`,
        rootId: `ROOT-${name}`,
        version: 1n,
        grants: [],
      }));
      await directory.register(registration("a", { roots: roots.slice(0, 1) }));
      assert.equal((await directory.heartbeat(beat("a", 1, { rootCount: 1n }))).sendFull, false);
      assert.equal((await directory.heartbeat(beat("a", 1, { rootCount: 2n }))).sendFull, true);
      await refused("STARTING", directory.locateRoot("v@example.com"));
      await directory.register(registration("a", { roots }));
      assert.equal((await directory.heartbeat(beat("a", 2, { rootCount: 2n }))).sendFull, false);
      assert.equal((await directory.locateRoot("v@example.com")).rootId, "ROOT-v");
      clock.advance(NODE_LEASE_MS);
      // Roots that were refused to a node are not missing.
      await directory.register(registration("b", { roots: roots.slice(0, 1) }));
      assert.equal((await directory.heartbeat(beat("b", 1, { rootCount: 1n }))).sendFull, false);
      assert.equal((await directory.locateRoot("w@example.com")).fsId, "b");
    },
  );

  contract(
    "a root id that another root has, and a root that is listed twice, are conflicts and change nothing",
    async ({ directory }) => {
      const root = (owner: string, rootId: string): NodeRegistration["roots"][number] => ({
        owner: `${owner}@example.com`,
        rootId,
        version: 1n,
        grants: [],
      });
      await directory.register(registration("a", { roots: [root("u", "R1")] }));
      const roots = [root("v", "R1"), root("w", "R2"), root("w", "R3"), root("x", "R2")];
      const { conflicts } = await directory.register(registration("b", { roots }));
      assert.deepEqual(
        conflicts.map(({ owner, heldRootId, recordedFsId }) => [owner, heldRootId, recordedFsId]),
        [
          ["v@example.com", "R1", "a"],
          ["w@example.com", "R3", "b"],
          ["x@example.com", "R2", "b"],
        ],
      );
      assert.equal((await directory.findRoot("u@example.com"))?.fsId, "a");
      assert.equal(await directory.findRoot("v@example.com"), undefined);
    },
  );

  contract(
    "a node with 1,200 roots and grants brings all of them back in one call",
    async ({ directory }) => {
      const roots = Array.from({ length: 1_200 }, (_, index) => ({
        owner: `u${index}@example.com`,
        rootId: `ROOT-${index}`,
        version: 2n,
        grants: [{ path: `/${index}`, user: "v@example.com" }],
        subject: { issuer: "idp.example.com", subject: `s${index}` },
      }));
      await directory.register(registration("a", { roots }));
      assert.equal((await directory.nodes())[0]?.rootCount, 1_200);
      const first = await directory.rootsSharedWith("v@example.com");
      const rest = await directory.rootsSharedWith("v@example.com", first.at(-1));
      assert.deepEqual([first.length, rest.length], [1_000, 200]);
      assert.equal(new Set([...first, ...rest].map(({ owner }) => owner)).size, 1_200);
      const last = rest.at(-1)?.owner ?? "";
      const found = await directory.sharedRoot("v@example.com", {
        owner: last,
        path: `/${last.slice(1, -12)}`,
      });
      assert.equal(found?.rootId, `ROOT-${last.slice(1, -12)}`, "also what no first page would show");
      assert.deepEqual((await directory.register(registration("a", { roots }))).conflicts, []);
      const fewer = roots.map((root) => ({ ...root, version: 3n, grants: [] }));
      await directory.register(registration("a", { roots: fewer }));
      assert.deepEqual(await directory.rootsSharedWith("v@example.com"), []);
      const person = (subject: string): { issuer: string; subject: string } => ({
        issuer: "idp.example.com",
        subject,
      });
      assert.equal(await directory.admitSubject("u700@example.com", person("s700")), true);
      assert.equal(await directory.admitSubject("u700@example.com", person("s701")), false);
    },
  );

  contract(
    "an address belongs to the first person that came with it, for everybody who uses the store (D21)",
    async (store) => {
      const person = (subject: string, issuer = "idp.example.com"): { issuer: string; subject: string } => ({
        issuer,
        subject,
      });
      const { directory } = store;
      assert.equal(await directory.admitSubject("u@example.com", person("1")), true);
      assert.equal(await directory.admitSubject("u@example.com", person("1")), true);
      assert.equal(await directory.admitSubject("u@example.com", person("2")), false);
      assert.equal(await directory.admitSubject("u@example.com", person("1", "other.example.com")), false);
      const again = await store.reopen();
      assert.equal(await again.admitSubject("u@example.com", person("2")), false);
      // Where the node that guards the files knows another person, its entry counts.
      const roots = [{ owner: "u@example.com", rootId: "R1", version: 1n, grants: [], subject: person("2") }];
      await again.register(registration("a", { roots }));
      assert.equal(await again.admitSubject("u@example.com", person("2")), true);
      assert.equal(await again.admitSubject("u@example.com", person("1")), false);
    },
  );

  contract(
    "the way to a place is found by the deepest share on it, or by one below it (D19)",
    async ({ directory }) => {
      const owner = "u@example.com";
      const grants = ["/a", "/a/b", "/a b", "/x/y"].map((path) => ({ path, user: "v@example.com" }));
      await directory.register(registration("a", { roots: [{ owner, rootId: "R", version: 1n, grants }] }));
      const way = async (path: string, user = "v@example.com"): Promise<string | undefined> => {
        const found = await directory.sharedRoot(user, { owner, path });
        if (found !== undefined) assert.deepEqual([found.owner, found.rootId, found.fsId], [owner, "R", "a"]);
        return found?.path;
      };
      assert.equal(await way("/a"), "/a");
      assert.equal(await way("/a/c"), "/a");
      assert.equal(await way("/a/b/c"), "/a/b");
      assert.equal(await way("/a b"), "/a b");
      assert.equal(await way("/"), "/");
      assert.equal(await way("/x"), "/x");
      assert.equal(await way("/ab"), undefined);
      assert.equal(await way("/x/z"), undefined);
      assert.equal(await way("/a", "w@example.com"), undefined);
      assert.equal(
        await directory.sharedRoot("v@example.com", { owner: "w@example.com", path: "/" }),
        undefined,
      );
    },
  );

  contract(
    "a node without a lease tells nothing of its shares until it beats again (D19)",
    async (store, clock) => {
      const { directory } = store;
      const owner = "u@example.com";
      await directory.register(
        registration("a", { roots: [{ owner, rootId: "R", version: 1n, grants: [] }] }),
      );
      const grant = { owner, path: "/docs", user: "v@example.com", version: 2n, granted: true };
      const change = { ...grant, node: { fsId: "a", epoch: 1, speaker: MOCK } };
      clock.advance(NODE_LEASE_MS);
      await refused("STARTING", directory.setGrant(change));
      await directory.heartbeat(beat("a", 1));
      assert.equal(await directory.setGrant(change), true);
      // A grant older than a registration's state no longer counts, and leaves nothing behind.
      await directory.register(
        registration("a", { roots: [{ owner, rootId: "R", version: 5n, grants: [] }] }),
      );
      const late = { ...change, node: { ...change.node, epoch: 2 } };
      assert.equal(await directory.setGrant({ ...late, version: 4n }), false);
      assert.deepEqual(await directory.rootsSharedWith("v@example.com"), []);
      assert.equal(await directory.setGrant({ ...late, version: 5n }), true);
    },
  );

  contract("grants in any order and number end as their versions say (M-03)", async ({ directory }) => {
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
    // A registration with version 2 cannot restore what version 3 ended; one of version 4 decides all.
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
}
