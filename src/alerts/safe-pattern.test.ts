// Patterns of silences: the same answers as JavaScript's own expressions, and no text that takes long.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { SILENCE_VALUE_MAX_LENGTH } from "#base/limits.ts";
import { compilePattern, type SafePattern } from "./safe-pattern.ts";

const compiled = (source: string): SafePattern => {
  const pattern = compilePattern(source);
  if (typeof pattern !== "function") throw new Error(`${source}: ${pattern.problem}`);
  return pattern;
};
const problemOf = (source: string): string | undefined => {
  const pattern = compilePattern(source);
  return typeof pattern === "function" ? undefined : pattern.problem;
};

const letter = fc.constantFrom("a", "b", "c", "-", "1", "é", "😀");
const leaf = fc.oneof(letter, fc.constantFrom(".", "[ab]", "[^a]", "[a-c1]", "\\d", "\\w", "\\.", "[\\d-]"));
const pattern = fc.letrec<{ node: string }>((tie) => ({
  node: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    leaf,
    fc.tuple(tie("node"), tie("node")).map(([left, right]) => `${left}${right}`),
    fc.tuple(tie("node"), tie("node")).map(([left, right]) => `(?:${left}|${right})`),
    fc
      .tuple(tie("node"), fc.constantFrom("*", "+", "?", "{2}", "{1,3}", "{0,}", "*?"))
      .map(([inner, repeat]) => `(${inner})${repeat}`),
  ),
})).node;

test("a pattern of the subset answers as JavaScript's own expression does, on the whole text", () => {
  fc.assert(
    fc.property(pattern, fc.array(letter, { maxLength: 8 }), (source, letters) => {
      fc.pre(source.length <= SILENCE_VALUE_MAX_LENGTH && !/too much/.test(problemOf(source) ?? ""));
      const text = letters.join("");
      assert.equal(
        compiled(source)(text),
        new RegExp(`^(?:${source})$`, "u").test(text),
        `${source} on ${text}`,
      );
    }),
    { numRuns: 2_000 },
  );
});

test("a pattern matches the whole text, with or without anchors of its own", () => {
  for (const source of ["node-[12]", "^node-[12]$"]) {
    assert.equal(compiled(source)("node-1"), true);
    assert.equal(compiled(source)("node-12"), false);
    assert.equal(compiled(source)("a-node-1"), false);
  }
  assert.equal(compiled("a\\$")("a$"), true);
  assert.equal(compiled("")(""), true);
  assert.equal(compiled("")("a"), false);
  assert.equal(compiled("[]a]+")("a]"), true);
});

test("a group may stand for itself or say that it captures nothing, and a repetition may be lazy", () => {
  for (const source of ["(a|b)+", "(?:a|b)+", "(a|b)+?", "(?:a|b){1,}?"]) {
    assert.equal(compiled(source)("abba"), true, source);
    assert.equal(compiled(source)(""), false, source);
  }
});

test("a repetition counts up to 100, its smaller number first", () => {
  for (const source of ["a{0}", "a{100}", "a{100,}", "a{0,100}", "a{100,100}"])
    assert.equal(problemOf(source), undefined, source);
  for (const source of ["a{101}", "a{101,}", "a{0,101}", "a{100,99}", "a{,5}", "a{1000}"])
    assert.notEqual(problemOf(source), undefined, source);
  assert.equal(compiled("a{100,}")("a".repeat(100)), true);
  assert.equal(compiled("a{100,}")("a".repeat(99)), false);
});

test("a pattern compiles to at most 500 steps, its end included", () => {
  const most = "a{100}".repeat(4);
  assert.equal(problemOf(`${most}a{99}`), undefined);
  assert.match(problemOf(`${most}a{100}`) ?? "", /too much/);
});

test("expressions on which backtracking takes years are answered at once", () => {
  const text = `${"a".repeat(2_000)}!`;
  for (const source of ["(a+)+", "(a|a)*", "(a|aa)+", "(.*)*(.*)*(.*)*x", "((a*)*)*b", "(a?){60}a{60}"]) {
    assert.equal(compiled(source)(text), false, source);
  }
  assert.equal(compiled(`${".*".repeat(120)}!`)(text), true);
});

test("what is not of the subset is refused with a reason", () => {
  for (const source of [
    "(?=a)",
    "(?i)a",
    "(?<n>a)",
    "(a)\\1",
    "\\bword",
    "\\p{L}",
    "*a",
    "a**",
    "a{2}{3}",
    "a{3,2}",
    "a{101}",
    "a{x}",
    "a{",
    "(a",
    "a)",
    "[a",
    "[z-a]",
    "[\\D]",
    "a\\",
    "a^b",
    "a$b",
    "]",
  ]) {
    assert.notEqual(problemOf(source), undefined, source);
  }
  assert.match(problemOf("((a{100}){100}){100}") ?? "", /too much/);
  assert.equal(problemOf("a".repeat(SILENCE_VALUE_MAX_LENGTH)), undefined);
  assert.match(problemOf("a".repeat(SILENCE_VALUE_MAX_LENGTH + 1)) ?? "", /at most/);
});

test("inside [ ] an escape stands for its character or its class, a dash at an end for itself", () => {
  for (const [source, yes, no] of [
    ["[\\.x]", [".", "x"], ["a", "\\"]],
    ["[\\w-]", ["a", "_", "-"], [".", " "]],
    ["[\\]a]", ["]", "a"], ["[", "\\"]],
    ["[\\--0]", ["-", ".", "0"], ["1", ","]],
    ["[a\\d]", ["a", "7"], ["b"]],
    ["[^\\s]", ["a"], [" ", "\t"]],
    ["[]a]", ["]", "a"], ["b"]],
    ["[a-]", ["a", "-"], ["b", "]"]],
    ["[+-]", ["+", "-"], [",", "]"]],
    ["[a-a]", ["a"], ["b", "-"]],
  ] as const) {
    for (const text of yes) assert.equal(compiled(source)(text), true, `${source} on ${text}`);
    for (const text of no) assert.equal(compiled(source)(text), false, `${source} on ${text}`);
  }
  for (const source of ["[\\D]", "[b-a]", "[a-\\d]", "[a", "[\\"]) {
    assert.ok(problemOf(source) !== undefined, source);
  }
});

test("a class is what it is at each of its edges", () => {
  const edges = "/09:@AZ[^_`az{\t\r\u000e\b !".split("");
  for (const source of ["\\d", "\\D", "\\w", "\\W", "\\s", "\\S"]) {
    for (const text of [...edges, "\n"]) {
      assert.equal(compiled(source)(text), new RegExp(`^${source}$`, "u").test(text), `${source} on ${text}`);
    }
  }
});
