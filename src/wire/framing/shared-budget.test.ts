// Budgets that parties share: their shares, the spare part and the order of waiting claims.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { SharedBudget } from "./shared-budget.ts";

const SHARES = { total: 100, perParty: 60, spare: 20, modest: 5 };

test("a party takes its share and no more, and the last part is for those with little", () => {
  const budget = new SharedBudget(SHARES);
  assert.equal(budget.take("a", 60), true);
  assert.equal(budget.take("a", 1), false);
  assert.equal(budget.take("b", 20), true);
  assert.equal(budget.take("b", 1), false);
  assert.equal(budget.take("c", 6), false);
  for (const party of ["c", "d", "e", "f"]) assert.equal(budget.take(party, 5), true);
  assert.equal(budget.take("g", 1), false);
  budget.give("a", 60);
  assert.equal(budget.take("g", 1), true);
});

test("claims wait for room, parties in turn, and one that is withdrawn gets nothing", () => {
  const budget = new SharedBudget(SHARES);
  budget.take("a", 60);
  const granted: string[] = [];
  const claim = (party: string, amount: number, name: string) =>
    budget.claim(party, amount, () => granted.push(name));
  const waits = [claim("a", 30, "a1"), claim("a", 30, "a2"), claim("b", 40, "b1")];
  assert.equal(
    waits.every((wait) => wait !== undefined),
    true,
  );
  assert.equal(claim("b", 1, "b0") === undefined, false);
  waits[1]?.();
  budget.give("a", 60);
  assert.deepEqual(granted, ["a1", "b1", "b0"]);
  assert.equal(budget.used, 71);
  assert.equal(claim("c", 5, "c1"), undefined);
});

test("nobody ever holds more than a share, all together never more than the total, and what is given back is all there", () => {
  const step = fc.record({ party: fc.constantFrom("a", "b", "c"), amount: fc.integer({ min: 1, max: 50 }) });
  fc.assert(
    fc.property(fc.array(step), (steps) => {
      const budget = new SharedBudget(SHARES);
      const held: { party: string; amount: number }[] = [];
      for (const { party, amount } of steps) {
        const hold = (): unknown => held.push({ party, amount });
        if (budget.claim(party, amount, hold) === undefined) hold();
        assert.ok(budget.used <= SHARES.total && budget.heldBy(party) <= SHARES.perParty);
        if (amount % 3 === 0) {
          const first = held.shift();
          if (first !== undefined) budget.give(first.party, first.amount);
        }
      }
      for (let one = held.shift(); one !== undefined; one = held.shift()) budget.give(one.party, one.amount);
      assert.equal(budget.used, 0);
    }),
  );
});
