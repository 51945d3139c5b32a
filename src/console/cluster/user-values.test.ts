// Values of users by name: readers see an ordinary map, and names are stored once.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { UserValues } from "./user-values.ts";

const names = fc.uniqueArray(fc.string(), { maxLength: 8 });

test("it tells what the map tells that it was made of, in every way of asking", () => {
  fc.assert(
    fc.property(names, fc.array(fc.string()), (listed, strangers) => {
      const map = new Map(listed.map((name, place) => [name, BigInt(place)]));
      const users = UserValues.of(map);
      assert.equal(users.size, map.size);
      assert.deepEqual([...users], [...map]);
      assert.deepEqual([...users.entries()], [...map]);
      assert.deepEqual([...users.keys()], [...map.keys()]);
      assert.deepEqual([...users.values()], [...map.values()]);
      const seen: [string, bigint][] = [];
      users.forEach((value, name, self) => {
        assert.equal(self, users);
        seen.push([name, value]);
      });
      assert.deepEqual(seen, [...map]);
      for (const name of [...listed, ...strangers, "__proto__", "constructor"]) {
        assert.equal(users.get(name), map.get(name));
        assert.equal(users.has(name), map.has(name));
      }
    }),
  );
});

test("maps that list the same users in the same order share their names, and no others do", () => {
  fc.assert(
    fc.property(names, names, (some, others) => {
      const of = (listed: readonly string[]): Map<string, number> =>
        new Map(listed.map((name, at) => [name, at]));
      const one = UserValues.of(of(some));
      const two = UserValues.of(of(others), [undefined, one]);
      assert.deepEqual([...two.keys()], others);
      assert.equal(
        two.names === one.names,
        some.join("\n") === others.join("\n") && some.length === others.length,
      );
    }),
  );
});

test("other values leave those before as they were", () => {
  const before = UserValues.of(
    new Map([
      ["a", 1n],
      ["b", 2n],
    ]),
  );
  const after = before.with(
    new Map([
      ["b", 3n],
      ["c", 4n],
    ]),
  );
  assert.deepEqual(
    [before.get("b"), after.get("b"), after.get("a"), after.get("c")],
    [2n, 3n, 1n, undefined],
  );
  assert.equal(after.names, before.names);
});
