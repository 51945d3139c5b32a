// Tests of the content writer: how its bytes lie in the buffers that it gives to files.
import assert from "node:assert/strict";
import { test } from "node:test";
import { CHUNK_BYTES } from "#base/limits.ts";
import { ContentWriter } from "./content-writer.ts";
import { UploadBudget } from "./upload-budget.ts";
import { WRITE_BUFFER_BYTES } from "./write-buffers.ts";

/** Bytes of content in a frame of HTTP/2, which divide no buffer. */
const SLICE_BYTES = 16_375;

test("a chunk takes no more buffers than its bytes fill", async () => {
  const given: Buffer[] = [];
  const writer = new ContentWriter({
    budget: new UploadBudget().shareOf("ann@example.com"),
    sizeBytes: undefined,
    begin: () => ({
      append: (slices: readonly Buffer[]) => {
        given.push(...slices.map((slice) => Buffer.from(slice)));
        return Promise.resolve();
      },
      finish: () => Promise.resolve(),
    }),
    ended: () => undefined,
    failed: (error) => assert.fail(String(error)),
  });
  const bytes = Buffer.alloc(CHUNK_BYTES);
  for (let at = 0; at < bytes.length; at += 4) bytes.writeUInt32LE(at, at);
  for (let at = 0; at < bytes.length; at += SLICE_BYTES) {
    await writer.write(bytes.subarray(at, at + SLICE_BYTES));
  }
  writer.close();
  assert.equal(given.length, Math.ceil(CHUNK_BYTES / WRITE_BUFFER_BYTES));
  assert.ok(Buffer.concat(given).equals(bytes));
});
