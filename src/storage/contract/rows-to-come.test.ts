// Tests of reads whose rows have to come first: all of a decision is made again, and nothing runs on a refusal.
import assert from "node:assert/strict";
import { test } from "node:test";
import { againWhenRowsCome, RowsToCome, whenRowsAreHere } from "./rows-to-come.ts";

test("a read whose rows are here answers at once, and throws its refusal at once", () => {
  assert.equal(
    whenRowsAreHere(() => 7),
    7,
  );
  assert.throws(
    () =>
      whenRowsAreHere(() => {
        throw new Error("refused");
      }),
    /refused/,
  );
});

test("a read runs again from its beginning after each arrival", async () => {
  const here = new Set<string>();
  const tried: string[] = [];
  const need = (row: string): void => {
    tried.push(row);
    if (!here.has(row)) throw new RowsToCome(Promise.resolve().then(() => void here.add(row)));
  };
  const answer = whenRowsAreHere(() => {
    need("a");
    need("b");
    return "both";
  });
  assert.ok(answer instanceof Promise);
  assert.equal(await answer, "both");
  assert.deepEqual(tried, ["a", "a", "b", "a", "b"]);
});

test("what cannot come is the read's refusal, and other errors end an attempt", async () => {
  const lost = new RowsToCome(Promise.reject(new Error("the root is elsewhere")));
  await assert.rejects(
    againWhenRowsCome(() => {
      throw lost;
    }),
    /elsewhere/,
  );
  let tries = 0;
  await assert.rejects(
    againWhenRowsCome(async () => {
      tries++;
      throw new Error("refused");
    }),
    /refused/,
  );
  assert.equal(tries, 1);
});
