// Tests the pages' imports: of src/ only types of the interface, and rooms without I/O.
import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const WEB = fileURLToPath(new URL("../web/", import.meta.url));
const IMPORT = /(?:from|import\(|import)\s*"([^"]+)"/g;
/** `base` has no I/O, so it runs in a browser; from `webapi` only types, since the pages need no schemas. */
const TYPE_IMPORT = /import type [^;]*from "#wire\/webapi\/|import type [^;]*from "zod"/;

function violations(path: string, text: string): string[] {
  const found: string[] = [];
  for (const statement of text.matchAll(/^import [^;]*;|import\([^)]*\)/gm)) {
    const [words] = statement;
    for (const [, name = ""] of words.matchAll(IMPORT)) {
      if (/^#wire\/webapi\/|^zod$/.test(name) && !TYPE_IMPORT.test(words))
        found.push(`${path} imports ${name} for more than types`);
      else if (name.startsWith("#") && !/^#(?:wire\/webapi|base)\//.test(name))
        found.push(`${path} imports ${name}`);
      else if (name.startsWith("node:")) found.push(`${path} imports ${name}`);
      else if (/\.\.\/(?:\.\.\/)*(?:src|tools|bench|tests)\//.test(name))
        found.push(`${path} imports ${name}`);
    }
  }
  return found;
}

/** Files of the build, not of the pages. */
const OF_THE_BUILD = new Set([
  "vite.config.ts",
  "files-config.ts",
  "theme-css.ts",
  "compress.ts",
  "vite-env.d.ts",
]);

test("the pages import nothing of src/ but types of webapi and words of base, and no part of Node", async () => {
  const files = (await readdir(WEB, { recursive: true })).filter(
    (path) => /\.tsx?$/.test(path) && !path.endsWith(".test.ts") && !OF_THE_BUILD.has(path),
  );
  assert.ok(files.length > 30);
  const found: string[] = [];
  for (const path of files) {
    const text = await readFile(join(WEB, path), "utf8");
    found.push(...violations(path, text));
    if (!/^\/\/ \S/.test(text)) found.push(`${path} does not begin by saying what it is for`);
    if (text.split("\n").length > 401) found.push(`${path} has over 400 lines`);
    if (/dangerouslySetInnerHTML|\.innerHTML\b/.test(text)) found.push(`${path} renders text as markup`);
  }
  assert.deepEqual(found, []);
});

test("a forbidden import of the pages is noticed", () => {
  assert.equal(violations("a.ts", 'import { x } from "#console/live/hub.ts";\n').length, 1);
  assert.equal(violations("a.ts", 'import { alertRecord } from "#wire/webapi/alert.ts";\n').length, 1);
  assert.equal(violations("a.ts", 'import type { AlertRecord } from "#wire/webapi/alert.ts";\n').length, 0);
  assert.equal(violations("a.ts", 'const x = await import("node:fs");\n').length, 1);
  assert.equal(violations("a.ts", 'import { y } from "../../src/os/run.ts";\n').length, 1);
});
