// Tests that secrets are masked at any split of a stream.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { masked as maskedValue, OUTPUT_SECRET_MIN_BYTES, OutputMask } from "./output-mask.ts";

function masked(secrets: readonly string[], pieces: readonly string[]): string {
  const mask = new OutputMask(secrets);
  const shown = pieces.map((piece) => mask.push(Buffer.from(piece)));
  return Buffer.concat([...shown, mask.end()]).toString();
}

test("every cut of a stream shows what the whole would, and no secret is in it (D7, C-13)", () => {
  const word = fc.constantFrom("a", "b", "ab", "abab", "aabb", "bbaa-1", " ", "\n", "é");
  fc.assert(
    fc.property(fc.array(word, { maxLength: 40 }), fc.array(fc.nat({ max: 30 })), (words, cuts) => {
      const bytes = Buffer.from(words.join(""));
      const mask = new OutputMask(["aabb", "bbaa-1"]);
      const points = [...cuts.filter((cut) => cut < bytes.length), 0, bytes.length].toSorted((a, b) => a - b);
      const shown = points.slice(1).map((end, i) => mask.push(bytes.subarray(points[i], end)));
      const text = Buffer.concat([...shown, mask.end()]).toString();
      assert.equal(text, masked(["aabb", "bbaa-1"], [words.join("")]));
      assert.doesNotMatch(text, /aabb|bbaa-1/);
    }),
  );
});

test("of two secrets at one place the longer is masked, also where its end comes later", () => {
  assert.equal(
    masked(["hunter", "hunter2-long"], ["x hunter", "2-long y hunter z"]),
    "x [redacted] y [redacted] z",
  );
});

test("what only begins like a secret is shown in the end; secrets that are too short are not looked for", () => {
  assert.equal(masked(["hunter2"], ["a hunt"]), "a hunt");
  const short = "x".repeat(OUTPUT_SECRET_MIN_BYTES - 1);
  assert.equal(masked([short], [short]), short);
  assert.equal(masked([`${short}x`], [`${short}x`]), "[redacted]");
});

test("a record is masked in every text of it, and is otherwise the same (C-13)", () => {
  const record = {
    argv: ["sh", "-c", "echo hunter2!"],
    request: { command: "echo hunter2!", lines: 3, dry: false },
    at: null,
  };
  assert.deepEqual(maskedValue(record, ["hunter2!"]), {
    argv: ["sh", "-c", "echo [redacted]"],
    request: { command: "echo [redacted]", lines: 3, dry: false },
    at: null,
  });
});
