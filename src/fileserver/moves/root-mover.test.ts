// Tests of moves between two nodes: the way of a root, and what happens when a step of it fails.
import assert from "node:assert/strict";
import { test } from "node:test";
import { GroveError } from "#base/errors.ts";
import { fillRoot, NUMBER, portrait, put } from "#storage/local/moved-root.fixture.ts";
import { assertSound, chunkFiles, OWNER, patterned, query } from "#storage/local/store.fixture.ts";
import { until } from "#testing/until.ts";
import { startTwoNodes, type TwoNodes } from "./two-nodes.fixture.ts";

const ORDER = { owner: OWNER, target: "b" };

async function fill({ storage }: TwoNodes["from"]["side"]): Promise<void> {
  await fillRoot(storage);
}

/** Confirms a move that has switched, waits until the source has nothing left, and checks both stores. */
async function confirmAndCheck({ directory, from, to, pass, reaches }: TwoNodes): Promise<void> {
  await directory.decideMove(OWNER, "confirm");
  await reaches((move) => move === undefined);
  const { directory: folder } = from.side;
  await until(() => {
    pass();
    return query(folder, "SELECT 1 FROM inode").length === 0 && chunkFiles(folder).length === 0;
  });
  assert.deepEqual([from.forgotten, to.forgotten], [[OWNER], []]);
  for (const { side, mover } of [from, to]) {
    await mover.stop();
    await side.storage.close();
    assertSound(side.directory);
  }
}

test("a root arrives whole with its quota; its former node names the new one, and removes its copy once that is confirmed", async (context) => {
  const cluster = await startTwoNodes(context, fill);
  const { directory, from, to, reaches } = cluster;
  const before = await portrait(from.side.storage);
  await directory.beginMove(ORDER);
  await reaches((move) => move?.state === "switched");
  await until(() => to.side.storage.root(OWNER) !== undefined);
  assert.deepEqual(await portrait(to.side.storage), before);
  assert.deepEqual(to.taken, [[OWNER, { quotaBytes: "77000000", inodeLimit: 4_321 }]]);
  const { address } = (await directory.findRoot(OWNER)) ?? {};
  await until(() => {
    cluster.pass();
    return from.source.addressOf(OWNER) === address;
  });
  assert.equal(from.source.isFrozen(OWNER), false);
  assert.equal(from.side.storage.root(OWNER), undefined);
  assert.ok(chunkFiles(from.side.directory).length > 0);
  assert.deepEqual([from.acts, to.acts], [[`root.departed ${OWNER}`], [`root.arrived ${OWNER}`]]);
  // As long as its copy stays, the root may come back here.
  assert.deepEqual(from.forgotten, []);
  await confirmAndCheck(cluster);
});

test("a target that has lost a root since it moved there says so in the store, and says when it is there again", async (context) => {
  const cluster = await startTwoNodes(context, fill);
  const { directory, faults, from, to, pass, reaches } = cluster;
  await directory.beginMove(ORDER);
  await reaches((move) => move?.state === "switched");
  await until(() => to.side.storage.root(OWNER) !== undefined);
  faults.isGone = true;
  pass(10_000);
  await reaches((move) => move?.problem === "the root is not here");
  await assert.rejects(directory.decideMove(OWNER, "confirm"), /b does not have the root/);
  assert.ok(chunkFiles(from.side.directory).length > 0);
  faults.isGone = false;
  pass(10_000);
  await reaches((move) => move?.problem === "");
  await confirmAndCheck(cluster);
});

test("a target without room takes nothing, says so in the store, and goes on once there is some", async (context) => {
  const cluster = await startTwoNodes(context, fill);
  const { directory, faults, to, pass, reaches } = cluster;
  faults.room = 999n;
  await directory.beginMove(ORDER);
  const waiting = await reaches((move) => move?.problem !== undefined && move.problem !== "");
  assert.match(waiting?.problem ?? "", /no room here for 1000 bytes above the reserve/);
  assert.equal(waiting?.state, "copying");
  assert.equal(query(to.side.directory, "SELECT 1 FROM inode").length, 0);
  delete faults.room;
  pass(60_000);
  await reaches((move) => move?.state === "switched");
  await until(() => to.side.storage.root(OWNER) !== undefined);
});

test("a chunk with a wrong byte is refused and the root stays where it is; pulled anew it arrives right", async (context) => {
  const cluster = await startTwoNodes(context, fill);
  const { directory, faults, from, to, pass, reaches } = cluster;
  const before = await portrait(from.side.storage);
  faults.chunk = (data) => Buffer.from(data).fill(7, 100, 101);
  await directory.beginMove(ORDER);
  const waiting = await reaches((move) => move?.problem !== undefined && move.problem !== "");
  assert.match(waiting?.problem ?? "", /did not arrive as it was sent/);
  assert.deepEqual([waiting?.state, waiting?.attempt], ["copying", 0]);
  delete faults.chunk;
  pass(60_000);
  await reaches((move) => move?.state === "switched");
  await until(() => to.side.storage.root(OWNER) !== undefined);
  assert.deepEqual(await portrait(to.side.storage), before);
});

test("the store hears of the progress before a round with many chunks is over", async (context) => {
  const cluster = await startTwoNodes(context, fill);
  const { directory, faults, to, reaches } = cluster;
  let sent = 0;
  const rest = Promise.withResolvers<void>();
  faults.beforeChunk = async () => {
    if (++sent > 1) await rest.promise;
  };
  await directory.beginMove(ORDER);
  const begun = await reaches((move) => (move?.bytes ?? 0) > 0);
  assert.equal(begun?.state, "copying");
  assert.equal(query(to.side.directory, "SELECT 1 FROM inode").length, 0);
  rest.resolve();
  await reaches((move) => move?.state === "switched");
});

test("a move that has begun goes on in room for the rest alone, tells on what has come, and takes no chunk below the reserve", async (context) => {
  const cluster = await startTwoNodes(context, fill);
  const { directory, faults, to, pass, reaches } = cluster;
  let sent = 0;
  let isCut = true;
  faults.usedBytes = 10_000_000;
  faults.beforeChunk = async () => {
    if (++sent > 1 && isCut) throw new GroveError("OVERLOADED", "cut");
  };
  await directory.beginMove(ORDER);
  const cut = await reaches((move) => /cut/.test(move?.problem ?? ""));
  assert.ok((cut?.bytes ?? 0) > 0, "a failure tells on what has come");
  // Half of it is here by now, so less is free than the whole root has.
  faults.room = 100n;
  isCut = false;
  pass(60_000);
  const full = await reaches((move) => /no room here for/.test(move?.problem ?? ""));
  assert.ok((full?.bytes ?? 0) >= (cut?.bytes ?? 0));
  faults.room = 5_000_000n;
  pass(60_000);
  await reaches((move) => move?.state === "switched");
  await until(() => to.side.storage.root(OWNER) !== undefined);
});

test("a source that has given a move up and begun again leaves nothing at the target that it removed in between", async (context) => {
  const cluster = await startTwoNodes(context, fill);
  const { directory, faults, from, to, pass, reaches } = cluster;
  faults.before = (step) => {
    if (step === "freeze") throw new GroveError("STORE_UNAVAILABLE", "the store is away");
  };
  const { moveId } = await directory.beginMove(ORDER);
  const contents = "SELECT DISTINCT content_id AS id FROM file_chunk ORDER BY id";
  await reaches((move) => move?.problem !== undefined && move.problem !== "");
  const [begun, ...kept] = query(to.side.directory, contents);
  assert.ok(begun !== undefined && kept.length > 0);
  const { storage, directory: folder } = from.side;
  await storage.moves.endExport(moveId);
  const inode = storage.resolve(OWNER, ["top", "two chunks"]).chain.at(-1);
  assert.ok(inode !== undefined);
  await storage.remove({
    owner: OWNER,
    by: OWNER,
    accessVersion: undefined,
    inodeId: inode.id,
    recursive: false,
  });
  await until(() => query(folder, contents).length === kept.length);
  const before = await portrait(storage);
  delete faults.before;
  await reaches((move) => {
    pass(2_000);
    return move?.state === "switched";
  });
  await until(() => to.side.storage.root(OWNER) !== undefined);
  assert.deepEqual(await portrait(to.side.storage), before);
  await confirmAndCheck(cluster);
});

test("an undone move leaves nothing at the target, and the source as it was", async (context) => {
  const cluster = await startTwoNodes(context, fill);
  const { directory, faults, from, to, reaches } = cluster;
  const before = await portrait(from.side.storage);
  faults.before = (step) => {
    if (step === "freeze") throw new GroveError("STORE_UNAVAILABLE", "the store is away");
  };
  await directory.beginMove(ORDER);
  await until(() => {
    cluster.pass();
    return query(to.side.directory, "SELECT 1 FROM inode").length > 0;
  });
  await directory.decideMove(OWNER, "undo");
  await reaches((move) => move === undefined);
  await until(() => {
    cluster.pass();
    return (
      query(to.side.directory, "SELECT 1 FROM inode").length === 0 &&
      chunkFiles(to.side.directory).length === 0
    );
  });
  assert.equal(to.side.storage.root(OWNER), undefined);
  assert.deepEqual(await portrait(from.side.storage), before);
  await put(from.side.storage, from.side.storage.root(OWNER)?.directoryId ?? 0, "after", patterned(9));
});

for (const lost of ["before", "after"] as const) {
  test(`a switch whose way to the store is lost ${lost} it was taken happens once, and one node serves the root`, async (context) => {
    const cluster = await startTwoNodes(context, fill);
    const { directory, faults, from, to, pass, reaches } = cluster;
    const before = await portrait(from.side.storage);
    let failures = 0;
    faults[lost] = (step) => {
      if (step !== "switch" || failures > 0) return;
      failures++;
      throw new GroveError("STORE_UNAVAILABLE", "the store is away");
    };
    await directory.beginMove(ORDER);
    await until(() => {
      pass();
      return failures === 1;
    });
    if (lost === "before") {
      // The source takes the attempt back, so its users go on at once.
      await until(() => {
        pass();
        return from.side.storage.moves.list()[0]?.state === "copying" && !from.source.isFrozen(OWNER);
      });
      await put(from.side.storage, from.side.storage.root(OWNER)?.directoryId ?? 0, "later", patterned(9));
    }
    pass(60_000);
    const switched = await reaches((move) => move?.state === "switched");
    assert.equal(switched?.attempt, lost === "before" ? 2 : 1);
    await until(() => {
      pass();
      return to.side.storage.root(OWNER) !== undefined && from.side.storage.root(OWNER) === undefined;
    });
    if (lost === "after") assert.deepEqual(await portrait(to.side.storage), before);
    else assert.equal(to.side.storage.root(OWNER)?.usage.fileCount, 304);
    await confirmAndCheck(cluster);
  });
}

test("a source that does not reach the store stays frozen rather than take changes that may be lost", async (context) => {
  const cluster = await startTwoNodes(context, fill);
  const { directory, faults, from, to, pass, reaches } = cluster;
  let isAway = false;
  faults.before = (step) => {
    if (step === "switch") isAway = true;
    if (isAway) throw new GroveError("STORE_UNAVAILABLE", "the store is away");
  };
  await directory.beginMove(ORDER);
  await until(() => {
    pass();
    return isAway;
  });
  for (let turn = 0; turn < 20; turn++) {
    pass(4_000);
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(from.source.isFrozen(OWNER), true);
  }
  isAway = false;
  delete faults.before;
  await reaches((move) => move?.state === "switched");
  await until(() => {
    pass();
    return to.side.storage.root(OWNER) !== undefined && from.side.storage.root(OWNER) === undefined;
  });
});

test("what came of a move that the store no longer has is removed, unless it may be all that is left", async (context) => {
  const { to, pass } = await startTwoNodes(context, fill);
  const { moves } = to.side.storage;
  await moves.beginImport({ moveId: "half", owner: "half@example.com", numbers: [NUMBER + 1] });
  await moves.beginImport({ moveId: "whole", owner: "whole@example.com", numbers: [NUMBER + 2] });
  await moves.keepHead("whole", "{}");
  await until(() => {
    pass();
    return moves.list().length < 2;
  });
  for (let turn = 0; turn < 10; turn++) {
    pass(5_000);
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.deepEqual(
    moves.list().map(({ moveId }) => moveId),
    ["whole"],
  );
});
