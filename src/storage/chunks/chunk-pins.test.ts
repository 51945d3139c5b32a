// Tests that chunks stay pinned as long as a list with them is read.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type ChunkList, ChunkPins, chunkIdAt } from "./chunk-pins.ts";

function list(...chunkIds: number[]): ChunkList {
  return { positions: Float64Array.from(chunkIds.keys()), chunkIds: Float64Array.from(chunkIds) };
}

test("a chunk is released with the last list that holds it, and told of once", () => {
  const pins = new ChunkPins();
  const released: number[] = [];
  pins.onReleased((ids) => released.push(...ids));
  const first = pins.pin("a", () => list(1, 2));
  const again = pins.pin("a", () => assert.fail("loaded twice"));
  const other = pins.pin("b", () => list(2, 3));
  pins.unpin(first);
  assert.equal(pins.isPinned(1), true);
  pins.unpin(again);
  assert.deepEqual(
    [1, 2, 3].map((id) => pins.isPinned(id)),
    [false, true, true],
  );
  pins.unpin(other);
  assert.deepEqual(
    released.toSorted((a, b) => a - b),
    [1, 2, 3],
  );
});

test("a chunk is found by its position, before, between and behind holes", () => {
  const sparse: ChunkList = {
    positions: Float64Array.of(0, 1, 5, 9),
    chunkIds: Float64Array.of(10, 11, 15, 19),
  };
  const found = Array.from({ length: 12 }, (_, position) => chunkIdAt(sparse, position));
  const expected = Array.from({ length: 12 }, (_, position) =>
    [0, 1, 5, 9].includes(position) ? 10 + position : undefined,
  );
  assert.deepEqual(found, expected);
  const late: ChunkList = { positions: Float64Array.of(3, 7), chunkIds: Float64Array.of(13, 17) };
  assert.deepEqual(
    [2, 3, 4, 7, 8].map((position) => chunkIdAt(late, position)),
    [undefined, 13, undefined, 17, undefined],
  );
  assert.equal(chunkIdAt({ positions: new Float64Array(0), chunkIds: new Float64Array(0) }, 0), undefined);
});

test("a list that nobody reads any more is loaded anew, and its chunks are pinned again", () => {
  const pins = new ChunkPins();
  pins.unpin(pins.pin("a", () => list(1)));
  assert.equal(pins.isPinned(1), false);
  const again = pins.pin("a", () => list(2));
  assert.deepEqual([...again.chunkIds], [2]);
  assert.deepEqual([pins.isPinned(1), pins.isPinned(2)], [false, true]);
  pins.unpin(again);
});

test("a chunk that stands twice in a list is released once its list is", () => {
  const pins = new ChunkPins();
  const released: number[] = [];
  pins.onReleased((ids) => released.push(...ids));
  pins.unpin(pins.pin("a", () => list(5, 5)));
  assert.deepEqual([released, pins.isPinned(5)], [[5], false]);
});
