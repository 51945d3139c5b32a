// Tests which blocks the read cache keeps: the most recently used within its bytes, over restarts as well.
import assert from "node:assert/strict";
import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { BLOCK_BYTES } from "#base/limits.ts";
import { silentLogger } from "#base/log.ts";
import { temporaryDirectory } from "#testing/temporary-folder.ts";
import { ReadCache } from "./read-cache.ts";

const [A, B, C, D] = ["a", "b", "c", "d"].map((digit) => digit.repeat(34)) as [
  string,
  string,
  string,
  string,
];
/** Room for three blocks of different chunks, with their headers and some more. */
const THREE = 3 * BLOCK_BYTES + 50_000;

const openIn = async (context: TestContext, folder: string, clock: ManualClock): Promise<ReadCache> => {
  const cache = await ReadCache.open({
    folder,
    clock,
    logger: silentLogger,
    limitBytes: THREE,
    reserveBytes: 0n,
  });
  context.after(() => cache.close());
  return cache;
};
const block = (fill: number): Buffer => Buffer.alloc(BLOCK_BYTES, fill);

test("the block that was used least recently gives way", async (context) => {
  const folder = temporaryDirectory(context);
  const clock = new ManualClock();
  const cache = await openIn(context, folder, clock);
  for (const [fill, name] of [A, B, C].entries()) assert.equal(await cache.write(name, 3, block(fill)), true);
  assert.ok((await cache.read(A, 3, BLOCK_BYTES))?.equals(block(0)));
  assert.equal(await cache.read(A, 2, BLOCK_BYTES), undefined);
  assert.equal(await cache.write(D, 0, block(9)), true);
  assert.deepEqual(
    [A, B, C, D].map((name) => cache.mayHave(name, name === D ? 0 : 3)),
    [true, false, true, true],
  );
  assert.deepEqual(readdirSync(folder).toSorted(), [A, C, D]);
  await cache.close();
  const next = await openIn(context, folder, clock);
  assert.ok((await next.read(C, 3, BLOCK_BYTES))?.equals(block(2)));
  assert.equal(await next.read(C, 0, BLOCK_BYTES), undefined, "a hole is not there");
  assert.equal(next.size.entries, 3);
});

test("a block of several writers is there once, and a dropped chunk is gone", async (context) => {
  const folder = temporaryDirectory(context);
  const cache = await openIn(context, folder, new ManualClock());
  const results = await Promise.all([cache.write(A, 0, block(1)), cache.write(A, 0, block(1))]);
  assert.deepEqual(results, [true, true]);
  assert.ok(cache.size.bytes < 2 * BLOCK_BYTES);
  await cache.drop(A);
  assert.deepEqual([cache.size, readdirSync(folder)], [{ bytes: 0, entries: 0 }, []]);
  assert.equal(await cache.read(A, 0, BLOCK_BYTES), undefined);
});

test("writes beside each other stay within the bytes together", async (context) => {
  const cache = await openIn(context, temporaryDirectory(context), new ManualClock());
  const names = Array.from({ length: 12 }, (_, n) => n.toString(16).repeat(34));
  const kept = await Promise.all(names.map((name, n) => cache.write(name, 0, block(n))));
  assert.ok(cache.size.bytes <= THREE, `${cache.size.bytes} bytes`);
  assert.ok(kept.includes(true));
});

test("a cache that ends writes nothing more", async (context) => {
  const folder = temporaryDirectory(context);
  const cache = await openIn(context, folder, new ManualClock());
  const write = cache.write(A, 0, block(1));
  await cache.close();
  assert.equal(await write, false);
  assert.deepEqual(readdirSync(folder), []);
});

test("a folder that is removed in use is made again, and without its parent nothing is cached", async (context) => {
  const parent = join(temporaryDirectory(context), "parent");
  const folder = join(parent, "cache");
  const clock = new ManualClock();
  const cache = await openIn(context, folder, clock);
  assert.equal(await cache.write(A, 0, block(1)), true);
  rmSync(folder, { recursive: true });
  clock.advance(1_000);
  assert.equal(await cache.write(B, 0, block(2)), true);
  assert.ok((await cache.read(B, 0, BLOCK_BYTES))?.equals(block(2)));
  rmSync(parent, { recursive: true });
  clock.advance(1_000);
  assert.equal(await cache.write(C, 0, block(3)), false);
});
