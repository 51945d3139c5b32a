// Tests how chunks reach a real store: names before bytes, four at once, bounded room, and what remains of failures.
import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { OBJECT_STORES, withoutStore } from "#testing/object-stores.ts";
import { temporaryDirectory } from "#testing/temporary-folder.ts";
import { until } from "#testing/until.ts";
import { ChunkRows } from "./chunk-blocks.fixture.ts";
import { blockOf, chunkKey } from "./chunk-blocks.ts";
import { PUTS_AT_ONCE_PER_UPLOAD } from "./object-upload.ts";
import {
  beginUpload,
  content,
  namesOf,
  PREFIX,
  type ProxiedStore,
  proxiedStore,
  putsOf,
  stored,
} from "./store.fixture.ts";

const CHUNK = 4_000_000;
const NO_MEMORY = { memory: { all: 0, each: 0 }, file: { all: 100 * CHUNK, each: 100 * CHUNK } };

for (const kind of OBJECT_STORES) {
  describe(`writing to ${kind}`, { skip: withoutStore(kind) }, () => {
    const ends: (() => Promise<void>)[] = [];
    after(async () => {
      for (const end of ends.toReversed()) await end();
    });
    let made: Promise<ProxiedStore> | undefined;
    const ready = async (): Promise<ProxiedStore> => {
      made ??= proxiedStore(kind, (end) => ends.push(end));
      const store = await made;
      store.proxy.fault = () => "none";
      store.proxy.gate = Promise.resolve();
      store.proxy.seen.length = 0;
      store.proxy.under.most = 0;
      return store;
    };
    const inStore = async ({ requests }: ProxiedStore, chunks: readonly { name: string; length: number }[]) =>
      Buffer.concat(
        await Promise.all(
          chunks.map(({ name, length }) => requests.getRange(chunkKey(PREFIX, name), 0, length)),
        ),
      );

    for (const place of ["memory", "files"] as const) {
      test(`content in ${place} becomes chunks, whose names are durable before the first byte`, async (context) => {
        const store = await ready();
        const rows = new ChunkRows();
        const gate = Promise.withResolvers<void>();
        const asked = Promise.withResolvers<void>();
        rows.beforeAdd = () => {
          asked.resolve();
          return gate.promise;
        };
        const puts = putsOf(store, temporaryDirectory(context), place === "files" ? NO_MEMORY : undefined);
        const { bytes } = content(2 * CHUNK + 70_001);
        const writing = stored(puts, rows, namesOf(rows), bytes);
        await asked.promise;
        // Time enough for a chunk that did not wait for its name.
        for (let round = 0; round < 5; round++) await store.requests.headOf("here/none");
        assert.ok(store.proxy.seen.every((request) => !request.startsWith("PUT")));
        assert.deepEqual(rows.blocks, []);
        gate.resolve();
        const chunks = await writing;
        assert.equal(rows.blocks.length, 1);
        assert.deepEqual(
          chunks.map(({ length }) => length),
          [CHUNK, CHUNK, 70_001],
        );
        assert.ok((await inStore(store, chunks)).equals(bytes));
        assert.deepEqual(puts.room.bytes, { memory: 0, file: 0 });
      });
    }

    test("an upload has four chunks on their way, gathers a fifth, and then its sender waits", async (context) => {
      const store = await ready();
      const gate = Promise.withResolvers<void>();
      store.proxy.gate = gate.promise;
      const rows = new ChunkRows();
      const puts = putsOf(store, temporaryDirectory(context));
      const upload = beginUpload(puts, namesOf(rows));
      const { bytes } = content(7 * CHUNK);
      let isSent = false;
      const sending = upload.send(bytes).then(() => {
        isSent = true;
      });
      await until(() => store.proxy.under.now === PUTS_AT_ONCE_PER_UPLOAD, "four requests");
      await until(() => upload.chunks.length === PUTS_AT_ONCE_PER_UPLOAD + 1, "a fifth chunk");
      assert.equal(isSent, false);
      // No more than the slice in which the fifth ended.
      assert.ok(upload.writer.receivedBytes < (PUTS_AT_ONCE_PER_UPLOAD + 1) * CHUNK + 65_536);
      gate.resolve();
      await sending;
      const chunks = await upload.finish();
      assert.equal(store.proxy.under.most, PUTS_AT_ONCE_PER_UPLOAD);
      assert.ok((await inStore(store, chunks)).equals(bytes));
    });

    test("paused senders keep their places, others gather in files or wait, and each user has a share", async (context) => {
      const store = await ready();
      const rows = new ChunkRows();
      const limits = {
        memory: { all: 3 * CHUNK, each: CHUNK },
        file: { all: 3 * CHUNK, each: CHUNK },
      };
      const puts = putsOf(store, temporaryDirectory(context), limits);
      const names = namesOf(rows);
      const { bytes } = content(1_000_000);
      const ofAnn = [1, 2, 3].map(() => beginUpload(puts, names, "ann@example.com"));
      await ofAnn[0]?.send(bytes);
      await ofAnn[1]?.send(bytes);
      assert.deepEqual(puts.room.bytes, { memory: CHUNK, file: CHUNK });
      const third = ofAnn[2]?.send(bytes);
      await until(() => puts.room.waiting === 1, "a chunk that waits");
      assert.ok((ofAnn[2]?.writer.receivedBytes ?? 0) < bytes.length);
      const ofBen = beginUpload(puts, names, "ben@example.com");
      await ofBen.send(bytes);
      assert.ok((await inStore(store, await ofBen.finish())).equals(bytes));
      await ofAnn[0]?.finish();
      await third;
      for (const upload of ofAnn.slice(1)) {
        assert.ok((await inStore(store, (await upload.finish()) ?? [])).equals(bytes));
      }
      assert.deepEqual(puts.room.bytes, { memory: 0, file: 0 });
    });

    test("an upload that is given up waits for no place", async (context) => {
      const store = await ready();
      const rows = new ChunkRows();
      const limits = { memory: { all: CHUNK, each: CHUNK }, file: { all: 0, each: 0 } };
      const puts = putsOf(store, temporaryDirectory(context), limits);
      const names = namesOf(rows);
      const first = beginUpload(puts, names);
      await first.send(content(200_000).bytes);
      const second = beginUpload(puts, names);
      const sending = second.send(content(1_000_000).bytes);
      await until(() => puts.room.waiting === 1, "a chunk that waits");
      await Promise.all(second.writer.unfinished.map(async (file) => file.discard()));
      second.writer.close();
      await sending;
      assert.equal(puts.room.waiting, 0);
      await first.finish();
      assert.deepEqual(puts.room.bytes, { memory: 0, file: 0 });
    });

    test("a chunk that waits for those before it is not put once the upload is dropped", async (context) => {
      const store = await ready();
      const gate = Promise.withResolvers<void>();
      store.proxy.gate = gate.promise;
      const rows = new ChunkRows();
      const puts = putsOf(store, temporaryDirectory(context));
      const upload = beginUpload(puts, namesOf(rows));
      const sending = upload.send(content(5 * CHUNK).bytes);
      await until(() => upload.chunks.length === 5 && store.proxy.under.now === 4, "four requests");
      const dropping = Promise.all(upload.chunks.map(async ({ file }) => file.discard()));
      gate.resolve();
      await dropping;
      await sending;
      upload.writer.close();
      assert.equal(store.proxy.seen.filter((request) => request.startsWith("PUT")).length, 4);
      assert.deepEqual(puts.room.bytes, { memory: 0, file: 0 });
      assert.equal(
        (await store.requests.list(chunkKey(PREFIX, rows.blocks[0] ?? "none"), "")).objects.length,
        0,
      );
    });

    test("a dropped chunk leaves no object, and an unanswered one leaves its block to the sweeps", async (context) => {
      const store = await ready();
      const rows = new ChunkRows();
      const puts = putsOf(store, temporaryDirectory(context));
      const names = namesOf(rows);
      const upload = beginUpload(puts, names);
      await upload.send(content(CHUNK + 1_000_000).bytes);
      await upload.chunks[0]?.durable;
      await Promise.all(
        [...upload.chunks.map(({ file }) => file), ...upload.writer.unfinished].map(async (file) =>
          file.discard(),
        ),
      );
      upload.writer.close();
      assert.deepEqual(puts.room.bytes, { memory: 0, file: 0 });
      assert.equal(
        (await store.requests.list(chunkKey(PREFIX, rows.blocks[0] ?? "none"), "")).objects.length,
        0,
      );
      let spoiled = 0;
      store.proxy.fault = ({ method }) => (method === "PUT" && spoiled++ === 0 ? "lost-answer" : "none");
      const one = await stored(puts, rows, names, content(100_000).bytes);
      for (let count = 2; count < 256; count++) names.end(await names.take(), "settled");
      const ended = await rows.ended({ beforeMs: Number.MAX_SAFE_INTEGER, isSweptOnce: false, limit: 9 });
      assert.deepEqual(
        ended.map(({ id }) => id),
        [blockOf(one[0]?.name ?? "")],
      );
    });

    test("a store that is killed under load loses nothing that it acknowledged", async (context) => {
      const store = await ready();
      const rows = new ChunkRows();
      const puts = putsOf(store, temporaryDirectory(context));
      const names = namesOf(rows);
      const sent = Array.from({ length: 6 }, (_, seed) => content(CHUNK + 100_000, seed + 1).bytes);
      const gate = Promise.withResolvers<void>();
      store.proxy.gate = gate.promise;
      const writing = Promise.all(sent.map((bytes) => stored(puts, rows, names, bytes)));
      writing.catch(() => undefined);
      await until(() => store.proxy.under.now > 2, "requests under way");
      await store.store.kill();
      gate.resolve();
      await store.store.start();
      for (const [index, chunks] of (await writing).entries()) {
        assert.ok((await inStore(store, chunks)).equals(sent[index] ?? Buffer.alloc(0)));
      }
    });
  });
}
