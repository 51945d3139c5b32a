// Tests of the ring against a plain map of slots, and of the slots that answers get.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { type Rows, SlotRing } from "./slot-ring.ts";
import { slotAfter, slotOf } from "./slots.ts";

const CAPACITY = 21;
/** Initial room, smaller than the capacity. */
const ROOM = 4;

/** A model of the ring: slots to values, and the newest slot. */
class Model {
  readonly rows = new Map<number, number>();
  newest = -1;

  put(slot: number, value: number): void {
    for (const key of this.rows.keys()) if (key >= slot) this.rows.delete(key);
    this.rows.set(slot, value);
    this.newest = slot;
    for (const key of this.rows.keys()) if (key <= slot - CAPACITY) this.rows.delete(key);
  }

  at(slot: number): number {
    return this.rows.get(slot) ?? Number.NaN;
  }
}

const puts = fc.array(
  fc.record({
    move: fc.oneof({ weight: 8, arbitrary: fc.constant(1) }, fc.integer({ min: -10, max: 20 })),
    value: fc.nat(1_000),
    takes: fc.boolean(),
  }),
  { maxLength: 60 },
);

/** True when a slot has any value; otherwise it is a gap. */
const hasRow = (ring: SlotRing, slot: number): boolean =>
  Array.from({ length: ring.columns }, (_, column) => ring.at(column, slot)).some((it) => !Number.isNaN(it));

describe("ring of slots", () => {
  it("is what a map of the newest slots is, whatever is put; a slot without a row is NaN", () => {
    fc.assert(
      fc.property(puts, (steps) => {
        const ring = new SlotRing(2, CAPACITY, ROOM);
        const model = new Model();
        let slot = 100;
        for (const { move, value } of steps) {
          slot += move;
          ring.put(slot, [value, -value]);
          model.put(slot, value);
          const figures = new Float64Array(60);
          ring.read(0, slot - 50, figures);
          for (let look = slot - 50; look <= slot + 9; look++) {
            assert.deepEqual(ring.at(0, look), model.at(look));
            assert.deepEqual(figures[look - slot + 50], model.at(look));
            assert.deepEqual(hasRow(ring, look), model.rows.has(look));
            if (model.rows.has(look)) assert.equal(ring.at(1, look), -model.at(look));
          }
        }
      }),
    );
  });

  it("what is taken bit by bit and put into another ring makes the same ring; of what is older it has nothing untrue", () => {
    fc.assert(
      fc.property(puts, (steps) => {
        const ring = new SlotRing(1, CAPACITY, ROOM);
        const copy = new SlotRing(1, CAPACITY, ROOM);
        const copyOver = (rows: Rows | undefined): void => {
          if (rows !== undefined) copy.restore(rows);
        };
        // Rows that no later row replaced; the ring drops the oldest of them.
        const written = new Map<number, number>();
        let slot = 100;
        for (const { move, value, takes } of steps) {
          slot += move;
          ring.put(slot, [value]);
          for (const key of written.keys()) if (key >= slot) written.delete(key);
          written.set(slot, value);
          if (takes) copyOver(ring.takeUnsaved());
        }
        copyOver(ring.takeUnsaved());
        assert.equal(ring.hasUnsaved, false);
        assert.equal(ring.takeUnsaved(), undefined);
        for (let look = ring.firstSlot; look <= slot + 40; look++)
          assert.deepEqual(copy.at(0, look), ring.at(0, look));
        // A ring whose clock went ahead and back has dropped rows that the other still has; those are correct
        // too.
        for (let look = slot - 40; look < ring.firstSlot; look++)
          if (!Number.isNaN(copy.at(0, look))) assert.equal(copy.at(0, look), written.get(look));
      }),
    );
  });

  it("what is taken as a whole makes the same ring, wherever it begins", () => {
    const ring = new SlotRing(2, CAPACITY, ROOM);
    for (let slot = 5; slot < 90; slot += 3) {
      ring.put(slot, [slot, slot / 2]);
      const copy = new SlotRing(2, CAPACITY, ROOM);
      copy.restore(ring.takeAll() ?? { firstSlot: 0, values: new Float32Array() });
      for (let look = 0; look < 100; look++) assert.deepEqual(copy.at(1, look), ring.at(1, look));
    }
  });

  it("figures that are no numbers are kept as unknown", () => {
    const ring = new SlotRing(4, CAPACITY);
    ring.put(1, [Number.NaN, Number.POSITIVE_INFINITY, 1e300]);
    assert.equal(hasRow(ring, 1), false);
  });
});

describe("slots of answers", () => {
  it("polls about 5 s apart get neighbouring slots, although none is on the dot", () => {
    const jitter = fc.array(fc.integer({ min: -400, max: 400 }), { minLength: 2, maxLength: 200 });
    fc.assert(
      fc.property(fc.nat(4_999), jitter, (phaseMs, jitters) => {
        let before: { slot: number; wallMs: number } | undefined;
        for (const [index, jitterMs] of jitters.entries()) {
          const wallMs = 1_790_000_000_000 + phaseMs + index * 5_000 + jitterMs;
          const slot = slotAfter(before, wallMs, 5_000);
          if (before !== undefined) assert.equal(slot, before.slot + 1);
          assert.ok(Math.abs(slot - slotOf(wallMs, 5_000)) <= 1);
          before = { slot, wallMs };
        }
      }),
    );
  });

  it("a clock that was set decides anew", () => {
    const before = { slot: 1_000, wallMs: 5_000_000 };
    assert.equal(slotAfter(before, 4_000_000, 5_000), 800);
    assert.equal(slotAfter(before, 6_000_000, 5_000), 1_200);
    assert.equal(slotAfter(undefined, 5_004_999, 5_000), 1_000);
  });
});
