// Tests that page tokens work for their own listing only.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { isGroveError } from "#base/errors.ts";
import { pageToken, readPageToken, sortOf } from "./page-token.ts";

const refused = (token: string): void => {
  assert.throws(
    () => readPageToken(token, 7, "name"),
    (error) => isGroveError(error, "BAD_ARGUMENT"),
    token,
  );
};
const made = (...parts: readonly unknown[]): string =>
  Buffer.from(JSON.stringify(parts)).toString("base64url");

test("a token says where its page ended, whatever the name", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), fc.maxSafeInteger(), (name, value) => {
      const token = pageToken(7, "size-desc", { name, value });
      fc.pre(token.length <= 1_024);
      assert.deepEqual(readPageToken(token, 7, "size-desc"), { name, value });
    }),
  );
  assert.equal(readPageToken("", 7, "name"), undefined);
});

test("a token of another directory or another order is refused", () => {
  const token = pageToken(7, "size", { name: "a", value: 1 });
  for (const [directory, sort] of [
    [8, "size"],
    [7, "size-desc"],
    [7, "mtime"],
  ] as const) {
    assert.throws(
      () => readPageToken(token, directory, sort),
      (error) => isGroveError(error, "BAD_ARGUMENT"),
    );
  }
});

test("what is no token of ours is refused", () => {
  assert.deepEqual(readPageToken(made(7, "name", 0, "a"), 7, "name"), { name: "a", value: 0 });
  for (const token of [
    "!",
    Buffer.from("{}").toString("base64url"),
    made(7, "name", 0),
    made(7, "name", 0, "a", 1),
    made(7, "name", "0", "a"),
    made(7, "name", 0.5, "a"),
    made(7, "name", 2 ** 53, "a"),
    made(7, "name", 0, null),
    made(7, "name", null, "a"),
  ]) {
    refused(token);
  }
});

test("a token has at most 1,024 characters; longer ones are not looked into", () => {
  const longest = made(7, "name", 0, "a".repeat(753));
  assert.equal(longest.length, 1_024);
  assert.equal(readPageToken(longest, 7, "name")?.name.length, 753);
  refused(made(7, "name", 0, "a".repeat(754)));
});

test("an order says what it goes by and which way", () => {
  assert.deepEqual(sortOf("name"), ["name", false]);
  assert.deepEqual(sortOf("size-desc"), ["size", true]);
  assert.deepEqual(sortOf("mtime"), ["mtime", false]);
});
