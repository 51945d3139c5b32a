// Patterns of silences: the same results as JavaScript's own expressions, and no text that takes long.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { RE2JS } from "re2js";
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

test("a pattern has at most 500 steps, what it repeats counted each time", () => {
  for (const source of [
    "a{100}".repeat(5),
    "a{500}",
    "[ab]{500}",
    "(?:ab){250}",
    "(?:ab){250,}",
    "(a){250}",
    "(?:(?:a{10}){10}){5}",
    "\\(a\\){100}\\[b",
    "[(){}]{100}",
    "\\x{2026}{500}",
    "\\x{1F600}",
  ]) {
    assert.equal(problemOf(source), undefined, source);
  }
  for (const source of [
    `${"a{100}".repeat(5)}a`,
    "a{501}",
    "\\x{2026}{501}",
    "a{2,501}",
    "(?:ab){251}",
    "(a){251}",
    "(?:(?:a{10}){10}){6}",
    `(${"a".repeat(200)}){1000}`,
    `(${"a".repeat(100)}[[:alpha:](]){1000}`,
    `(${"a".repeat(100)}[](]){1000}`,
    `(${"a".repeat(100)}\\Q(\\E){1000}`,
    `${"(".repeat(60)}a${")".repeat(60)}{1000}`,
  ]) {
    assert.match(problemOf(source) ?? "", /too much/, source);
  }
  assert.equal(compiled("a{100,}")("a".repeat(100)), true);
  assert.equal(compiled("a{100,}")("a".repeat(99)), false);
});

test("no pattern, whatever is in it, is compiled to more than 2,000 steps", () => {
  const piece = fc.constantFrom(
    ..."a(?:)[]{}^\\|*+,-Q:1".split(""),
    "{9",
    "{99}",
    "{1000}",
    "(?i)",
    "[[:alpha:]",
    "\\pL",
    "\\Q",
    "\\E",
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 60 }), (pieces) => {
      const source = pieces.join("");
      if (problemOf(source) === undefined) assert.ok(RE2JS.compile(source).programSize() <= 2_000, source);
    }),
    { numRuns: 2_000 },
  );
});

test("expressions on which backtracking takes years are answered at once", () => {
  const text = `${"a".repeat(2_000)}!`;
  for (const source of ["(a+)+", "(a|a)*", "(a|aa)+", "(.*)*(.*)*(.*)*x", "((a*)*)*b", "(a?){60}a{60}"]) {
    assert.equal(compiled(source)(text), false, source);
  }
  assert.equal(compiled(`${".*".repeat(120)}!`)(text), true);
});

test("what RE2 has not is refused with a reason", () => {
  for (const source of [
    "(?=a)",
    "(?<=a)b",
    "(a)\\1",
    "*a",
    "a**",
    "a{2}{3}",
    "a{3,2}",
    "(a",
    "a)",
    "[a",
    "[z-a]",
    "[a-\\d]",
    "a\\",
    "\\é",
  ]) {
    assert.match(problemOf(source) ?? "", /error parsing regexp/, source);
  }
  assert.equal(problemOf("a".repeat(SILENCE_VALUE_MAX_LENGTH)), undefined);
  assert.match(problemOf("a".repeat(SILENCE_VALUE_MAX_LENGTH + 1)) ?? "", /at most/);
});

test("what RE2 has beside JavaScript's own is understood", () => {
  assert.equal(compiled("(?i)Node-[a-z]")("nODE-X"), true);
  assert.equal(compiled("\\p{L}+")("é"), true);
  assert.equal(compiled("[\\D]")("7"), false);
  assert.equal(compiled("(?P<rack>r[0-9])-.*")("r1-n2"), true);
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
});

test("a class is what it is at each of its edges", () => {
  const edges = "/09:@AZ[^_`az{\t\r\u000e\b !".split("");
  for (const source of ["\\d", "\\D", "\\w", "\\W", "\\s", "\\S"]) {
    for (const text of [...edges, "\n"]) {
      assert.equal(compiled(source)(text), new RegExp(`^${source}$`, "u").test(text), `${source} on ${text}`);
    }
  }
});
