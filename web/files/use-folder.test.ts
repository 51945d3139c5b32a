// Reading a large folder: how often the page hears of it, since each time all of it is sorted and drawn.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { FileEntry } from "#wire/webapi/files.ts";
import { readPages } from "./use-folder.ts";

const PAGES = 50;

test("a folder of many pages is told a few times, the first page at once and all at the end", async (t) => {
  t.mock.method(globalThis, "fetch", async (path: string) => {
    const page = Number(new URL(path, "http://door").searchParams.get("page"));
    const next = page + 1 < PAGES ? String(page + 1) : "";
    return Response.json({ entries: [{ name: `${page}a` }, { name: `${page}b` }], next });
  });
  const entries: FileEntry[] = [];
  const told: (readonly [number, boolean])[] = [];
  await readPages({ root: "", path: "/" }, entries, new AbortController().signal, (isLoading) =>
    told.push([entries.length, isLoading]),
  );
  const halves = [2, 4, 8, 16, 32, 64].map((count) => [count, true]);
  assert.deepEqual(told, [...halves, [2 * PAGES, false]]);
});
