// Tests of input that can be read once: what of it a further attempt gets.
import assert from "node:assert/strict";
import { test } from "node:test";
import { InputOnce } from "./input-once.ts";

async function* parts(...texts: readonly (string | Error)[]): AsyncGenerator<Buffer, void, undefined> {
  for (const text of texts) {
    if (text instanceof Error) throw text;
    yield Buffer.from(text);
  }
}

/** Reads so many parts, as an attempt that fails then does. */
async function read(input: InputOnce<Buffer>, most = Number.POSITIVE_INFINITY): Promise<string> {
  let text = "";
  let count = 0;
  for await (const part of input) {
    text += part.toString();
    if (++count >= most) break;
  }
  return text;
}

test("a further attempt reads all from the beginning while what was taken is kept", async () => {
  await using input = new InputOnce(parts("ab", "cd", "ef"), 4);
  assert.equal(await read(input, 1), "ab");
  assert.equal(await read(input, 2), "abcd");
  assert.equal(input.isConsumed, false);
  assert.equal(await read(input), "abcdef");
  assert.equal(input.isConsumed, true);
  await assert.rejects(read(input), /cannot be read again/);
});

test("input that ends within what is kept can be read again whole", async () => {
  await using input = new InputOnce(parts("ab"), 4);
  assert.equal(await read(input), "ab");
  assert.equal(await read(input), "ab");
  assert.equal(input.isConsumed, false);
});

test("input that has failed is no shorter input to a further attempt", async () => {
  await using input = new InputOnce(parts("ab", new Error("the client went")), 4);
  await assert.rejects(read(input), /the client went/);
  assert.equal(input.isConsumed, true);
  await assert.rejects(read(input), /cannot be read again/);
});

test("its end ends the source", async () => {
  let isEnded = false;
  const source = async function* (): AsyncGenerator<Buffer, void, undefined> {
    try {
      yield Buffer.from("ab");
    } finally {
      isEnded = true;
    }
  };
  const input = new InputOnce(source(), 4);
  await read(input, 1);
  assert.equal(isEnded, false);
  await input[Symbol.asyncDispose]();
  assert.equal(isEnded, true);
});
