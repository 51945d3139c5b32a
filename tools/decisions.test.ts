// Tests that every cited decision and failure has its row in docs/decisions.md, and that every row is cited.
import assert from "node:assert/strict";
import { glob, readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const PAGE = "docs/decisions.md";
const FOLDERS = ["src", "web", "tools", "bench", "prove", "tests", "docs", "packaging", "proto/grove"];
const FILES = [...FOLDERS.map((folder) => `${folder}/**/*.{ts,tsx,md,css,py,sh,proto}`), "*.md"];
const ROW = /^\| ([DT]\d{1,2}|[A-Z]-\d\d) \|/gm;
/** Cited ids: after a bracket, a comma, a blank or at a line's begin, and never within a longer word. */
const CITED = /(?<![\w"'`$.#-])(?:[DT](?:[1-9]|[123]\d)|[A-Z]-\d\d)(?![\w"'`-])/g;

async function citations(): Promise<Map<string, string>> {
  const cited = new Map<string, string>();
  for await (const path of glob(FILES, { cwd: ROOT, exclude: (name) => name === "node_modules" })) {
    if (path === PAGE || path.startsWith("src/wire/proto/gen/")) continue;
    const text = await readFile(join(ROOT, path), "utf8");
    for (const [id] of text.matchAll(CITED)) cited.set(id, path);
  }
  return cited;
}

const rows = (await readFile(join(ROOT, PAGE), "utf8")).matchAll(ROW);
const listed = new Set([...rows].map(([, id]) => id as string));
const cited = await citations();

test("every decision and failure that is cited has a row", () => {
  const strange = [...cited].filter(([id]) => !listed.has(id)).map(([id, path]) => `${id} in ${path}`);
  assert.deepEqual(strange, []);
});

test("every row is cited", () => {
  assert.deepEqual(
    [...listed].filter((id) => !cited.has(id)),
    [],
  );
});
