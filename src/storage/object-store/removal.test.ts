// Tests what removes objects of a real store: dropped chunks, sweeps, the marker, and the comparison with rows.
import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { silentLogger } from "#base/log.ts";
import { systemRandom } from "#base/random.ts";
import { keepsFirst, OBJECT_STORES, withoutStore } from "#testing/object-stores.ts";
import { temporaryDirectory } from "#testing/temporary-folder.ts";
import { sweepBlocks } from "./block-sweeps.ts";
import { checkBucket } from "./bucket-check.ts";
import { type BucketDifference, compareBucket } from "./bucket-list.ts";
import { ChunkRows } from "./chunk-blocks.fixture.ts";
import { chunkKey } from "./chunk-blocks.ts";
import { RECOVERY_WINDOW_MS, type RemovalDeps, removeDropped } from "./dropped-chunks.ts";
import {
  content,
  namesOf,
  PREFIX,
  type ProxiedStore,
  proxiedStore,
  putsOf,
  stored,
} from "./store.fixture.ts";
import { StoreMarker } from "./store-marker.ts";

const HOUR_MS = 3_600_000;
const NEVER = new AbortController().signal;

for (const kind of OBJECT_STORES) {
  describe(`removal from ${kind}`, { skip: withoutStore(kind) }, () => {
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
    const removalOf = async ({ requests }: ProxiedStore, clock: ManualClock): Promise<RemovalDeps> => {
      const marker = new StoreMarker(requests, PREFIX);
      await marker.claim("incarnation-1");
      return {
        requests,
        prefix: PREFIX,
        marker,
        incarnation: "incarnation-1",
        clock,
        logger: silentLogger,
        recoveryWindowMs: RECOVERY_WINDOW_MS,
      };
    };
    const differences = async ({ requests }: ProxiedStore, rows: ChunkRows): Promise<BucketDifference[]> => {
      const found: BucketDifference[] = [];
      for await (const each of compareBucket(requests, PREFIX, rows)) found.push(each);
      return found;
    };

    test("a bucket is tried before use", async () => {
      const { requests } = await ready();
      assert.deepEqual(await checkBucket(requests, PREFIX, systemRandom), {
        keepsFirst: keepsFirst(kind),
        checksBytes: true,
      });
      assert.deepEqual((await requests.list(`${PREFIX}probe/`, "")).objects, []);
    });

    test("dropped chunks stay for the window of recovery, then go by name; the bucket is not listed", async (context) => {
      const store = await ready();
      const rows = new ChunkRows();
      const clock = new ManualClock();
      const removal = await removalOf(store, clock);
      const puts = putsOf(store, temporaryDirectory(context));
      const chunks = await stored(puts, rows, namesOf(rows), content(4_100_000).bytes);
      const [first, second] = chunks.map(({ name }) => name);
      rows.dropChunk(first ?? "", clock.wallMs());
      clock.advance(RECOVERY_WINDOW_MS - 1);
      assert.deepEqual(await removeDropped({ ...removal, dropped: rows }, NEVER), { removed: 0, kept: 0 });
      clock.advance(2);
      store.proxy.seen.length = 0;
      assert.deepEqual(await removeDropped({ ...removal, dropped: rows }, NEVER), { removed: 1, kept: 0 });
      assert.ok(store.proxy.seen.every((request) => !request.includes("list-type")));
      assert.equal(await store.requests.headOf(chunkKey(PREFIX, first ?? "")), undefined);
      assert.notEqual(await store.requests.headOf(chunkKey(PREFIX, second ?? "")), undefined);
      assert.deepEqual(rows.chunks, [second]);
      await assert.rejects(
        removeDropped({ ...removal, dropped: rows, recoveryWindowMs: HOUR_MS - 1 }, NEVER),
        /an hour/,
      );
    });

    test("a copied database removes nothing, neither dropped chunks nor those of ended epochs", async (context) => {
      const store = await ready();
      const rows = new ChunkRows();
      const clock = new ManualClock();
      const copy = { ...(await removalOf(store, clock)), incarnation: "incarnation-2" };
      const puts = putsOf(store, temporaryDirectory(context));
      const [chunk] = await stored(puts, rows, namesOf(rows), content(80_000).bytes);
      rows.dropChunk(chunk?.name ?? "", clock.wallMs());
      rows.endEpoch(1, clock.wallMs());
      clock.advance(30 * 24 * HOUR_MS);
      await assert.rejects(removeDropped({ ...copy, dropped: rows }, NEVER), /names another database/);
      await assert.rejects(
        sweepBlocks({ ...copy, blocks: rows, places: new Map() }, NEVER),
        /names another database/,
      );
      assert.notEqual(await store.requests.headOf(chunkKey(PREFIX, chunk?.name ?? "")), undefined);
      assert.equal(await copy.marker.claim("incarnation-2"), "incarnation-1");
      await copy.marker.replace("incarnation-2");
      assert.equal((await removeDropped({ ...copy, dropped: rows }, NEVER)).removed, 1);
      await copy.marker.replace("incarnation-1");
    });

    test("remains of an ended epoch go after an hour, late ones after the window, and no chunk with a row", async (context) => {
      const store = await ready();
      const rows = new ChunkRows();
      const clock = new ManualClock();
      const removal = { ...(await removalOf(store, clock)), blocks: rows, places: new Map() };
      const puts = putsOf(store, temporaryDirectory(context));
      const names = namesOf(rows, 5);
      const kept = await stored(puts, rows, names, content(90_000).bytes);
      const late = { name: await names.take(), ...content(1_000, 3) };
      const orphan = { name: await names.take(), ...content(1_000, 2) };
      await store.requests.putNew(chunkKey(PREFIX, orphan.name), orphan.body, orphan.crc);
      assert.equal((await sweepBlocks(removal, NEVER)).removed, 0);
      rows.endEpoch(5, clock.wallMs());
      assert.equal((await sweepBlocks(removal, NEVER)).removed, 0);
      clock.advance(HOUR_MS + 1);
      assert.equal((await sweepBlocks(removal, NEVER)).removed, 255);
      assert.equal(await store.requests.headOf(chunkKey(PREFIX, orphan.name)), undefined);
      // A request of the holder that was cut off arrives only now.
      await store.requests.putNew(chunkKey(PREFIX, late.name), late.body, late.crc);
      assert.equal((await sweepBlocks(removal, NEVER)).removed, 0);
      assert.equal(rows.blocks.length, 1);
      clock.advance(RECOVERY_WINDOW_MS);
      await sweepBlocks(removal, NEVER);
      assert.equal(await store.requests.headOf(chunkKey(PREFIX, late.name)), undefined);
      assert.deepEqual(rows.blocks, []);
      assert.notEqual(await store.requests.headOf(chunkKey(PREFIX, kept[0]?.name ?? "")), undefined);
      store.proxy.seen.length = 0;
    });

    test("the comparison names orphans, missing chunks, wrong lengths and foreign objects", async (context) => {
      const store = await ready();
      const rows = new ChunkRows();
      const clock = new ManualClock();
      await removalOf(store, clock);
      const before = await differences(store, rows);
      const puts = putsOf(store, temporaryDirectory(context));
      const names = namesOf(rows);
      const [first] = await stored(puts, rows, names, content(90_000).bytes);
      const { body, crc } = content(500);
      await store.requests.putNew(chunkKey(PREFIX, await names.take()), body, crc);
      const news = async (): Promise<BucketDifference[]> => {
        const known = new Set(before.map(({ name }) => name));
        return (await differences(store, rows)).filter(({ name }) => !known.has(name));
      };
      assert.deepEqual(await news(), [], "an open block explains its objects");
      const stray = "0".repeat(34);
      await store.requests.putNew(chunkKey(PREFIX, stray), body, crc);
      await store.requests.putNew(`${PREFIX}chunks/foreign`, body, crc);
      const absent = "f".repeat(34);
      rows.commit(absent, 10);
      await store.client.put(chunkKey(PREFIX, first?.name ?? ""), body, crc, false);
      const found = await news();
      assert.deepEqual(
        found.toSorted((a, b) => a.kind.localeCompare(b.kind)),
        [
          { kind: "foreign", name: `${PREFIX}chunks/foreign` },
          { kind: "length", name: first?.name },
          { kind: "missing", name: absent },
          { kind: "orphan", name: stray },
        ],
      );
    });
  });
}
