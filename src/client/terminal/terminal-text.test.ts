// Tests that text from elsewhere cannot drive or deceive a terminal (failure B-09).
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { holdsTerminalControls, terminalJson, terminalText } from "./terminal-text.ts";

test("controls, escapes, turned writing and what shows nothing become visible escapes (B-09)", () => {
  assert.equal(terminalText("a\u001b[2Jb"), "a\\x1b[2Jb");
  assert.equal(terminalText("exe.\u202etxt"), "exe.\\u{202e}txt");
  assert.equal(terminalText("a\u0085\u009bb\u007f"), "a\\x85\\x9bb\\x7f");
  assert.equal(terminalText("a\nb\rc\td"), "a\\x0ab\\x0dc\\x09d");
  assert.equal(
    terminalText(`\u200b\ufeff\u2066${String.fromCharCode(0xd800)}\u{e0041}`),
    "\\u{200b}\\u{feff}\\u{2066}\\u{d800}\\u{e0041}",
  );
  assert.equal(terminalText("Grüße, 世界 👍 ok"), "Grüße, 世界 👍 ok");
});

test("nothing that is left drives a terminal, whatever came (B-09)", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), (text) => {
      assert.doesNotMatch(terminalText(text), /[\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/u);
    }),
  );
});

test("JSON stays the same JSON", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), (name) => {
      const json = terminalJson(JSON.stringify({ name }, null, 2));
      assert.deepEqual(JSON.parse(json), { name });
      assert.doesNotMatch(json, /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e]/u);
    }),
  );
});

test("cat tells text from what a terminal would obey", () => {
  assert.equal(holdsTerminalControls(Buffer.from("line\n\tindented\r\n")), false);
  assert.equal(holdsTerminalControls(Buffer.from("Grüße 世界 👍 àÀ")), false);
  assert.equal(holdsTerminalControls(Buffer.from("\u001b[31mred")), true);
  assert.equal(holdsTerminalControls(Buffer.from("\u009b31m")), true);
  assert.equal(holdsTerminalControls(Buffer.from([0x41, 0x9b, 0x41])), true);
  assert.equal(holdsTerminalControls(Buffer.from("bell\u0007")), true);
  assert.equal(holdsTerminalControls(Buffer.from([0x7f])), true);
  const [first = 0, ...rest] = Buffer.from("ў");
  assert.equal(holdsTerminalControls(Buffer.from(rest), first), false, "a letter in two slices");
  assert.equal(holdsTerminalControls(Buffer.from([0x9b]), 0xc2), true);
});
