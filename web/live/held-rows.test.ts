// Tests held rows: they keep their places, new rows wait or are appended, changed ones are updated.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { held } from "./held-rows.ts";

interface Row {
  readonly id: string;
  readonly text: string;
}
const row = (id: string, text = ""): Row => ({ id, text });
const idOf = ({ id }: Row): string => id;
const before = (...rows: Row[]): Map<string, Row> => new Map(rows.map((each) => [each.id, each]));

test("a new row above waits, one that changes is shown as it is now, one that is gone stays for the moment", () => {
  const { rows, waiting } = held(
    [row("new"), row("b", "now"), row("c")],
    before(row("a"), row("b", "then"), row("c")),
    idOf,
  );
  assert.deepEqual(
    rows.map(({ id, text }) => id + text),
    ["a", "bnow", "c"],
  );
  assert.equal(waiting, 1);
});

test("rows that are read behind the last one are added: nothing jumps by them", () => {
  const { rows, waiting } = held([row("a"), row("b"), row("c")], before(row("a"), row("b")), idOf);
  assert.deepEqual([rows.map(idOf), waiting], [["a", "b", "c"], 0]);
});

test("whatever comes and goes, the rows that were there keep their order and places, and every row is shown or waits", () => {
  const ids = fc.uniqueArray(fc.constantFrom("a", "b", "c", "d", "e", "f", "g", "h"), { maxLength: 8 });
  fc.assert(
    fc.property(ids, ids, (then, now) => {
      const { rows, waiting } = held(
        now.map((id) => row(id)),
        before(...then.map((id) => row(id))),
        idOf,
      );
      assert.deepEqual(rows.slice(0, then.length).map(idOf), then);
      assert.equal(new Set(rows.map(idOf)).size, rows.length);
      assert.equal(rows.length + waiting, new Set([...then, ...now]).size);
    }),
  );
});
