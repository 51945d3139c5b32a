// All 64 bits of a byte count survive JSON (decision T17).
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { parse64, parseU64, stringify64 } from "./json64.ts";
import { U64_MAX } from "./limits.ts";

test("numbers up to 2^53 - 1 leave as numbers, larger ones as decimal strings (T17)", () => {
  assert.equal(stringify64({ n: 9_007_199_254_740_991n }), '{"n":9007199254740991}');
  assert.equal(stringify64({ n: 9_007_199_254_740_992n }), '{"n":"9007199254740992"}');
  assert.equal(stringify64({ n: U64_MAX }), '{"n":"18446744073709551615"}');
});

test("a number that JavaScript would round is read from the source text (T17)", () => {
  assert.deepEqual(parse64('{"n":9007199254740993,"m":7}'), { n: 9_007_199_254_740_993n, m: 7 });
  assert.deepEqual(parse64("[18446744073709551615, 1.5, -1]"), [U64_MAX, 1.5, -1]);
});

test("every unsigned 64-bit integer survives the way out and in, as number and as text", () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: U64_MAX }), (value) => {
      assert.equal(parseU64((parse64(stringify64({ value })) as { value: unknown }).value), value);
      assert.equal(parseU64(parse64(value.toString())), value);
    }),
  );
});

test("what is no unsigned 64-bit integer is refused", () => {
  for (const value of [
    -1,
    1.5,
    1e30,
    "12GB",
    "-1",
    "1.0",
    "",
    "007",
    " 1",
    U64_MAX + 1n,
    -1n,
    null,
    undefined,
    true,
    {},
    [],
    Number.NaN,
  ]) {
    assert.equal(parseU64(value), undefined, String(value));
  }
  assert.equal(parseU64("0"), 0n);
  assert.equal(parseU64("18446744073709551615"), U64_MAX);
  assert.equal(parseU64("18446744073709551616"), undefined);
});

test("__proto__ in parsed JSON is a plain key and changes no prototype", () => {
  const parsed = parse64('{"__proto__":{"polluted":1}}') as Record<string, unknown>;
  assert.equal(({} as Record<string, unknown>)["polluted"], undefined);
  assert.ok(Object.hasOwn(parsed, "__proto__"));
});
