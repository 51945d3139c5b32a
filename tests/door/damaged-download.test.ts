// A download whose bytes do not match their checksum never looks complete to who reads it at a door.
import assert from "node:assert/strict";
import { test } from "node:test";
import { crc32 } from "node:zlib";
import { CHUNK_BYTES } from "#base/limits.ts";
import { fileAttr } from "#client/commands/fake-server.fixture.ts";
import { serveFakeTree } from "./fake-tree.ts";

/** A whole chunk, and one that a single part of the answer holds. */
const DATA = Buffer.alloc(CHUNK_BYTES + 1_000, "x");

for (const damaged of ["first", "last"] as const) {
  test(`a file whose ${damaged} chunk was damaged on its way ends short of its length`, async (t) => {
    const attr = fileAttr("f", DATA);
    const address = await serveFakeTree(t, {
      // It asks for all of the file first, and gets what a larger one has.
      readFile: () => ({ attr, data: Buffer.alloc(0) }),
      // Bytes and checksum of one chunk differ; those of the file are right.
      async *downloadFile() {
        yield { part: { case: "attr", value: attr } };
        for (const [offset, end] of [
          [0, CHUNK_BYTES],
          [CHUNK_BYTES, DATA.length],
        ] as const) {
          const data = Buffer.from(DATA.subarray(offset, end));
          const sum = crc32(data);
          if ((damaged === "first") === (offset === 0)) data[500] = 0;
          yield { part: { case: "chunk", value: { offset: BigInt(offset), data, crc32: sum } } };
        }
      },
    });
    const answer = await fetch(`${address}f`);
    assert.equal(answer.headers.get("content-length"), String(DATA.length));
    let bytes = 0;
    await assert.rejects(async () => {
      for await (const part of answer.body ?? []) bytes += part.length;
    });
    assert.ok(bytes < DATA.length);
  });
}
