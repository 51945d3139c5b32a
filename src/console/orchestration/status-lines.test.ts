// Tests that the script's status lines are separated from program output at any split of a stream.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { STATUS_LINE_MAX_BYTES, StatusLines } from "./status-lines.ts";

const SECRET = "0123456789abcdef0123456789abcdef";

interface Heard {
  text: string;
  readonly lines: string[];
}

function read(pieces: readonly Buffer[]): Heard {
  const heard: Heard = { text: "", lines: [] };
  const chunks: Buffer[] = [];
  const words = new StatusLines(SECRET, {
    onBytes: (bytes) => chunks.push(Buffer.from(bytes)),
    onWords: (line) => heard.lines.push(line.join(" ")),
  });
  for (const piece of pieces) words.push(piece);
  words.end();
  heard.text = Buffer.concat(chunks).toString();
  return heard;
}

test("every cut of a stream gives the same output and the same lines", () => {
  const part = fc.constantFrom(
    "a",
    "\n",
    "\u001e",
    `\u001e${SECRET.slice(0, 9)}`,
    `\u001e${SECRET} end 1 2\n`,
    SECRET,
  );
  fc.assert(
    fc.property(fc.array(part, { maxLength: 20 }), fc.array(fc.nat({ max: 200 })), (parts, cuts) => {
      const bytes = Buffer.from(parts.join(""));
      const points = [...cuts.filter((cut) => cut < bytes.length), 0, bytes.length].toSorted((a, b) => a - b);
      const pieces = points.slice(1).map((end, i) => bytes.subarray(points[i], end));
      const own = `\u001e${SECRET} end 1 2\n`;
      assert.deepEqual(read(pieces), {
        text: parts.filter((one) => one !== own).join(""),
        lines: parts.filter((one) => one === own).map(() => "end 1 2"),
      });
    }),
  );
});

test("a line without an end is given up at its limit: nothing is held for ever", () => {
  const head = `\u001e${SECRET} `;
  const held = read([
    Buffer.from(`${head}${"x".repeat(STATUS_LINE_MAX_BYTES - head.length)}`),
    Buffer.from("\n"),
  ]);
  assert.equal(held.lines.length, 1);
  const long = read([Buffer.from(`${head}${"x".repeat(STATUS_LINE_MAX_BYTES)}`), Buffer.from("more\n")]);
  assert.deepEqual(long, { text: "more\n", lines: [] });
});
