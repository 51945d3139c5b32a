// The memory pool for answers in transit: small ones bypass it, a full pool aborts the largest (M-05).
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { AnswerPool, type HeldAnswer } from "./answer-pool.ts";

test("small answers need no room, however many there are", () => {
  const pool = new AnswerPool({ freeBytes: 100, maxBytes: 1_000 });
  for (let index = 0; index < 1_000; index++) assert.equal(pool.hold(() => assert.fail()).grow(100), true);
  assert.equal(pool.heldBytes, 0);
});

test("when the room is full the largest answer gives way, also when it is the one that grows", () => {
  const pool = new AnswerPool({ freeBytes: 100, maxBytes: 1_000 });
  const gone: string[] = [];
  const large = pool.hold(() => gone.push("large"));
  const small = pool.hold(() => gone.push("small"));
  assert.equal(large.grow(900), true);
  assert.equal(small.grow(300), true);
  assert.equal(pool.heldBytes, 1_000);
  assert.equal(small.grow(1), true);
  assert.deepEqual(gone, ["large"]);
  assert.equal(large.grow(1), false);
  assert.equal(small.grow(2_000), false);
  assert.deepEqual(gone, ["large", "small"]);
  assert.equal(pool.heldBytes, 0);
});

test("what is held is never more than the room, and nothing once all have ended", () => {
  const act = fc.record({ who: fc.nat(9), bytes: fc.nat(600), ends: fc.boolean() });
  fc.assert(
    fc.property(fc.array(act, { maxLength: 200 }), (acts) => {
      const pool = new AnswerPool({ freeBytes: 100, maxBytes: 1_000 });
      const answers = new Map<number, HeldAnswer>();
      for (const { who, bytes, ends } of acts) {
        const answer = answers.get(who) ?? pool.hold(() => undefined);
        answers.set(who, answer);
        if (ends) {
          answer.release();
          answers.delete(who);
        } else answer.grow(bytes);
        assert.ok(pool.heldBytes >= 0 && pool.heldBytes <= 1_000);
      }
      for (const answer of answers.values()) answer.release();
      assert.equal(pool.heldBytes, 0);
    }),
  );
});
