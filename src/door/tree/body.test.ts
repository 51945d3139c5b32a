// Tests of bodies in blocks: their bytes, and how many Buffers a block of small parts has.
import assert from "node:assert/strict";
import { test } from "node:test";
import { BLOCK_BYTES } from "#base/limits.ts";
import { blocksOf } from "./body.ts";

async function* inParts(bytes: Buffer, size: number): AsyncGenerator<Uint8Array, void, undefined> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

for (const size of [1, 1_000, 1_024, 65_536, BLOCK_BYTES + 1]) {
  test(`a body in parts of ${size} comes in whole blocks of few Buffers`, async () => {
    const body = Buffer.from(Array.from({ length: BLOCK_BYTES + 5_000 }, (_, at) => at % 251));
    const blocks: (readonly Buffer[])[] = [];
    for await (const block of blocksOf(inParts(body, size))) blocks.push(block);
    assert.deepEqual(
      blocks.map((block) => block.reduce((sum, { length }) => sum + length, 0)),
      [BLOCK_BYTES, 5_000],
    );
    assert.ok(Buffer.concat(blocks.flat()).equals(body));
    assert.ok(blocks.every(({ length }) => length <= 1_100));
  });
}
