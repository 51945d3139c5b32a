// Tests of a root that is frozen for a move which the metadata store has lost, since it is an older copy.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { isGroveError } from "#base/errors.ts";
import { NODE_LEASE_MS } from "#base/limits.ts";
import type { HeldRoot } from "#metaserver/directory/directory.ts";
import { fillRoot, NUMBER, put } from "#storage/local/moved-root.fixture.ts";
import { OWNER, patterned } from "#storage/local/store.fixture.ts";
import { until } from "#testing/until.ts";
import { nodeOf, startTwoNodes, type TwoNodes } from "./two-nodes.fixture.ts";

const MOVE = "01LOST";
const HELD: HeldRoot = { owner: OWNER, rootId: "01ROOT", version: 1n, grants: [], arrival: "" };

/** Both nodes, of which the first has its root frozen and has told the store so. */
async function startFrozen(
  context: Parameters<typeof startTwoNodes>[0],
  storeClock: ManualClock,
): Promise<TwoNodes> {
  const fill = async ({ storage }: TwoNodes["from"]["side"]): Promise<void> => {
    await fillRoot(storage);
    await storage.moves.beginExport({ moveId: MOVE, owner: OWNER });
    await storage.moves.freeze(MOVE);
  };
  const cluster = await startTwoNodes(context, fill, storeClock);
  await cluster.reaches((move) => move?.moveId === MOVE && move.state === "frozen");
  return cluster;
}

/** Has both nodes list their roots, as the store asks them to. */
async function listAll({ directory }: TwoNodes, roots: { readonly b: readonly HeldRoot[] }): Promise<void> {
  for (const { fsId, address } of await directory.nodes())
    await directory.register(nodeOf(fsId, address, fsId === "a" ? [HELD] : roots.b));
}

function write({ from }: TwoNodes): Promise<unknown> {
  const { storage } = from.side;
  return put(storage, storage.root(OWNER)?.directoryId ?? 0, "later", patterned(9));
}

test("a root that is frozen for a lost move takes changes again once no node lists it with that move, and what had come goes", async (context) => {
  const storeClock = new ManualClock();
  const cluster = await startFrozen(context, storeClock);
  const { from, to, pass, reaches } = cluster;
  const { moves } = to.side.storage;
  await moves.beginImport({ moveId: MOVE, owner: OWNER, numbers: [NUMBER] });
  await moves.keepHead(MOVE, "{}");
  for (let turn = 0; turn < 10; turn++) {
    pass(5_000);
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(from.source.isFrozen(OWNER), true);
    assert.equal(moves.list().length, 1);
  }
  await assert.rejects(write(cluster), (error) => isGroveError(error, "NODE_DRAINING"));
  await listAll(cluster, { b: [] });
  storeClock.advance(NODE_LEASE_MS);
  await reaches((move) => move === undefined);
  assert.equal(from.source.isFrozen(OWNER), false);
  assert.deepEqual(from.side.storage.moves.list(), []);
  await write(cluster);
  await until(() => {
    pass();
    return moves.list().length === 0;
  });
});

test("a root that is frozen for a lost move sends its users to the node that lists it with that move, and is kept", async (context) => {
  const storeClock = new ManualClock();
  const cluster = await startFrozen(context, storeClock);
  const { directory, from, pass, reaches } = cluster;
  await listAll(cluster, { b: [{ ...HELD, arrival: MOVE }] });
  storeClock.advance(NODE_LEASE_MS);
  await reaches((move) => move?.state === "switched");
  const address = (await directory.findRoot(OWNER))?.address;
  await until(() => {
    pass();
    return from.source.addressOf(OWNER) === address;
  });
  assert.equal(from.side.storage.root(OWNER), undefined);
  assert.deepEqual(
    from.side.storage.moves.list().map(({ state }) => state),
    ["departed"],
  );
});
