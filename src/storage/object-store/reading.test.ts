// Tests reading: blocks checked against their rows, read-ahead, shares, and a cache that is never trusted.
import assert from "node:assert/strict";
import { readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, describe, type TestContext, test } from "node:test";
import { systemClock } from "#base/clock.ts";
import { isGroveError } from "#base/errors.ts";
import { BLOCK_BYTES } from "#base/limits.ts";
import { silentLogger } from "#base/log.ts";
import type { NewChunk } from "#storage/chunks/chunk-writer.ts";
import { OBJECT_STORES, withoutStore } from "#testing/object-stores.ts";
import { temporaryDirectory } from "#testing/temporary-folder.ts";
import { until } from "#testing/until.ts";
import { ChunkRows } from "./chunk-blocks.fixture.ts";
import { chunkKey } from "./chunk-blocks.ts";
import { ChunkReads } from "./chunk-reads.ts";
import { ReadCache } from "./read-cache.ts";
import {
  content,
  namesOf,
  PREFIX,
  type ProxiedStore,
  proxiedStore,
  putsOf,
  stored,
} from "./store.fixture.ts";

const CHUNK = 4_000_000;
const GB = 1_000_000_000;

for (const kind of OBJECT_STORES) {
  describe(`reading from ${kind}`, { skip: withoutStore(kind) }, () => {
    const ends: (() => Promise<void>)[] = [];
    after(async () => {
      for (const end of ends.toReversed()) await end();
    });
    let made: Promise<ProxiedStore> | undefined;
    const ready = async (): Promise<ProxiedStore> => {
      made ??= proxiedStore(kind, (end) => ends.push(end));
      const store = await made;
      store.proxy.fault = () => "none";
      store.proxy.seen.length = 0;
      return store;
    };
    const cacheIn = async (context: TestContext, folder: string, limitBytes = GB): Promise<ReadCache> => {
      const cache = await ReadCache.open({
        folder,
        clock: systemClock,
        logger: silentLogger,
        limitBytes,
        reserveBytes: 0n,
      });
      context.after(() => cache.close());
      return cache;
    };
    /** A file of some chunks, and readers of it. */
    const file = async (context: TestContext, byteCount: number, seed = 1) => {
      const store = await ready();
      const rows = new ChunkRows();
      const { bytes } = content(byteCount, seed);
      const chunks = await stored(putsOf(store, temporaryDirectory(context)), rows, namesOf(rows), bytes);
      store.proxy.seen.length = 0;
      const reads = (cache: ReadCache): ChunkReads =>
        new ChunkReads({
          requests: store.requests,
          prefix: PREFIX,
          cache,
          marker: { requireThere: () => Promise.resolve() },
        });
      return { store, chunks, bytes, reads };
    };
    const readAll = async (reads: ChunkReads, chunks: readonly NewChunk[]): Promise<Buffer> => {
      const reading = reads.open("ann@example.com");
      const pieces: Buffer[] = [];
      for (const [at, chunk] of chunks.entries()) {
        for (let index = 0; index * BLOCK_BYTES < chunk.length; index++) {
          pieces.push(await reading.readBlock(chunk, index, () => chunks.slice(at + 1)));
        }
      }
      reading.close();
      return Buffer.concat(pieces);
    };

    test("a file is read in order with one request a chunk, and again from the disk without any", async (context) => {
      const { store, chunks, bytes, reads } = await file(context, 3 * CHUNK + 300_000);
      const folder = temporaryDirectory(context);
      const cache = await cacheIn(context, folder);
      assert.ok((await readAll(reads(cache), chunks)).equals(bytes));
      assert.equal(store.proxy.seen.length, 4);
      await until(() => cache.size.bytes >= bytes.length, "the cache");
      assert.ok((await readAll(reads(cache), chunks)).equals(bytes));
      await cache.close();
      const next = await cacheIn(context, folder);
      assert.ok((await readAll(reads(next), chunks)).equals(bytes));
      assert.equal(store.proxy.seen.length, 4);
    });

    test("one block is one request for its range", async (context) => {
      const { store, chunks, bytes, reads } = await file(context, CHUNK);
      const cache = await cacheIn(context, temporaryDirectory(context));
      const reading = reads(cache).open("ann@example.com");
      const block = await reading.readBlock(chunks[0] as NewChunk, 7);
      assert.ok(block.equals(bytes.subarray(7 * BLOCK_BYTES, 8 * BLOCK_BYTES)));
      assert.equal(store.proxy.seen.length, 1);
      await until(() => cache.size.bytes > BLOCK_BYTES, "the cache");
      assert.ok(cache.size.bytes < 2 * BLOCK_BYTES);
    });

    test("without a cache reading goes on, two chunks ahead and no more", async (context) => {
      const { store, chunks, bytes, reads } = await file(context, 5 * CHUNK);
      const cache = await cacheIn(context, temporaryDirectory(context), 0);
      const all = reads(cache);
      const reading = all.open("ann@example.com");
      await reading.readBlock(chunks[0] as NewChunk, 0, () => chunks.slice(1));
      await until(() => store.proxy.under.now === 0 && store.proxy.seen.length === 3, "two chunks ahead");
      assert.equal(all.aheadBytes, 3 * CHUNK);
      reading.close();
      await until(() => all.aheadBytes === 0, "given up bytes");
      assert.ok((await readAll(all, chunks)).equals(bytes));
      await until(() => all.aheadBytes === 0, "given up bytes");
    });

    test("a cut or damaged answer is fetched again; damage in the store is CORRUPT, and never handed out", async (context) => {
      const { store, chunks, bytes, reads } = await file(context, CHUNK);
      for (const fault of ["cut-answer", "flipped-answer"] as const) {
        let spoiled = 0;
        store.proxy.fault = ({ method }) => (method === "GET" && spoiled++ === 0 ? fault : "none");
        const cache = await cacheIn(context, temporaryDirectory(context));
        assert.ok((await readAll(reads(cache), chunks)).equals(bytes));
      }
      store.proxy.fault = () => "none";
      const [chunk] = chunks;
      const other = content(CHUNK, 9);
      await store.client.put(chunkKey(PREFIX, chunk?.name ?? ""), other.body, other.crc, false);
      const cache = await cacheIn(context, temporaryDirectory(context));
      await assert.rejects(readAll(reads(cache), chunks), (error) => isGroveError(error, "CORRUPT"));
      await store.client.delete(chunkKey(PREFIX, chunk?.name ?? ""));
      await assert.rejects(readAll(reads(cache), chunks), (error) => isGroveError(error, "CORRUPT"));
      assert.equal(cache.size.entries, 0);
    });

    test("spoiled and exchanged files of the cache are fetched again", async (context) => {
      const { store, chunks, bytes, reads } = await file(context, 2 * CHUNK);
      const folder = temporaryDirectory(context);
      const first = await cacheIn(context, folder);
      await readAll(reads(first), chunks);
      await until(() => first.size.bytes >= bytes.length, "the cache");
      await first.close();
      const paths = readdirSync(folder).map((name) => join(folder, name));
      const [one = "", two = ""] = paths;
      assert.equal(paths.length, 2);
      renameSync(one, `${one}.away`);
      renameSync(two, one);
      renameSync(`${one}.away`, two);
      store.proxy.seen.length = 0;
      const exchanged = await cacheIn(context, folder);
      assert.ok((await readAll(reads(exchanged), chunks)).equals(bytes));
      assert.ok(store.proxy.seen.length >= 2);
      await until(() => exchanged.size.bytes >= bytes.length, "the cache");
      await exchanged.close();
      const spoiled = readFileSync(one);
      spoiled[5_000] = (spoiled[5_000] ?? 0) ^ 1;
      writeFileSync(one, spoiled);
      writeFileSync(join(folder, "foreign"), "no chunk");
      store.proxy.seen.length = 0;
      const last = await cacheIn(context, folder);
      assert.ok(!readdirSync(folder).includes("foreign"));
      assert.ok((await readAll(reads(last), chunks)).equals(bytes));
      assert.ok(store.proxy.seen.length >= 1);
    });

    test("the cache stays within its bytes, and gives way to the disk's reserve", async (context) => {
      const { chunks, bytes, reads } = await file(context, 4 * CHUNK);
      const folder = temporaryDirectory(context);
      const small = await cacheIn(context, folder, CHUNK + 1_000_000);
      assert.ok((await readAll(reads(small), chunks)).equals(bytes));
      await until(() => small.size.bytes > 0, "the cache");
      assert.ok(small.size.bytes <= CHUNK + 1_000_000);
      await small.close();
      const full = await ReadCache.open({
        folder,
        clock: systemClock,
        logger: silentLogger,
        limitBytes: GB,
        reserveBytes: BigInt(GB),
        freeBytes: () => Promise.resolve(BigInt(GB - 3 * CHUNK)),
      });
      context.after(() => full.close());
      assert.ok(full.size.bytes < 2 * BLOCK_BYTES);
      assert.equal(await full.write("a".repeat(34), 0, Buffer.alloc(BLOCK_BYTES)), false);
    });
  });
}
