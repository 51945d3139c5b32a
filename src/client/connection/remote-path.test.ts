// Tests of how typed paths are read: rules of decision D13 for what people type.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { splitPath } from "#base/names.ts";
import { baseName, childPath, formatRemotePath, HOME, parentPath, parseRemotePath } from "./remote-path.ts";

const DOCS = { root: "", path: "/docs" };

test("a relative path starts at the current folder, an absolute one at the root", () => {
  assert.equal(parseRemotePath("a.txt", DOCS).path, "/docs/a.txt");
  assert.equal(parseRemotePath("/a.txt", DOCS).path, "/a.txt");
  assert.equal(parseRemotePath(".", DOCS).path, "/docs");
  assert.equal(parseRemotePath("../x", DOCS).path, "/x");
  assert.equal(parseRemotePath("../../../x", DOCS).path, "/x");
});

test("an empty path is refused, and never means the current folder", () => {
  assert.throws(() => parseRemotePath("", DOCS), { code: "BAD_ARGUMENT", message: /the path is empty/ });
});

test("user:/path is in that user's root, also relative paths behind the colon (D13)", () => {
  const alice = { root: "alice@example.com", path: "/plans" };
  assert.deepEqual(parseRemotePath("Alice@Example.com:/docs/a", DOCS), {
    root: "alice@example.com",
    path: "/docs/a",
    isFolder: false,
  });
  assert.equal(parseRemotePath("alice@example.com:", DOCS).path, "/");
  assert.equal(parseRemotePath("alice@example.com:x", DOCS).path, "/x");
  assert.deepEqual(parseRemotePath("b", alice), {
    root: "alice@example.com",
    path: "/plans/b",
    isFolder: false,
  });
});

test("a file that is called like a root is reached with ./", () => {
  assert.deepEqual(parseRemotePath("./a@b.c:d", HOME), { root: "", path: "/a@b.c:d", isFolder: false });
});

test("a slash, a dot or two at the end say that a folder is meant", () => {
  for (const typed of ["a/", "a/.", ".", "..", "a/..", "/"])
    assert.equal(parseRemotePath(typed, DOCS).isFolder, true, typed);
  for (const typed of ["a", "/a/b", "..a"]) assert.equal(parseRemotePath(typed, DOCS).isFolder, false, typed);
});

test("names that the server would refuse are refused here, at 255 and 256 bytes (D13)", () => {
  assert.equal(parseRemotePath("x".repeat(255), HOME).path.length, 256);
  assert.throws(() => parseRemotePath("x".repeat(256), HOME), { code: "BAD_NAME" });
  assert.throws(() => parseRemotePath("a\u0000b", HOME), { code: "BAD_NAME" });
  assert.throws(() => parseRemotePath("a\u001b[2J", HOME), { code: "BAD_NAME" });
  const long = Array.from({ length: 17 }, () => "y".repeat(250)).join("/");
  assert.throws(() => parseRemotePath(long, HOME), { code: "BAD_ARGUMENT" });
});

test("whatever is typed is refused or becomes a path that the server takes", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), fc.constantFrom(HOME, DOCS), (typed, from) => {
      let parsed: { root: string; path: string };
      try {
        parsed = parseRemotePath(typed, from);
      } catch (error) {
        assert.match(String((error as { code?: unknown }).code), /^BAD_(NAME|ARGUMENT)$/);
        return;
      }
      const names = splitPath(parsed.path);
      assert.ok(!names.includes("..") && !names.includes("."));
      assert.equal(parseRemotePath(formatRemotePath(parsed), HOME).path, parsed.path);
    }),
  );
});

test("child, parent and last name of paths fit together", () => {
  assert.equal(childPath("/", "a"), "/a");
  assert.equal(childPath("/a", "b"), "/a/b");
  assert.equal(parentPath("/a/b"), "/a");
  assert.equal(parentPath("/a"), "/");
  assert.equal(parentPath("/"), "/");
  assert.equal(baseName("/a/b"), "b");
  assert.equal(baseName("/"), "");
});
