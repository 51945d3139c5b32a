// Tests that imports of sources are resolved without package.json, and others as ever.
import assert from "node:assert/strict";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { temporaryDirectory } from "#testing/temporary-folder.ts";
import { resolveSourcesOf } from "./test-imports.ts";

const load = (name: string): Promise<unknown> => import(name);

test("sources are found by the words of package.json, which is read once; packages and data as ever", async (t) => {
  const root = temporaryDirectory(t);
  const write = (path: string, text: string): void => writeFileSync(join(root, path), text);
  for (const folder of ["code/low", "code/high"]) mkdirSync(join(root, folder), { recursive: true });
  write("package.json", JSON.stringify({ type: "module", imports: { "#low/*": "./code/low/*" } }));
  write("code/low/number.ts", "export const NUMBER: number = 7;\n");
  write("code/high/own.ts", 'export { NUMBER } from "#low/number.ts";\n');
  write("code/high/entry.ts", 'export * from "./own.ts";\nexport { join } from "node:path";\n');
  resolveSourcesOf(pathToFileURL(`${root}/`));
  rmSync(join(root, "package.json"));
  const entry = (await import(pathToFileURL(join(root, "code/high/entry.ts")).href)) as Record<
    string,
    unknown
  >;
  assert.deepEqual({ ...entry }, { NUMBER: 7, join });
  await assert.rejects(load("#testing/not-there.ts"), { code: /NOT_FOUND|ENOENT/ });
  await assert.rejects(load("#nowhere/not-there.ts"), { code: "ERR_PACKAGE_IMPORT_NOT_DEFINED" });
});
