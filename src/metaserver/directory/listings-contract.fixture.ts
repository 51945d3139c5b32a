// The contract of the metadata store about lists of roots: pages, and new roots that wait for them.
import assert from "node:assert/strict";
import { isGroveError } from "#base/errors.ts";
import { NODE_LEASE_MS } from "#base/limits.ts";
import type { Directory, HeldRoot, Lease, NodeRegistration } from "./directory.ts";
import { REGISTRATION_PAGES_TTL_MS } from "./staged-pages.ts";
import { beat, type Contract, refused, registration } from "./store-under-test.fixture.ts";

/** A registration of which each page lists one user, and the function that sends one of its pages. */
function paged(fsId: string, owners: readonly string[], facts: Partial<NodeRegistration> = {}) {
  const whole = registration(fsId, { knownEpoch: 0, ...facts });
  const rootOf = (owner: string): HeldRoot => ({
    owner,
    rootId: `${fsId}-${owner}`,
    version: 2n,
    grants: [{ path: "/docs", user: "guest@example.com" }],
    subject: { issuer: "idp.example", subject: `s-${owner}` },
  });
  return {
    whole,
    send: (
      directory: Directory,
      page: number,
      options: { registration?: bigint; facts?: Partial<NodeRegistration> } = {},
    ): Promise<Lease> =>
      directory.register({
        ...whole,
        ...options.facts,
        roots: owners.slice(page, page + 1).map(rootOf),
        page: { registration: options.registration ?? 1n, page, isLast: page === owners.length - 1 },
      }),
  };
}

const USERS = ["a@example.com", "b@example.com", "c@example.com"];

async function found(directory: Directory): Promise<string[]> {
  const roots = await Promise.all(USERS.map((owner) => directory.findRoot(owner)));
  return roots.flatMap((root) => (root === undefined ? [] : [root.owner]));
}

/** Declares the tests. */
export function testListings(contract: Contract): void {
  contract(
    "a registration in pages is in force with its last page, whole, and not before (D19)",
    async (store) => {
      const { directory } = store;
      const node = paged("n", USERS);
      const { clusterId, epoch, nextPage } = await node.send(directory, 0);
      assert.deepEqual([epoch, nextPage], [0, 1]);
      assert.equal((await node.send(directory, 1)).nextPage, 2);
      assert.deepEqual([await found(directory), (await directory.nodes()).length], [[], 0]);
      // The pages are the store's, not the process's.
      const again = await store.reopen();
      const lease = await node.send(again, 2);
      assert.deepEqual(
        [lease.clusterId, lease.epoch, lease.nextPage, lease.conflicts],
        [clusterId, 1, undefined, []],
      );
      assert.deepEqual(await found(again), USERS);
      assert.equal((await again.rootsSharedWith("guest@example.com")).length, 3);
      assert.equal(
        await again.admitSubject(USERS[0] ?? "", { issuer: "idp.example", subject: "other" }),
        false,
      );
      assert.deepEqual(await again.heartbeat(beat("n", 1, { rootCount: 3n })), {
        known: true,
        sendFull: false,
      });
    },
  );

  contract(
    "a page that is repeated, missing or late changes nothing but says which is next",
    async ({ directory }) => {
      const node = paged("n", USERS);
      assert.equal((await node.send(directory, 1)).nextPage, 0, "none has come");
      assert.equal((await node.send(directory, 2)).nextPage, 0, "not even the last one counts alone");
      await node.send(directory, 0);
      assert.equal((await node.send(directory, 0)).nextPage, 1, "repeated");
      assert.equal((await node.send(directory, 2)).nextPage, 1, "one is missing");
      await node.send(directory, 1, { registration: 2n });
      assert.equal(
        (await node.send(directory, 1, { registration: 2n })).nextPage,
        0,
        "the next registration begins at 0",
      );
      assert.equal((await node.send(directory, 0, { registration: 2n })).nextPage, 1);
      assert.equal((await node.send(directory, 1)).nextPage, 1, "late, of the registration before");
      assert.equal((await node.send(directory, 2)).epoch, 0, "late, and the last");
      await node.send(directory, 1, { registration: 2n });
      assert.deepEqual(await found(directory), []);
      assert.equal((await node.send(directory, 2, { registration: 2n })).epoch, 1);
      assert.deepEqual(await found(directory), USERS);
      assert.equal(
        (await node.send(directory, 2, { registration: 2n })).nextPage,
        0,
        "what is in force is kept no longer",
      );
      assert.equal((await directory.nodes())[0]?.epoch, 1);
    },
  );

  contract(
    "pages of a process before neither mix with those of the next nor stand in their way (M-02)",
    async ({ directory }) => {
      const before = paged("n", ["a@example.com", "x@example.com"]);
      const now = paged("n", ["a@example.com", "b@example.com"]);
      await before.send(directory, 0);
      await now.send(directory, 0);
      assert.equal((await before.send(directory, 0)).nextPage, 1);
      assert.equal((await now.send(directory, 1)).epoch, 1);
      // It is gone: its pages are forgotten, and its late ones name no epoch.
      for (const page of [0, 1]) {
        const late = await before.send(directory, page);
        assert.deepEqual([late.epoch, late.heldEpoch], [0, 1]);
      }
      assert.deepEqual(await found(directory), ["a@example.com", "b@example.com"]);
      assert.equal(await directory.findRoot("x@example.com"), undefined);
      const named = paged("n", USERS, { knownEpoch: 1 });
      await named.send(directory, 0);
      await named.send(directory, 1);
      assert.equal((await named.send(directory, 2)).epoch, 2);
    },
  );

  contract(
    "an unfinished registration is forgotten ten minutes after its first page",
    async ({ directory }, clock) => {
      const node = paged("n", USERS);
      await node.send(directory, 0);
      clock.advance(REGISTRATION_PAGES_TTL_MS);
      assert.equal((await node.send(directory, 1)).nextPage, 2);
      clock.advance(1);
      assert.equal((await node.send(directory, 2)).nextPage, 0);
    },
  );

  contract(
    "while a new node lists its roots nobody is given a new one, and with its last page theirs are there",
    async ({ directory }) => {
      await directory.register(registration("other"));
      const node = paged("big", USERS);
      await node.send(directory, 0);
      await waitsFor(["big"], directory.locateRoot("c@example.com"));
      await node.send(directory, 1);
      await waitsFor(["big"], directory.locateRoot("c@example.com"));
      await node.send(directory, 2);
      assert.equal((await directory.locateRoot("c@example.com")).fsId, "big");
      assert.ok((await directory.locateRoot("new@example.com")).rootId);
    },
  );

  contract("a node that is known and lists its roots anew keeps nobody waiting", async ({ directory }) => {
    const first = paged("big", USERS);
    for (const page of [0, 1, 2]) await first.send(directory, page);
    await paged("big", USERS, { knownEpoch: 1 }).send(directory, 0);
    assert.ok((await directory.locateRoot("new@example.com")).rootId);
  });

  contract(
    "a lost store places nothing before all known nodes have listed their roots, however long one takes (D19)",
    async (store, clock) => {
      let { directory } = store;
      await directory.adoptClusterId("OLD-CLUSTER");
      await directory.awaitNodes(["n1", "n2"]);
      assert.deepEqual(await directory.missingLists(), { awaited: ["n1", "n2"], givenUp: [] });
      await directory.register(registration("n1", { clusterId: "OLD-CLUSTER" }));
      clock.advance(NODE_LEASE_MS);
      await directory.heartbeat(beat("n1", 1, { rootCount: 0n }));
      await waitsFor(["n2"], directory.locateRoot("b@example.com"));
      await waitsFor(
        ["n2"],
        directory.claimRoot("b@example.com", { fsId: "n1", epoch: 1, speaker: { kind: "mock" } }),
      );
      directory = await store.reopen();
      clock.advance(86_400_000);
      await directory.heartbeat(beat("n1", 1, { rootCount: 0n }));
      await waitsFor(["n2"], directory.locateRoot("b@example.com"));
      const late = paged("n2", USERS, { clusterId: "OLD-CLUSTER" });
      for (const page of [0, 1]) await late.send(directory, page);
      await waitsFor(["n2"], directory.locateRoot("b@example.com"));
      await late.send(directory, 2);
      assert.deepEqual(await directory.missingLists(), { awaited: [], givenUp: [] });
      assert.equal((await directory.locateRoot("b@example.com")).fsId, "n2");
      assert.ok((await directory.locateRoot("new@example.com")).rootId);
    },
  );

  contract(
    "a node that an operator has given up is waited for no longer, until it comes back",
    async ({ directory }, clock) => {
      await directory.awaitNodes(["gone", "n1"]);
      await directory.register(registration("n1", { clusterId: "OLD-CLUSTER" }));
      clock.advance(NODE_LEASE_MS);
      await directory.heartbeat(beat("n1", 1));
      await waitsFor(["gone"], directory.locateRoot("u@example.com"));
      assert.equal(await directory.giveUpNode("n9"), false, "there never was one");
      await refused("BAD_ARGUMENT", directory.giveUpNode("n1"));
      assert.equal(await directory.giveUpNode("gone"), true);
      assert.equal(await directory.giveUpNode("gone"), true);
      assert.deepEqual(await directory.missingLists(), { awaited: [], givenUp: ["gone"] });
      assert.ok((await directory.locateRoot("u@example.com")).rootId);
      await directory.awaitNodes(["gone", "n1"]);
      assert.deepEqual((await directory.missingLists()).awaited, [], "nor when it is remembered again");
      await directory.register(registration("gone", { clusterId: "OLD-CLUSTER" }));
      assert.deepEqual(await directory.missingLists(), { awaited: [], givenUp: [] });
    },
  );

  contract(
    "a store that turns out to be an older copy waits for all of its nodes but those given up",
    async ({ directory }, clock) => {
      await directory.register(registration("dead"));
      clock.advance(NODE_LEASE_MS);
      assert.equal(await directory.giveUpNode("dead"), true);
      for (const fsId of ["n1", "n2", "n3"]) await directory.register(registration(fsId));
      // n1 has more roots than the store: it was restored.
      assert.equal((await directory.heartbeat(beat("n1", 1, { rootCount: 1n }))).sendFull, true);
      clock.advance(NODE_LEASE_MS - 1);
      await directory.heartbeat(beat("n2", 1, { rootCount: 0n }));
      clock.advance(1);
      // n2 has as many roots as the store has of it, which need not be the same ones.
      await waitsFor(["n1", "n2", "n3"], directory.locateRoot("u@example.com"));
      assert.equal((await directory.heartbeat(beat("n2", 1, { rootCount: 0n }))).sendFull, true);
      await directory.register(registration("n2"));
      assert.equal((await directory.heartbeat(beat("n2", 2, { rootCount: 0n }))).sendFull, false);
      const roots = [{ owner: "u@example.com", rootId: "R-U", version: 1n, grants: [] }];
      await directory.register(registration("n1", { roots }));
      await waitsFor(["n3"], directory.locateRoot("v@example.com"));
      await directory.register(registration("n3"));
      assert.equal((await directory.locateRoot("u@example.com")).rootId, "R-U");
      assert.ok((await directory.locateRoot("v@example.com")).rootId);
    },
  );
}

/** Asserts that a root's placement waits for these nodes, names them, and says how to give one up. */
async function waitsFor(nodes: readonly string[], placed: Promise<unknown>): Promise<void> {
  await refused("STARTING", placed);
  await placed.catch((error: unknown) => {
    assert.ok(isGroveError(error));
    assert.equal(error.metadata["nodes"], nodes.join(","));
    assert.ok(Number(error.metadata["retry_after_ms"]) > 0);
    for (const node of nodes) assert.match(error.message, new RegExp(`\\b${node}\\b`));
    assert.match(error.message, /grove node lost/);
  });
}
