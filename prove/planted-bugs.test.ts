// Tests that every planted bug can still be planted, and that each rig has some to find.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { plantedBugs } from "./planted-bugs.ts";
import { withEdit } from "./planted-tree.ts";
import { rigs } from "./rigs.ts";

for (const bug of plantedBugs) {
  test(`the planted bug ${bug.name} fits the sources, and names rigs that exist`, async () => {
    for (const edit of bug.edits) {
      const text = await readFile(fileURLToPath(new URL(`../${edit.file}`, import.meta.url)), "utf8");
      assert.notEqual(withEdit(text, edit), text);
    }
    for (const name of bug.rigs)
      assert.ok(
        rigs.some((rig) => rig.name === name),
        name,
      );
  });
}

test("names of rigs and of planted bugs are unique, and every rig has a bug to find", () => {
  const names = [...rigs, ...plantedBugs].map(({ name }) => name);
  assert.equal(new Set(names).size, names.length);
  const blind = rigs.filter(({ name }) => !plantedBugs.some((bug) => bug.rigs.includes(name)));
  assert.deepEqual(
    blind.map(({ name }) => name),
    [],
  );
});
