// Searches for names at both sides of each of their limits.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type ErrorCode, GroveError } from "#base/errors.ts";
import type { RemotePath } from "#client/connection/remote-path.ts";
import { Kind } from "#wire/proto/gen/grove/v1/common_pb.ts";
import type { FoundNames } from "#wire/webapi/file-access.ts";
import type { PageCall } from "./call.ts";
import {
  SEARCH_ENTRIES_MAX,
  SEARCH_FOLDERS_MAX,
  SEARCH_FOUND_MAX,
  SEARCH_TEXT_MAX_LENGTH,
} from "./limits.ts";
import { search } from "./search.ts";

/** Searches in a top folder with these entries; folders in it are empty, or refused with a code. */
function searchIn(
  entries: readonly (readonly [name: string, kind: Kind])[],
  text: string,
  refused: Readonly<Record<string, ErrorCode>> = {},
): Promise<FoundNames> {
  const other = { size: 0n, mtimeMs: 0n, etag: "", shared: [], myPermissions: [] };
  const rows = entries.map(([name, kind]) => ({ name, kind, ...other }));
  const listing = ({ path }: RemotePath) => {
    const code = refused[path];
    if (code !== undefined) throw new GroveError(code, "refused");
    return { nextPageToken: "", entries: () => (path === "/" ? rows : []) };
  };
  const exchange = { query: new URLSearchParams({ path: "/", name: text }), destroyed: false };
  const person = { cluster: { runAt: async (place: RemotePath) => listing(place) } };
  return search({ exchange, person } as unknown as PageCall);
}

const files = (count: number, name: string) =>
  Array.from({ length: count }, (_, at) => [`${name}${at}`, Kind.FILE] as const);

test("a search ends with what it has found, compared and read, and says that it is not whole", async () => {
  const most = await searchIn(files(SEARCH_FOUND_MAX, "pear"), "PEAR");
  assert.deepEqual([most.found.length, most.isWhole], [SEARCH_FOUND_MAX, true]);
  const more = await searchIn(files(SEARCH_FOUND_MAX + 1, "pear"), "pear");
  assert.deepEqual([more.found.length, more.isWhole], [SEARCH_FOUND_MAX, false]);
  const many = await searchIn(files(SEARCH_ENTRIES_MAX, "plum"), "pear");
  assert.deepEqual([many.looked, many.isWhole], [SEARCH_ENTRIES_MAX, true]);
  const beyond = await searchIn(files(SEARCH_ENTRIES_MAX + 1, "plum"), "pear");
  assert.deepEqual([beyond.looked, beyond.isWhole], [SEARCH_ENTRIES_MAX, false]);
  const folders = (count: number) => files(count, "plum").map(([name]) => [name, Kind.DIRECTORY] as const);
  assert.equal((await searchIn(folders(SEARCH_FOLDERS_MAX - 1), "pear")).isWhole, true);
  assert.equal((await searchIn(folders(SEARCH_FOLDERS_MAX), "pear")).isWhole, false);
});

test("a folder that goes while others are searched ends no search; the searched one, or another refusal, does", async () => {
  const entries = ["gone", "file", "pears"].map((name) => [name, Kind.DIRECTORY] as const);
  const { found, looked, isWhole } = await searchIn(entries, "pear", {
    "/gone": "NO_SUCH_PATH",
    "/file": "NOT_DIRECTORY",
  });
  assert.deepEqual([found.map(({ path }) => path), looked, isWhole], [["/pears"], 3, true]);
  await assert.rejects(searchIn(entries, "pear", { "/": "NO_SUCH_PATH" }), { code: "NO_SUCH_PATH" });
  await assert.rejects(searchIn(entries, "pear", { "/gone": "INTERNAL" }), { code: "INTERNAL" });
});

test("what is searched for has letters, and not too many; letters of both forms are the same", async () => {
  const composed = "Caf\u{e9}";
  const { found } = await searchIn([[composed, Kind.FILE]], "cafe\u{301}");
  assert.equal(found[0]?.path, `/${composed}`);
  await searchIn([], "x".repeat(SEARCH_TEXT_MAX_LENGTH));
  for (const text of ["", " ", "x".repeat(SEARCH_TEXT_MAX_LENGTH + 1)])
    await assert.rejects(searchIn([], text), { status: 400 });
});
