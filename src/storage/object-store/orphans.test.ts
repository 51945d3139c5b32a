// Tests that a holder which is cut off amid faults leaves nothing behind the sweeps, and loses no committed chunk.
import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { silentLogger } from "#base/log.ts";
import { OBJECT_STORES, withoutStore } from "#testing/object-stores.ts";
import { temporaryDirectory } from "#testing/temporary-folder.ts";
import { until } from "#testing/until.ts";
import { FIRST_SWEEP_AFTER_MS, sweepBlocks } from "./block-sweeps.ts";
import { type BucketDifference, compareBucket } from "./bucket-list.ts";
import { ChunkRows } from "./chunk-blocks.fixture.ts";
import { chunkKey } from "./chunk-blocks.ts";
import { RECOVERY_WINDOW_MS } from "./dropped-chunks.ts";
import { content, namesOf, PREFIX, proxiedStore, putsOf, stored } from "./store.fixture.ts";
import { StoreMarker } from "./store-marker.ts";
import type { Fault } from "./store-proxy.fixture.ts";

const UPLOADS = 8;
const FAULTS: readonly Fault[] = [
  "none",
  "none",
  "none",
  "slow-down",
  "lost-answer",
  "cut-request",
  "duplicate",
];

for (const kind of OBJECT_STORES) {
  describe(`holders of ${kind} that are cut off`, { skip: withoutStore(kind) }, () => {
    const ends: (() => Promise<void>)[] = [];
    after(async () => {
      for (const end of ends.toReversed()) await end();
    });

    test("no object without a row stays, and no row without an object", async (context) => {
      const store = await proxiedStore(kind, (end) => ends.push(end));
      const rows = new ChunkRows();
      const clock = new ManualClock();
      const marker = new StoreMarker(store.requests, PREFIX);
      await marker.claim("one");
      let state = Math.floor(Math.random() * 2 ** 31);
      context.diagnostic(`seed ${state}`);
      const chance = (below: number): number => {
        state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
        return (state >>> 8) % below;
      };
      const committed = new Map<string, Buffer>();
      for (let epoch = 1; epoch <= 3; epoch++) {
        const holder = store.another();
        const puts = putsOf({ ...store, requests: holder }, temporaryDirectory(context));
        const names = namesOf(rows, epoch);
        store.proxy.fault = ({ method }) =>
          method === "PUT" ? (FAULTS[chance(FAULTS.length)] ?? "none") : "none";
        const begunAt = store.proxy.seen.length;
        const uploads = Array.from({ length: UPLOADS }, async (_, number) => {
          const { bytes } = content(100_000 + chance(300_000), epoch * UPLOADS + number);
          const [chunk] = await stored(puts, rows, names, bytes);
          committed.set(chunk?.name ?? "", bytes);
        });
        const settled = Promise.allSettled(uploads);
        const cutAfter = 2 + chance(2 * UPLOADS);
        await Promise.race([
          settled,
          until(() => store.proxy.seen.length - begunAt >= cutAfter, "requests").catch(() => undefined),
        ]);
        holder.client.close();
        await settled;
        await until(() => store.proxy.under.now === 0, "the last request");
        rows.endEpoch(epoch, clock.wallMs());
      }
      store.proxy.fault = () => "none";
      clock.advance(FIRST_SWEEP_AFTER_MS + 1);
      const removal = {
        requests: store.requests,
        prefix: PREFIX,
        marker,
        incarnation: "one",
        clock,
        logger: silentLogger,
        recoveryWindowMs: RECOVERY_WINDOW_MS,
        blocks: rows,
        places: new Map(),
      };
      const never = new AbortController().signal;
      await sweepBlocks(removal, never);
      clock.advance(RECOVERY_WINDOW_MS);
      await sweepBlocks(removal, never);
      assert.deepEqual(rows.blocks, []);
      const found: BucketDifference[] = [];
      for await (const each of compareBucket(store.requests, PREFIX, rows)) found.push(each);
      assert.deepEqual(found, []);
      assert.deepEqual(rows.chunks, [...committed.keys()].toSorted());
      for (const [name, bytes] of committed) {
        assert.ok((await store.requests.getRange(chunkKey(PREFIX, name), 0, bytes.length)).equals(bytes));
      }
    });
  });
}
