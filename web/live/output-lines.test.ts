// Tests lines from pieces of output: the same for any split, without terminal escapes, up to the limit.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { OutputEntry } from "./actions.ts";
import { LINES_KEPT, OutputLines } from "./output-lines.ts";

const piece = (data: string, node = "n1", stream: OutputEntry["stream"] = "stdout"): OutputEntry => ({
  seq: 0,
  after_seq: 0,
  ts: 0,
  node_id: node,
  stream,
  data,
});
const textsOf = (...pieces: OutputEntry[]): string[] => {
  const output = new OutputLines();
  for (const each of pieces) output.append([each]);
  return output.lines.map(({ text }) => text);
};

test("wherever output is cut into pieces, its lines are the same", () => {
  const text = fc.string({ unit: fc.constantFrom("a", "b", "\n", "<") });
  fc.assert(
    fc.property(text, fc.array(fc.nat(), { maxLength: 6 }), (whole, cuts) => {
      const at = [0, ...cuts.map((cut) => cut % (whole.length + 1)).sort((a, b) => a - b), whole.length];
      const pieces = at.slice(1).map((end, index) => piece(whole.slice(at[index], end)));
      const expected = whole.split("\n");
      if (expected.at(-1) === "") expected.pop();
      assert.deepEqual(textsOf(...pieces), expected);
    }),
  );
});

test("lines of other nodes and streams that come in between do not tear a line apart", () => {
  const output = new OutputLines();
  output.append([piece("be"), piece("other\n", "n2"), piece("err\n", "n1", "stderr"), piece("gun\nend")]);
  assert.deepEqual(
    output.lines.map(({ node, stream, text }) => `${node} ${stream} ${text}`),
    ["n1 stdout begun", "n2 stdout other", "n1 stderr err", "n1 stdout end"],
  );
});

test("colours and movements of terminals are left out; a progress bar shows where it ended", () => {
  assert.deepEqual(textsOf(piece("\u001b[1;31mred\u001b[0m\n\u001b]0;title\u0007x\n")), ["red", "x"]);
  assert.deepEqual(textsOf(piece("10 %\r50 %"), piece("\r100 %\r\n")), ["100 %"]);
});

test("of more lines than are held the oldest go, and a line that is still open goes on", () => {
  const output = new OutputLines();
  output.append([piece(`${"x\n".repeat(LINES_KEPT)}op`)]);
  assert.deepEqual([output.lines.length, output.dropped], [LINES_KEPT, 1]);
  output.append([piece("en\n")]);
  assert.deepEqual([output.lines.at(-1)?.text, output.lines.length], ["open", LINES_KEPT]);
});
