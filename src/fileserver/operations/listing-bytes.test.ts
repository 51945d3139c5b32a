// The bytes of a listing decode to exactly what the messages of its entries would be.
import assert from "node:assert/strict";
import { test } from "node:test";
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import type { Inode } from "#storage/contract/inode.ts";
import { AttrSchema, Perm } from "#wire/proto/gen/grove/v1/common_pb.ts";
import { ListDirResponseSchema } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { attrMessage, childPath } from "./attr-message.ts";
import { encodeListing, entriesPerReply } from "./listing-bytes.ts";

const integer = (max: number) =>
  fc
    .oneof(fc.constantFrom(0, 1, 127, 128, 16_383, 16_384, 2 ** 31 - 1, 2 ** 31, 2 ** 32, max), fc.nat(1_000))
    .filter((n) => n <= max);
const name = fc.oneof(
  fc.string({ minLength: 1, maxLength: 60 }),
  fc.string({ minLength: 1, maxLength: 85, unit: "grapheme" }).filter((text) => text.length <= 255),
  fc.constant("x".repeat(255)),
);
const inode: fc.Arbitrary<Inode> = fc.record({
  id: integer(Number.MAX_SAFE_INTEGER)
    .map((id) => id + 1)
    .filter(Number.isSafeInteger),
  parentId: fc.constant(2 ** 40 + 77),
  name,
  kind: fc.constantFrom("file", "directory"),
  sizeBytes: integer(2 ** 43),
  childCount: integer(2 ** 31),
  mtimeMs: fc.oneof(integer(8.64e15), fc.integer({ min: -1e12, max: -1 }), fc.constant(-8.64e15)),
  ctimeMs: integer(8.64e15),
  version: integer(Number.MAX_SAFE_INTEGER),
  crc32: integer(2 ** 32 - 1),
  createdBy: fc.oneof(fc.constant("a@example.com"), fc.emailAddress(), fc.constant("ü".repeat(50))),
  damaged: fc.boolean(),
});
/** Few users, so that inherited, granted and excluded ones coincide. */
const user: fc.Arbitrary<string> = fc.constantFrom(
  "a@example.com",
  "b@example.com",
  "c@example.com",
  "d@example.com",
);
const scope = fc.record({
  owner: fc.oneof(fc.emailAddress(), fc.constant("ö".repeat(100))),
  shared: fc.uniqueArray(fc.oneof(user, fc.emailAddress()), { maxLength: 5 }),
  permissions: fc.subarray([Perm.READ, Perm.WRITE, Perm.DELETE]),
});

const ownShares = fc
  .tuple(fc.uniqueArray(user), fc.uniqueArray(user))
  .map(([shared, others]) => ({ shared, excluded: others.filter((name) => !shared.includes(name)) }));
const listing = fc
  .array(fc.tuple(inode, fc.option(ownShares, { nil: undefined })), { maxLength: 8 })
  .map((rows) => ({
    entries: rows.map(([entry]) => entry),
    own: new Map(rows.flatMap(([{ id }, own]) => (own === undefined ? [] : [[id, own] as const]))),
  }));

test("whatever is in a directory, its listing reads as the Attr of each entry (D13)", () => {
  const path = fc.oneof(
    fc.constant("/"),
    fc.constant("/docs"),
    fc.array(name, { minLength: 1, maxLength: 4 }).map((names) => `/${names.join("/")}`),
  );
  const token = fc.option(fc.string({ minLength: 1, maxLength: 400 }), { nil: undefined });
  fc.assert(
    fc.property(listing, path, scope, token, ({ entries, own }, directory, entryScope, nextPageToken) => {
      const page = { entries, own, nextPageToken };
      const bytes = encodeListing(page, directory, entryScope, 5);
      const read = fromBinary(ListDirResponseSchema, bytes.subarray(5));
      const wanted = entries.map((entry) => {
        const rows = own.get(entry.id);
        const users =
          rows === undefined
            ? entryScope.shared
            : [...new Set([...entryScope.shared, ...rows.shared])]
                .filter((name) => !rows.excluded.includes(name))
                .sort();
        const attr = attrMessage(entry, childPath(directory, entry.name), { ...entryScope, shared: users });
        return fromBinary(AttrSchema, toBinary(AttrSchema, attr));
      });
      assert.deepEqual(read.entries, wanted);
      assert.equal(read.nextPageToken, nextPageToken ?? "");
      assert.equal(read.$unknown, undefined);
    }),
    { numRuns: 1_000 },
  );
});

const worstEntry: Inode = {
  id: 2 ** 50,
  parentId: 2 ** 50,
  name: "€".repeat(85),
  kind: "file",
  sizeBytes: 2 ** 43,
  childCount: 0,
  mtimeMs: -8.64e15,
  ctimeMs: 8.64e15,
  version: Number.MAX_SAFE_INTEGER,
  crc32: 2 ** 32 - 1,
  createdBy: `${"u".repeat(200)}@example.com`,
  damaged: false,
};

test("a full page of the longest names fits", () => {
  const entries = Array.from({ length: 1_000 }, (_, i): Inode => ({ ...worstEntry, id: 2 ** 50 + i }));
  const page = { entries, own: new Map(), nextPageToken: "next" };
  const scope = { owner: "a@b.cc", shared: [], permissions: [] };
  assert.ok(encodeListing(page, `/${"d".repeat(3_000)}`, scope, 0).length > 1_000 * 3_700);
});

test("a page in a deep or widely shared folder is shorter, so that every stock client takes it", () => {
  assert.ok(entriesPerReply("/docs", []) >= 1_000);
  const users = Array.from({ length: 500 }, (_, index) => `${"u".repeat(200)}${index}@example.com`);
  const directory = `/${"d".repeat(4_000)}`;
  for (const shared of [[], users]) {
    const each: Inode = { ...worstEntry, parentId: 2 ** 50 };
    const entries = Array.from({ length: entriesPerReply(directory, shared) }, () => each);
    const page = { entries, own: new Map(), nextPageToken: undefined };
    const { length } = encodeListing(page, directory, { owner: "a@b.cc", shared, permissions: [] }, 0);
    assert.ok(length < 4 * 2 ** 20, String(length));
    assert.ok(length > 2 * 2 ** 20);
  }
});
