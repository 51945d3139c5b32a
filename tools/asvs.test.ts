// Tests docs/asvs.md: each requirement once and in order, with existing tests or a reason for none.
import assert from "node:assert/strict";
import { access, readFile } from "node:fs/promises";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const ROOT = new URL("../", import.meta.url);
/** Requirements of levels 1 and 2 in version 5.0.0 of the standard. */
const REQUIREMENTS = 253;

interface Row {
  readonly id: string;
  readonly says: string;
  readonly tests: readonly string[];
}

async function rows(): Promise<Row[]> {
  const text = await readFile(new URL("docs/asvs.md", ROOT), "utf8");
  return [...text.matchAll(/^\| (\d+\.\d+\.\d+) \| (.*) \| (.*) \|$/gm)].map(
    ([, id = "", says = "", tests = ""]) => ({
      id,
      says,
      tests: [...tests.matchAll(/`([^`]+)`/g)].map(([, path = ""]) => path),
    }),
  );
}

test("every requirement has one row, in the order of the standard, and every row says something", async () => {
  const all = await rows();
  const order = ({ id }: Row): number => id.split(".").reduce((sum, part) => sum * 100 + Number(part), 0);
  assert.equal(all.length, REQUIREMENTS);
  assert.equal(new Set(all.map(({ id }) => id)).size, REQUIREMENTS);
  assert.deepEqual(
    all.map(({ id }) => id),
    all.toSorted((a, b) => order(a) - order(b)).map(({ id }) => id),
  );
  for (const { id, says } of all) assert.ok(says.trim().length > 3, id);
});

test("every test that a row names is there", async () => {
  for (const { id, tests } of await rows()) {
    for (const path of tests) {
      assert.match(path, /\.test\.ts$/, id);
      await access(fileURLToPath(new URL(path, ROOT)));
    }
  }
});
