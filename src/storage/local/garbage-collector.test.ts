// Tests of garbage that is refused at its turn: it is tried again, after pauses, and holds up no other.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { GroveError } from "#base/errors.ts";
import { silentLogger } from "#base/log.ts";
import { ChunkPins } from "#storage/chunks/chunk-pins.ts";
import { GARBAGE_BATCH_CHUNKS } from "#storage/metadata/content-rows.ts";
import { GarbageCollector, type GarbageCollectorDeps } from "./garbage-collector.ts";

/** A garbage table of so many rows, in front of which calls can be made to fail. */
function rig(
  context: TestContext,
  rows: number,
): {
  readonly table: Set<number>;
  readonly refused: Set<number>;
  readonly state: { refusal: Error | undefined; unlinks: number; drops: number };
  readonly collector: GarbageCollector;
  /** Lets all promises go on, after so many milliseconds on the clock. */
  readonly pass: (milliseconds: number) => Promise<void>;
} {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const table = new Set(Array.from({ length: rows }, (_, index) => index + 1));
  const refused = new Set<number>();
  const state = { refusal: undefined as Error | undefined, unlinks: 0, drops: 0 };
  const deps = {
    reader: {
      garbage: (after: number, limit: number) =>
        [...table]
          .filter((id) => id > after)
          .slice(0, limit)
          .map((id) => ({ id, sequence: id, name: `${id}` })),
    },
    store: {
      unlink: async (name: string) => {
        state.unlinks++;
        if (refused.has(Number(name))) throw Object.assign(new Error("EIO"), { code: "EIO" });
      },
      flushDirectoriesOf: async () => undefined,
    },
    files: { forget: () => undefined },
    pins: new ChunkPins(),
    queue: {
      failure: undefined,
      submit: async ({ chunkIds }: { chunkIds: number[] }) => {
        state.drops++;
        if (state.refusal !== undefined) throw state.refusal;
        for (const id of chunkIds) table.delete(id);
      },
    },
    logger: silentLogger,
    lease: { isHeld: () => false },
  };
  const collector = new GarbageCollector(deps as unknown as GarbageCollectorDeps);
  const pass = async (milliseconds: number): Promise<void> => {
    context.mock.timers.tick(milliseconds);
    for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve));
  };
  return { table, refused, state, collector, pass };
}

test("garbage that the database refuses to drop is tried again after ever longer pauses, and none is left", async (context) => {
  const { table, state, collector, pass } = rig(context, 3 * GARBAGE_BATCH_CHUNKS);
  state.refusal = new GroveError("OVERLOADED", "too much waits");
  collector.wake();
  await pass(0);
  assert.equal(state.drops, 1);
  // Nothing that happens meanwhile shortens the pause.
  collector.wake();
  await pass(999);
  assert.equal(state.drops, 1);
  await pass(1);
  assert.equal(state.drops, 2);
  await pass(1_999);
  assert.equal(state.drops, 2);
  state.refusal = undefined;
  await pass(1);
  assert.equal(table.size, 0);
  assert.equal(state.drops, 5);
  await pass(60_000);
  assert.equal(state.drops, 5);
  await collector.stop();
});

test("a chunk file that cannot be unlinked holds up no other, and goes once it can be", async (context) => {
  const { table, refused, state, collector, pass } = rig(context, 3 * GARBAGE_BATCH_CHUNKS);
  refused.add(7);
  collector.wake();
  await pass(0);
  assert.deepEqual([...table], [7]);
  assert.equal(state.unlinks, 3 * GARBAGE_BATCH_CHUNKS);
  await pass(1_000);
  assert.equal(state.unlinks, 3 * GARBAGE_BATCH_CHUNKS + 1);
  refused.clear();
  await pass(10_000);
  assert.equal(table.size, 0);
  await collector.stop();
});

test("a disk that unlinks nothing is asked for a batch at a time", async (context) => {
  const { table, refused, state, collector, pass } = rig(context, 4 * GARBAGE_BATCH_CHUNKS);
  for (const id of table) refused.add(id);
  collector.wake();
  await pass(0);
  assert.equal(state.unlinks, GARBAGE_BATCH_CHUNKS);
  await pass(1_000);
  assert.equal(state.unlinks, 2 * GARBAGE_BATCH_CHUNKS);
  refused.clear();
  await pass(10_000);
  assert.equal(table.size, 0);
  await collector.stop();
});
