// Tests the tools that check tests: mutations of a text, branches, and valid exceptions.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { branchesOf, ReachCounts } from "./branches.ts";
import { EQUIVALENT, TARGETS } from "./mutant-targets.ts";
import { mutationsOf, withMutation } from "./mutations.ts";

const SOURCE =
  "export function f(a: number, b: 0 | 1): number {\n  if (a < 2 && b === 0) return 1;\n  return a;\n}\n";

test("each operator, constant, condition and early end is one mistake, and types are none", () => {
  const made = mutationsOf("f.ts", SOURCE).map((mutation) =>
    withMutation(SOURCE, mutation).split("\n")[1]?.trim(),
  );
  assert.deepEqual(
    made.toSorted((a = "", b = "") => (a < b ? -1 : 1)),
    [
      "if (!(a < 2 && b === 0)) return 1;",
      "if (a < 2 && b !== 0) return 1;",
      "if (a < 2 && b === 0) return 0;",
      "if (a < 2 && b === 1) return 1;",
      "if (a < 2 || b === 0) return 1;",
      "if (a <= 2 && b === 0) return 1;",
      "if (false) return 1;",
    ],
  );
});

test("both ways of what has no else are branches, and each is taken only by those that went it", () => {
  const branches = branchesOf("f.ts", SOURCE);
  assert.deepEqual(
    branches.map(({ way, text }) => `${way}: ${text}`),
    [
      "taken: function f(a: number, b: 0 | 1): number",
      "taken: if (a < 2 && b === 0)",
      "not taken: if (a < 2 && b === 0)",
      "taken: a < 2 && b === 0",
      "not taken: a < 2 && b === 0",
    ],
  );
  const reach = new ReachCounts(SOURCE.length);
  const range = (from: string, to: string, count: number) => ({
    startOffset: SOURCE.indexOf(from),
    endOffset: SOURCE.indexOf(to) + to.length,
    count,
  });
  const add = (calls: number, right: number, returned: number): void =>
    reach.add({
      url: "",
      functions: [
        {
          ranges: [
            range("function", "}", calls),
            range("b ===", "b === 0", right),
            range("return 1", "1;", returned),
          ],
        },
      ],
    });
  add(1, 1, 1);
  assert.deepEqual(
    branches.map((branch) => reach.isTaken(branch)),
    [true, true, false, true, false],
  );
  add(2, 1, 0);
  assert.deepEqual(
    branches.map((branch) => reach.isTaken(branch)),
    [true, true, true, true, true],
  );
});

test("every mutant that is listed as equivalent is one that is made", async () => {
  for (const { mutants } of EQUIVALENT) {
    for (const [path, changes] of Object.entries(mutants)) {
      assert.ok(path in TARGETS, path);
      const made = new Set(mutationsOf(path, await readFile(path, "utf8")).map(({ change }) => change));
      for (const change of changes) assert.ok(made.has(change), `${path}: ${change}`);
    }
  }
});
