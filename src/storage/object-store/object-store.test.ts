// Tests a node's whole object store: checked, claimed, written, read from another process's place, and closed.
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import { systemClock } from "#base/clock.ts";
import { silentLogger } from "#base/log.ts";
import { systemFraction, systemRandom } from "#base/random.ts";
import { ContentWriter, type WholeChunk } from "#storage/chunks/content-writer.ts";
import {
  keepsFirst,
  OBJECT_STORES,
  startStore,
  type TestStore,
  withoutStore,
} from "#testing/object-stores.ts";
import { temporaryDirectory } from "#testing/temporary-folder.ts";
import { ChunkRows } from "./chunk-blocks.fixture.ts";
import { RECOVERY_WINDOW_MS } from "./dropped-chunks.ts";
import type { ObjectChunkWriter } from "./object-chunk-writer.ts";
import { ObjectStore } from "./object-store.ts";
import { AHEAD_OF_STORE } from "./object-upload.ts";
import { content } from "./store.fixture.ts";
import { isStoreProblem } from "./store-error.ts";
import { storeSettings } from "./store-settings.ts";

const SIZE = 8_100_000;

for (const kind of OBJECT_STORES) {
  describe(`an object store on ${kind}`, { skip: withoutStore(kind) }, () => {
    const open = async (context: TestContext, at: TestStore, rows: ChunkRows): Promise<ObjectStore> => {
      const query = new URLSearchParams({
        endpoint: `http://127.0.0.1:${at.port}`,
        credentials: at.credentialsFile,
      });
      const store = await ObjectStore.open({
        settings: storeSettings(`s3://${at.bucket}/cluster?${query.toString()}`),
        blocks: rows,
        folder: join(temporaryDirectory(context), "store"),
        reserveBytes: 0n,
        hasLocalRoom: () => true,
        clock: systemClock,
        random: systemRandom,
        fraction: systemFraction,
        logger: silentLogger,
        triesMs: 2_000,
      });
      context.after(() => store.close());
      return store;
    };

    test("content written by one holder is read by the next, and the first is cut off at once", async (context) => {
      const at = await startStore(kind, (end) => context.after(end));
      const rows = new ChunkRows();
      const first = await open(context, at, rows);
      assert.deepEqual(await first.check(), { keepsFirst: keepsFirst(kind), checksBytes: true });
      assert.equal(await first.marker.claim("one"), "one");
      const { bytes } = content(SIZE);
      const upload = first.upload({ names: first.namesOf("root", 1), user: "ann", sizeBytes: SIZE });
      const chunks: WholeChunk<ObjectChunkWriter>[] = [];
      const writer = new ContentWriter<ObjectChunkWriter>({
        budget: upload,
        sizeBytes: SIZE,
        ahead: AHEAD_OF_STORE,
        begin: (position) => upload.chunk(position),
        ended: (chunk) => chunks.push(chunk),
        failed: (error) => assert.fail(String(error)),
      });
      await writer.write(bytes);
      writer.end();
      await Promise.all(chunks.map(({ durable }) => durable));
      writer.close();
      const records = chunks.map(({ file, checksums }) => file.record(checksums));
      await first.close();
      await assert.rejects(first.marker.incarnation(), (error) => isStoreProblem(error, "closed"));

      const second = await open(context, at, rows);
      const reading = second.reading("ben");
      for (const [place, chunk] of records.entries()) {
        const block = await reading.readBlock(chunk, 0, () => records.slice(place + 1));
        const start = chunk.position * 4_000_000;
        assert.ok(block.equals(bytes.subarray(start, start + block.length)));
      }
      reading.close();
      await second
        .removal({ incarnation: "one", recoveryWindowMs: RECOVERY_WINDOW_MS })
        .marker.require("one");
    });

    test("a store that is down is refused in words, without a secret, after its time", async (context) => {
      const at = await startStore(kind, (end) => context.after(end));
      const store = await open(context, at, new ChunkRows());
      await at.kill();
      await assert.rejects(store.check(), (error: Error) => {
        assert.ok(isStoreProblem(error, "unreachable"));
        const words = `${error.message} ${String(error.cause)} ${error.stack}`;
        return !words.includes(at.secret) && !words.includes(at.keyId);
      });
    });
  });
}

test("a bucket with versions is refused", { skip: withoutStore("versitygw") }, async (context) => {
  const at = await startStore("versitygw", (end) => context.after(end), { versions: true });
  const query = new URLSearchParams({
    endpoint: `http://127.0.0.1:${at.port}`,
    credentials: at.credentialsFile,
  });
  const folder = temporaryDirectory(context);
  const store = await ObjectStore.open({
    settings: storeSettings(`s3://${at.bucket}/cluster?${query.toString()}`),
    blocks: new ChunkRows(),
    folder,
    cacheBytes: 0,
    reserveBytes: 0n,
    hasLocalRoom: () => true,
    clock: systemClock,
    random: systemRandom,
    fraction: systemFraction,
    logger: silentLogger,
  });
  context.after(() => store.close());
  assert.deepEqual(readdirSync(folder), ["chunks-read"]);
  assert.equal((await store.check()).keepsFirst, true);
  await switchVersionsOn(at);
  await assert.rejects(store.check(), /keeps versions/);
});

/** What an administrator of the store does; Grove itself never asks for it. */
async function switchVersionsOn(at: TestStore): Promise<void> {
  const { SignatureV4 } = await import("@smithy/signature-v4");
  const { createHash, createHmac } = await import("node:crypto");
  class Sha256 {
    readonly #hash;
    constructor(secret?: string | ArrayBuffer | ArrayBufferView) {
      this.#hash =
        secret === undefined ? createHash("sha256") : createHmac("sha256", Buffer.from(secret as string));
    }
    update(data: string | ArrayBuffer | ArrayBufferView): void {
      this.#hash.update(Buffer.from(data as string));
    }
    digest(): Promise<Uint8Array> {
      return Promise.resolve(new Uint8Array(this.#hash.digest()));
    }
    reset(): void {}
  }
  const signer = new SignatureV4({
    service: "s3",
    region: "us-east-1",
    credentials: { accessKeyId: at.keyId, secretAccessKey: at.secret },
    sha256: Sha256,
    uriEscapePath: false,
  });
  const host = `127.0.0.1:${at.port}`;
  const body = "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>";
  const signed = await signer.sign({
    method: "PUT",
    protocol: "http:",
    hostname: "127.0.0.1",
    path: `/${at.bucket}`,
    query: { versioning: "" },
    headers: { host, "x-amz-content-sha256": createHash("sha256").update(body).digest("hex") },
    body,
  });
  const answer = await fetch(`http://${host}/${at.bucket}?versioning=`, {
    method: "PUT",
    headers: signed.headers,
    body,
  });
  assert.equal(answer.status, 200, await answer.text());
}
