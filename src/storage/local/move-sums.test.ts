// Tests of the running sum of a moving root: it is the sum over its buckets at any moment, and ends see changes.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { fillRoot, MOVE, NUMBER, pullAll, put, Side } from "./moved-root.fixture.ts";
import { OWNER, query } from "./store.fixture.ts";

/** The sum over all buckets of a store's file, counted anew. */
function counted(directory: string): { readonly rows: number; readonly checksum: string } {
  const buckets = query(
    directory,
    "SELECT kind, a, b, checksum, row_count AS count FROM move_bucket WHERE kind < 3 AND row_count > 0",
  ) as unknown as { kind: number; a: number; b: number; checksum: string; count: number }[];
  let sum = 0n;
  for (const { kind, a: of, b, checksum } of buckets) {
    sum += BigInt(`0x${createHash("sha256").update(`${kind}.${of}.${b}:${checksum}`).digest("hex")}`);
  }
  const rows = buckets.reduce((all, { count }) => all + count, 0);
  return { rows, checksum: (sum % (1n << 256n)).toString(16).padStart(64, "0") };
}

test("the sums of both ends are those over their buckets, also after changes, removals and restarts", async (context) => {
  const [from, to] = await Promise.all([Side.open(context), Side.open(context)]);
  const top = await fillRoot(from.storage);
  await from.storage.moves.beginExport({ moveId: MOVE, owner: OWNER });
  await to.storage.moves.beginImport({ moveId: MOVE, owner: OWNER, numbers: [NUMBER] });
  let turn = 0;
  await pullAll(from, to, async () => {
    turn++;
    if (turn < 12) await put(from.storage, top, `turn${turn % 3}.txt`, Buffer.alloc(turn * 7_000, turn));
    if (turn === 3) await from.restart();
    if (turn === 4) await to.restart();
  });
  await from.storage.moves.freeze(MOVE);
  const [here, there] = [await from.storage.moves.exportTotals(MOVE), to.storage.moves.importTotals(MOVE)];
  assert.ok(there.rows > 0);
  assert.deepEqual(here, there);
  await Promise.all([from.storage.close(), to.storage.close()]);
  assert.deepEqual(counted(from.directory), here);
  assert.deepEqual(counted(to.directory), there);
});
