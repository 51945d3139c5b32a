// Tests of the bag of short-lived objects.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Slots } from "./slots.ts";

test("it holds what a set would hold, whatever comes and goes", () => {
  fc.assert(
    fc.property(fc.array(fc.nat(9)), (steps) => {
      const slots = new Slots<object>();
      const wanted = new Map<object, number>();
      for (const step of steps) {
        const [member, place] = [...wanted][step] ?? [];
        if (member === undefined || place === undefined) {
          const added = {};
          wanted.set(added, slots.add(added));
        } else {
          slots.remove(place);
          wanted.delete(member);
          assert.equal(slots.at(place), undefined);
        }
        assert.equal(slots.size, wanted.size);
        assert.deepEqual(new Set(slots), new Set(wanted.keys()));
        for (const [one, at] of wanted) assert.equal(slots.at(at), one);
      }
    }),
  );
});

test("it takes no more places than were taken at once", () => {
  const slots = new Slots<object>();
  const kept = slots.add({});
  for (let round = 0; round < 100; round++) {
    const place = slots.add({});
    assert.equal(place, kept + 1);
    slots.remove(place);
  }
});

test("members may leave during a walk", () => {
  const slots = new Slots<{ place: number }>();
  const members = [1, 2, 3].map(() => ({ place: 0 }));
  for (const member of members) member.place = slots.add(member);
  const seen: object[] = [];
  for (const member of slots) {
    seen.push(member);
    for (const other of members.splice(0)) slots.remove(other.place);
  }
  assert.equal(seen.length, 1);
  assert.equal(slots.size, 0);
});
