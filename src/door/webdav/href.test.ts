// Tests how addresses become names and names addresses.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { isGroveError } from "#base/errors.ts";
import { nameProblem } from "#base/names.ts";
import { hrefOf, readHref } from "./href.ts";

test("every path comes back from its address, and the address is plain", () => {
  const name = fc
    .string({ unit: "grapheme", minLength: 1, maxLength: 20 })
    .map((text) => text.normalize("NFC"))
    .filter((text) => nameProblem(text) === undefined);
  fc.assert(
    fc.property(fc.array(name, { maxLength: 5 }), fc.boolean(), (path, isCollection) => {
      const href = hrefOf("/dav", path, isCollection);
      assert.match(href, /^[A-Za-z0-9\-._~!$'()*+,;=:@%/]*$/u);
      assert.deepEqual(readHref(href, "/dav").path, path);
    }),
  );
});

test("an address that could mean two things is refused", () => {
  const refused = [
    "/dav/a%2Fb",
    "/dav/a%2fb",
    "/dav/%00",
    "/dav/.",
    "/dav/a/../b",
    "/dav/%2e%2e",
    "/dav/a//b",
    "/dav/%ff",
    "/dav/\u00c3\u00a9",
    "/dav/\u20ac",
    "/dav/a b",
    "/dav/\u007f",
    "/dav/%",
    "/davx",
    "/",
    "",
  ];
  for (const path of refused) {
    assert.throws(
      () => readHref(path, "/dav"),
      (error) => isGroveError(error, "BAD_NAME", "BAD_ARGUMENT"),
      path,
    );
  }
});

test("addresses are decoded exactly once, and names are canonical", () => {
  assert.deepEqual(readHref("/dav/a%252Fb", "/dav").path, ["a%2Fb"]);
  assert.deepEqual(readHref("/dav/e%CC%81", "/dav").path, ["\u00e9"]);
  assert.deepEqual(readHref("/dav", "/dav"), { path: [], hasSlash: true });
  assert.deepEqual(readHref("/dav/a/", "/dav"), { path: ["a"], hasSlash: true });
});
