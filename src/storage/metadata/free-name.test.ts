// Tests of free names beside a namesake.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { NAME_MAX_BYTES } from "#base/limits.ts";
import { canonicalName } from "#base/names.ts";
import { freeName, numberedName } from "./free-name.ts";

test("the number stands before the extension, and a leading dot begins no extension", () => {
  assert.equal(numberedName("a.txt", 2), "a (2).txt");
  assert.equal(numberedName("a", 3), "a (3)");
  assert.equal(numberedName(".profile", 2), ".profile (2)");
  assert.equal(numberedName("archive.tar.gz", 2), "archive.tar (2).gz");
});

test("a free name is found in few look-ups, and it is free", () => {
  for (const count of [0, 1, 2, 3, 100, 12_345]) {
    const taken = new Set(Array.from({ length: count }, (_, index) => numberedName("a.txt", index + 2)));
    let lookUps = 0;
    const name = freeName("a.txt", (candidate) => {
      lookUps++;
      return taken.has(candidate);
    });
    assert.equal(name, numberedName("a.txt", count + 2));
    assert.ok(lookUps <= 2 * Math.log2(count + 2) + 3, `${lookUps} look-ups among ${count}`);
  }
});

test("a numbered name is itself a name, however long the old one was (D13)", () => {
  fc.assert(
    fc.property(
      fc.string({ unit: "grapheme", minLength: 1, maxLength: 300 }),
      fc.integer({ min: 2, max: 99_999 }),
      (text, number) => {
        let name: string;
        try {
          name = canonicalName(text);
        } catch {
          return;
        }
        const numbered = numberedName(name, number);
        assert.equal(canonicalName(numbered), numbered);
        assert.ok(Buffer.byteLength(numbered) <= NAME_MAX_BYTES);
        assert.ok(numbered.includes(` (${number})`));
      },
    ),
  );
});

test("an extension has at most 15 characters behind its dot; what is longer belongs to the name", () => {
  assert.equal(numberedName(`a.${"x".repeat(15)}`, 2), `a (2).${"x".repeat(15)}`);
  assert.equal(numberedName(`a.${"x".repeat(16)}`, 2), `a.${"x".repeat(16)} (2)`);
  assert.equal(numberedName(".hidden", 2), ".hidden (2)");
  assert.equal(numberedName("a.b.c", 3), "a.b (3).c");
  assert.equal(numberedName("a.", 3), "a (3).");
});

test("a name is cut between characters, and to no more than there is no room for (spec 8)", () => {
  const full = `${"x".repeat(NAME_MAX_BYTES - 4)}.txt`;
  assert.equal(numberedName(full, 2), `${"x".repeat(NAME_MAX_BYTES - 8)} (2).txt`);
  const fits = `${"x".repeat(NAME_MAX_BYTES - 8)}.txt`;
  assert.equal(numberedName(fits, 2), `${"x".repeat(NAME_MAX_BYTES - 8)} (2).txt`);
  const wide = "😀".repeat(63);
  assert.equal(numberedName(wide, 2), `${"😀".repeat(62)} (2)`);
  assert.equal(numberedName(wide, 10), `${"😀".repeat(62)} (10)`);
});
