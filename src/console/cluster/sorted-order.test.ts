// The order after random changes equals a fresh sort and costs few comparisons.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { SortedOrder } from "./sorted-order.ts";

interface Item {
  readonly name: number;
  key: number;
}

const compare = (a: Item, b: Item): number => a.key - b.key || a.name - b.name;

function settle(order: SortedOrder<Item>, moved: Iterable<Item>, gone: Iterable<Item> = []): void {
  for (const _ of order.update(new Set(moved), new Set(gone)));
}

test("whatever is added, moved and taken away, the order is that of a fresh sort", () => {
  const change = fc.record({
    added: fc.array(fc.integer({ min: 0, max: 20 }), { maxLength: 30 }),
    moved: fc.array(fc.tuple(fc.nat(60), fc.integer({ min: 0, max: 20 })), { maxLength: 10 }),
    gone: fc.array(fc.nat(60), { maxLength: 10 }),
  });
  fc.assert(
    fc.property(fc.array(change, { maxLength: 8 }), (changes) => {
      const order = new SortedOrder<Item>(compare);
      const items: Item[] = [];
      let name = 0;
      for (const { added, moved, gone } of changes) {
        const left = new Set(gone.map((at) => items[at]).filter((item) => item !== undefined));
        for (const item of left) items.splice(items.indexOf(item), 1);
        const changed = new Set<Item>();
        for (const [at, key] of moved) {
          const item = items[at];
          if (item === undefined) continue;
          item.key = key;
          changed.add(item);
        }
        for (const key of added) {
          const item = { name: name++, key };
          items.push(item);
          changed.add(item);
        }
        settle(order, changed, left);
        assert.deepEqual(order.items, items.toSorted(compare));
      }
    }),
  );
});

test("a large order is made in many steps, and a place is found in it by halving", () => {
  const order = new SortedOrder<Item>(compare);
  const items = Array.from({ length: 20_000 }, (_, name) => ({ name, key: (name * 7_919) % 20_011 }));
  let steps = 0;
  for (const _ of order.update(new Set(items), new Set())) steps++;
  assert.ok(steps > 20, `${steps} steps`);
  assert.deepEqual(order.items, items.toSorted(compare));
  let looks = 0;
  const at = order.firstFrom(({ key }) => {
    looks++;
    return key < 5_000;
  });
  assert.equal(at, items.filter(({ key }) => key < 5_000).length);
  assert.ok(looks <= 15, `${looks} looks`);
});
