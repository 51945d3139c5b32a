// Names, paths and usernames at the edges of decision D13.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { isGroveError } from "./errors.ts";
import { USERNAME_MAX_LENGTH } from "./limits.ts";
import { canonicalName, canonicalUsername, joinPath, nameProblem, splitPath } from "./names.ts";

const badName = (error: unknown) => isGroveError(error, "BAD_NAME");
const badArgument = (error: unknown) => isGroveError(error, "BAD_ARGUMENT");

test("a name of 255 bytes is taken and one of 256 refused, in ASCII and in longer characters (D13)", () => {
  assert.equal(canonicalName("a".repeat(255)).length, 255);
  assert.throws(() => canonicalName("a".repeat(256)), badName);
  assert.equal(canonicalName("é".repeat(127)).length, 127);
  assert.throws(() => canonicalName("é".repeat(128)), badName);
  assert.equal(canonicalName(`${"😀".repeat(63)}abc`).length, 129);
  assert.throws(() => canonicalName("😀".repeat(64)), badName);
  assert.equal(canonicalName("名".repeat(85)).length, 85);
  assert.throws(() => canonicalName("名".repeat(86)), badName);
});

test("the canonical form is what is measured: 85 decomposed characters that grow under NFC are refused (D13)", () => {
  // U+0344 is two bytes and its NFC form four.
  assert.throws(() => canonicalName("\u0344".repeat(64)), badName);
});

test("empty, dot, dot-dot, slash, control characters, U+FFFD and lone surrogates are no names (D13)", () => {
  for (const name of [
    "",
    ".",
    "..",
    "a/b",
    "a\0b",
    "a\nb",
    "\u001b[31m",
    "\u007f",
    "\u0085",
    "a\ufffd",
    "\ud800",
    "a\udc00b",
  ]) {
    assert.throws(() => canonicalName(name), badName, JSON.stringify(name));
  }
  for (const name of ["...", ".a", " ", "a ", "CON", "a\\b", "ä", "名", "😀"]) {
    assert.equal(canonicalName(name), name);
  }
});

test("a decomposed name whose canonical form fits is taken, as macOS sends it (D13)", () => {
  const composed = "ü".repeat(127);
  assert.equal(canonicalName(composed.normalize("NFD")), composed);
  assert.throws(() => canonicalName(`${composed}ü`.normalize("NFD")), /at most 255 bytes/u);
});

test("twins under NFC become one name (D13)", () => {
  assert.equal(canonicalName("e\u0301"), canonicalName("\u00e9"));
});

test("a path is absolute, splits into canonical names and joins back (D13)", () => {
  assert.deepEqual(splitPath("/"), []);
  assert.deepEqual(splitPath("/a/b/"), ["a", "b"]);
  for (const path of ["", "a", "./a"]) assert.throws(() => splitPath(path), badArgument);
  for (const path of ["//", "/a//b", "/../a", "/a/."]) assert.throws(() => splitPath(path), badName);
});

test("a path of 4096 bytes is taken and one of 4097 refused (D13)", () => {
  const longest = `/${"a/".repeat(2047)}a`;
  assert.equal(longest.length, 4096);
  assert.equal(splitPath(longest).length, 2048);
  assert.throws(() => splitPath(`${longest}a`), badArgument);
});

test("whatever is accepted is stable, holds no separator and joins back to itself (D13)", () => {
  fc.assert(
    fc.property(
      fc.array(fc.string({ unit: "binary", minLength: 1, maxLength: 40 }), { maxLength: 5 }),
      (names) => {
        const good = names.filter((name) => nameProblem(name) === undefined).map(canonicalName);
        for (const name of good) {
          assert.equal(canonicalName(name), name);
          assert.ok(Buffer.byteLength(name) <= 255 && !name.includes("/"));
        }
        assert.deepEqual(splitPath(joinPath(good)), good);
      },
    ),
  );
});

test("a username is a lower-cased e-mail address (D21)", () => {
  assert.equal(canonicalUsername("Alice@Example.COM"), "alice@example.com");
  for (const text of [
    "",
    "alice",
    "@b",
    "a@",
    "a b@c",
    "a@b@c",
    "a/b@c",
    "a:b@c",
    `${"a".repeat(250)}@example.com`,
  ]) {
    assert.throws(() => canonicalUsername(text), badArgument, text);
  }
});

test("a username of 254 characters is taken and one of 255 refused (D21)", () => {
  const domain = "@example.com";
  const longest = `${"a".repeat(USERNAME_MAX_LENGTH - domain.length)}${domain}`;
  assert.equal(canonicalUsername(longest).length, USERNAME_MAX_LENGTH);
  assert.throws(() => canonicalUsername(`a${longest}`), badArgument);
});

test("no username becomes another one by its letters: only upper and lower case of one letter are the same (D21)", () => {
  const by = new Map<string, string>();
  let accepted = 0;
  for (let code = 0x21; code <= 0x1ffff; code++) {
    if (code >= 0xd800 && code <= 0xdfff) continue;
    const letter = String.fromCodePoint(code);
    let username: string;
    try {
      username = canonicalUsername(`a${letter}b@example.com`);
    } catch {
      continue;
    }
    accepted++;
    assert.equal(canonicalUsername(username), username, `U+${code.toString(16)} is not stable`);
    const before = by.get(username);
    if (before !== undefined)
      assert.equal(before.toLowerCase(), letter.toLowerCase(), `U+${code.toString(16)}`);
    by.set(username, letter);
  }
  assert.ok(accepted > 50_000);
  // Kelvin, Angstrom and Ohm sign, dotted capital I, capital sharp s.
  for (const letter of ["\u212a", "\u212b", "\u2126", "\u0130", "\u1e9e"]) {
    assert.throws(() => canonicalUsername(`mi${letter}e@example.com`), badArgument);
  }
  assert.throws(() => canonicalUsername("mi\u0130e@example.com"), /U\+0130/, "the letter is named");
  assert.equal(canonicalUsername("Zoe\u0308@example.com"), "zo\u00eb@example.com");
  assert.equal(canonicalUsername("\u00c4rger@example.com"), "\u00e4rger@example.com");
});
