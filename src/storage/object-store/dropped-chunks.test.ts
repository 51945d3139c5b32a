// Tests of removals from a store that refuses some of them: the rest goes, and a store that is down is left.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { silentLogger } from "#base/log.ts";
import { ChunkRows } from "./chunk-blocks.fixture.ts";
import { RECOVERY_WINDOW_MS, type RemovalDeps, removeDropped } from "./dropped-chunks.ts";
import { DELETED_AT_ONCE } from "./s3-client.ts";

const NEVER = new AbortController().signal;
const nameAt = (index: number): string => String(index).padStart(34, "0");

/** Dropped chunks for so many batches, and a removal whose deletes fail as the test says. */
function dropping(batches: number, fails: (batch: number) => boolean) {
  const rows = new ChunkRows();
  const clock = new ManualClock();
  for (let index = 0; index < batches * DELETED_AT_ONCE; index++) {
    rows.commit(nameAt(index), 1);
    rows.dropChunk(nameAt(index), clock.wallMs());
  }
  clock.advance(RECOVERY_WINDOW_MS + 1);
  let asked = 0;
  const deps = {
    requests: {
      deleteMany: async () => {
        if (fails(asked++)) throw new Error("the store answers 500");
        return new Map();
      },
    },
    prefix: "",
    marker: { require: () => Promise.resolve() },
    incarnation: "1",
    clock,
    logger: silentLogger,
    recoveryWindowMs: RECOVERY_WINDOW_MS,
    dropped: rows,
  } as unknown as RemovalDeps & { dropped: ChunkRows };
  return { rows, deps, asked: () => asked };
}

test("a batch that the store refuses keeps none of the later ones, and is tried again by the next pass", async () => {
  const { rows, deps } = dropping(3, (batch) => batch === 0);
  await assert.rejects(removeDropped(deps, NEVER), /answers 500/);
  assert.equal(rows.chunks.length, DELETED_AT_ONCE);
  assert.deepEqual(await removeDropped(deps, NEVER), { removed: DELETED_AT_ONCE, kept: 0 });
  assert.deepEqual(rows.chunks, []);
});

test("a store that is down is asked for a few batches, and not for all", async () => {
  const { rows, deps, asked } = dropping(6, () => true);
  await assert.rejects(removeDropped(deps, NEVER), /answers 500/);
  assert.equal(asked(), 3);
  assert.equal(rows.chunks.length, 6 * DELETED_AT_ONCE);
});
