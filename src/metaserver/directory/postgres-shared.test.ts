// Two MetaServers on one database: they answer concurrent commands as one would.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import fc from "fast-check";
import { ManualClock } from "#base/clock.ts";
import { isGroveError } from "#base/errors.ts";
import { type PostgresServer, postgresOfFile } from "#testing/postgres-server.ts";
import type { Directory, LocatedRoot } from "./directory.ts";
import { openDirectory } from "./open-directory.ts";
import { openPostgresDirectory } from "./postgres-directory.ts";
import { beat, MOCK, registration } from "./store-under-test.fixture.ts";

let server: PostgresServer;
const skip = postgresOfFile((started) => {
  server = started;
});
const LONG = { skip, timeout: 60_000 };

async function openTwo(t: TestContext, nowSql?: () => string): Promise<[Directory, Directory]> {
  const url = server.url(await server.createDatabase());
  const open = async (): Promise<Directory> => {
    const directory = await openPostgresDirectory({ url, ...(nowSql === undefined ? {} : { nowSql }) });
    t.after(() => directory.close());
    return directory;
  };
  // At once, so that both find no tables.
  return Promise.all([open(), open()]);
}

test("many MetaServers that meet an empty database make its tables once", LONG, async (t) => {
  const url = server.url(await server.createDatabase());
  const stores = await Promise.all(
    Array.from({ length: 6 }, () => openDirectory(url, { clock: new ManualClock() })),
  );
  for (const store of stores) t.after(() => store.close());
  const leases = await Promise.all(stores.map((store, index) => store.register(registration(`n${index}`))));
  assert.equal(new Set(leases.map(({ clusterId }) => clusterId)).size, 1);
  for (const store of stores) assert.equal(await store.clusterId(), leases[0]?.clusterId);
});

test("100 claims of one user at two MetaServers at once make one root (D19)", LONG, async (t) => {
  const stores = await openTwo(t);
  await stores[0].register(registration("a"));
  await stores[1].register(registration("b"));
  const asks = Array.from({ length: 100 }, (_, index): Promise<LocatedRoot> => {
    const store = stores[index % 2] as Directory;
    const node = { fsId: index % 3 === 0 ? "a" : "b", epoch: 1, speaker: MOCK };
    return index % 5 === 0 ? store.locateRoot("u@example.com") : store.claimRoot("u@example.com", node);
  });
  const roots = await Promise.all(asks);
  assert.equal(new Set(roots.map(({ rootId, fsId }) => `${rootId} ${fsId}`)).size, 1);
});

test(
  "of many clones that register one id at once exactly one holds it, others are NODE_ID_HELD (D19)",
  LONG,
  async (t) => {
    const stores = await openTwo(t);
    const outcomes = await Promise.allSettled(
      Array.from({ length: 20 }, (_, index) =>
        (stores[index % 2] as Directory).register(registration("a", { dataId: `clone ${index}` })),
      ),
    );
    const held = outcomes.filter((outcome) => outcome.status === "rejected");
    assert.equal(held.length, 19);
    for (const { reason } of held) assert.ok(isGroveError(reason, "NODE_ID_HELD"), String(reason));
    assert.equal((await stores[0].nodes())[0]?.epoch, 1);
  },
);

test(
  "the same node registering everywhere at once gets a new epoch each time, and only the newest beats (D19)",
  LONG,
  async (t) => {
    const stores = await openTwo(t);
    const leases = await Promise.all(
      Array.from({ length: 20 }, (_, index) => (stores[index % 2] as Directory).register(registration("a"))),
    );
    const epochs = leases.map(({ epoch }) => epoch).toSorted((a, b) => a - b);
    assert.deepEqual(
      epochs,
      Array.from({ length: 20 }, (_, index) => index + 1),
    );
    const beats = await Promise.allSettled(
      epochs.map((epoch, index) => (stores[index % 2] as Directory).heartbeat(beat("a", epoch))),
    );
    const fenced = beats.filter(({ status }) => status === "rejected");
    assert.equal(fenced.length, 19);
    assert.equal(beats[19]?.status, "fulfilled");
  },
);

test(
  "a node that one MetaServer asks for its list is asked by all, until one of them has it (D19, D27)",
  LONG,
  async (t) => {
    const stores = await openTwo(t);
    const held = { owner: "u@example.com", rootId: "ROOT", version: 1n, grants: [] };
    await stores[0].register(registration("a", { roots: [held] }));
    await stores[1].register(registration("b", { roots: [held] }));
    const beats = async (epoch: number): Promise<boolean[]> => {
      const answers = Array.from({ length: 20 }, (_, index) =>
        (stores[index % 2] as Directory).heartbeat(beat("a", epoch, { rootCount: 1n })),
      );
      return (await Promise.all(answers)).map(({ sendFull }) => sendFull);
    };
    assert.ok((await beats(1)).every(Boolean));
    await stores[1].register(registration("a", { roots: [held] }));
    assert.ok(!(await beats(2)).some(Boolean));
  },
);

test("an address that two people bring at once belongs to one of them everywhere (D21)", LONG, async (t) => {
  const stores = await openTwo(t);
  const admit = (index: number): ReturnType<Directory["admitSubject"]> =>
    (stores[index % 2] as Directory).admitSubject("u@example.com", {
      issuer: "idp",
      subject: `person ${index % 4}`,
    });
  const admitted = await Promise.all(Array.from({ length: 40 }, (_, index) => admit(index)));
  const winners = new Set(admitted.flatMap((isIn, index) => (isIn ? [index % 4] : [])));
  assert.equal(winners.size, 1);
  assert.equal(admitted.filter(Boolean).length, 10);
});

/** One command of a run: the MetaServer, the node, the user. */
const step = fc.record({
  kind: fc.constantFrom("locate", "claim", "register", "beat", "grant", "tick"),
  store: fc.nat(1),
  node: fc.constantFrom("a", "b", "c"),
  user: fc.constantFrom("u", "v", "w").map((name) => `${name}@example.com`),
  version: fc.bigInt(1n, 5n),
  granted: fc.boolean(),
});

test(
  "any commands at two MetaServers at once leave one place for each root, growing epochs and the newest grant",
  LONG,
  async (t) => {
    const clock = new ManualClock();
    const stores = await openTwo(t, () => String(1_790_000_000_000 + clock.steadyMs()));
    await stores[0].register(registration("a"));
    const epochs = new Map<string, number[]>([["a", [1]]]);
    const places = new Map<string, Set<string>>();
    const newest = new Map<string, { version: bigint; granted: Set<boolean> }>();
    await fc.assert(
      fc.asyncProperty(fc.array(fc.array(step, { maxLength: 12 }), { maxLength: 4 }), async (rounds) => {
        for (const round of rounds) {
          await Promise.all(
            round.map(async ({ kind, store, node, user, version, granted }) => {
              const directory = stores[store] as Directory;
              const epoch = epochs.get(node)?.at(-1) ?? 1;
              const caller = { fsId: node, epoch, speaker: MOCK };
              const note = ({ rootId, fsId }: LocatedRoot): void => {
                places.set(user, (places.get(user) ?? new Set()).add(`${rootId} ${fsId}`));
              };
              try {
                if (kind === "locate") note(await directory.locateRoot(user));
                else if (kind === "claim") note(await directory.claimRoot(user, caller));
                else if (kind === "beat") await directory.heartbeat(beat(node, epoch));
                else if (kind === "tick") clock.advance(1_000);
                else if (kind === "register") {
                  const lease = await directory.register(registration(node));
                  epochs.set(node, [...(epochs.get(node) ?? []), lease.epoch]);
                } else {
                  await directory.setGrant({
                    owner: user,
                    path: "/d",
                    user: "x@example.com",
                    version,
                    granted,
                    node: caller,
                  });
                  const known = newest.get(user);
                  if (known === undefined || version > known.version)
                    newest.set(user, { version, granted: new Set([granted]) });
                  else if (version === known.version) known.granted.add(granted);
                }
              } catch (error) {
                // A refusal by the rules; never a failure of the store.
                assert.ok(
                  isGroveError(error, "FENCED", "WRONG_NODE", "STARTING", "NODE_DRAINING"),
                  String(error),
                );
              }
            }),
          );
        }
        for (const [user, found] of places) assert.equal(found.size, 1, user);
        for (const [node, given] of epochs) assert.equal(new Set(given).size, given.length, node);
        const shared = await stores[1].rootsSharedWith("x@example.com");
        for (const [user, { granted }] of newest) {
          // Two messages of one version contradict each other; either may have come first.
          if (granted.size === 1)
            assert.equal(
              shared.some(({ owner }) => owner === user),
              granted.has(true),
              user,
            );
        }
      }),
      { numRuns: 40 },
    );
  },
);

test(
  "leases go by the database's clock: MetaServers whose own clocks are hours apart agree (C-01)",
  LONG,
  async (t) => {
    const url = server.url(await server.createDatabase());
    const late = new ManualClock(Date.now() - 7_200_000);
    const early = new ManualClock(Date.now() + 7_200_000);
    const stores = await Promise.all([late, early].map((clock) => openDirectory(url, { clock })));
    for (const store of stores) t.after(() => store.close());
    await stores[0]?.register(registration("a"));
    for (const store of stores) {
      const [node] = await store.nodes();
      assert.equal(node?.live, true);
      assert.ok(Math.abs((node?.lastSeenWallMs ?? 0) - Date.now()) < 3_600_000);
    }
  },
);
