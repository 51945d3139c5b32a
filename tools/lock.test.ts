// Tests that the lock installs the same on every npm: no package omitted, no denied script run.
import assert from "node:assert/strict";
import { test } from "node:test";
import { foreignWords, readLock, withoutForeignWords } from "./lock.ts";

test("the lock names no Node for optional packages and no scripts that are denied; else: npm run fix:lock", async () => {
  const { lock, denied } = await readLock();
  assert.ok(denied.length > 0);
  assert.deepEqual(foreignWords(lock, denied), []);
});

test("what is taken out is that and nothing else", () => {
  const lock = {
    lockfileVersion: 3,
    packages: {
      "": { engines: { node: ">=20" } },
      "node_modules/a": { optional: true, engines: { node: ">=22" } },
      "node_modules/b": { hasInstallScript: true, engines: { node: ">=22" } },
      "node_modules/x/node_modules/@s/c": { hasInstallScript: true },
    },
  };
  assert.deepEqual(foreignWords(lock, ["@s/c"]), [
    "node_modules/a: engines",
    "node_modules/x/node_modules/@s/c: hasInstallScript",
  ]);
  assert.deepEqual(withoutForeignWords(lock, ["@s/c"]), {
    lockfileVersion: 3,
    packages: {
      "": { engines: { node: ">=20" } },
      "node_modules/a": { optional: true },
      "node_modules/b": { hasInstallScript: true, engines: { node: ">=22" } },
      "node_modules/x/node_modules/@s/c": {},
    },
  });
});
