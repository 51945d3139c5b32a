// Tests of how the shell reads a line.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { quoteWord, splitLine, wordsOf } from "./word-splitter.ts";

test("quotes and backslashes keep words together, a # begins a comment", () => {
  assert.deepEqual(wordsOf(`put "my file.txt" it\\ is 'a "b"' "c\\"d"`), [
    "put",
    "my file.txt",
    "it is",
    'a "b"',
    'c"d',
  ]);
  assert.deepEqual(wordsOf("ls a#b # all of it"), ["ls", "a#b"]);
  assert.deepEqual(wordsOf("  "), []);
  assert.deepEqual(wordsOf("cat ''"), ["cat", ""]);
  assert.throws(() => wordsOf("cat 'a"), /not closed/);
});

test("it is known whether the end is inside a word, for completion", () => {
  assert.deepEqual(splitLine("ls do"), { words: ["ls", "do"], openQuote: "", isInsideWord: true });
  assert.equal(splitLine("ls ").isInsideWord, false);
  assert.equal(splitLine("ls 'a b").openQuote, "'");
});

test("a quoted word is read as the one word that it was", () => {
  fc.assert(
    fc.property(fc.string({ minLength: 1 }), (word) => {
      assert.deepEqual(wordsOf(quoteWord(word)), [word]);
    }),
  );
});
