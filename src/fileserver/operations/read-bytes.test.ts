// The reply of ReadFile equals the schema encoder's message at every length at which its parts change.
import assert from "node:assert/strict";
import { test } from "node:test";
import { create, toBinary } from "@bufbuild/protobuf";
import { BLOCK_BYTES } from "#base/limits.ts";
import type { Inode } from "#storage/contract/inode.ts";
import { patterned } from "#storage/local/store.fixture.ts";
import { AttrSchema } from "#wire/proto/gen/grove/v1/common_pb.ts";
import { ReadFileResponseSchema } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { encodeRead } from "./read-bytes.ts";

const HEAD_BYTES = 5;
const FILE: Buffer = patterned(3 * BLOCK_BYTES + 17, 1);

/** Blocks of a file as storage gives them: to the end of a block, in the reader's buffer if it has one. */
const content = {
  inode: {} as Inode,
  readBlock(offset: number, into?: () => Buffer): Promise<Buffer> {
    const end = Math.min(FILE.length, (Math.floor(offset / BLOCK_BYTES) + 1) * BLOCK_BYTES);
    const bytes = FILE.subarray(offset, end);
    if (into === undefined) return Promise.resolve(Buffer.from(bytes));
    const target = into();
    return Promise.resolve(target.subarray(0, bytes.copy(target)));
  },
  rangeCrc32: () => 0,
  close: () => undefined,
};

test("a read is encoded as the schema would encode it, behind the room that the sender asked for", async () => {
  const lengths = [
    0,
    1,
    127,
    128,
    16_383,
    16_384,
    BLOCK_BYTES - 1,
    BLOCK_BYTES,
    BLOCK_BYTES + 1,
    FILE.length,
  ];
  for (const shared of [[], Array.from({ length: 40 }, (_, at) => `user-${at}@example.com`)]) {
    const attr = create(AttrSchema, { id: "1", name: "f", path: "/f", size: BigInt(FILE.length), shared });
    for (const length of lengths)
      for (const offset of [0, 5, BLOCK_BYTES - 3].filter((at) => at + length <= FILE.length)) {
        const reply = await encodeRead(content, { offset, end: offset + length }, attr, HEAD_BYTES);
        const data = FILE.subarray(offset, offset + length);
        const wanted = toBinary(ReadFileResponseSchema, create(ReadFileResponseSchema, { data, attr }));
        assert.ok(reply.subarray(HEAD_BYTES).equals(wanted), `${length} bytes at ${offset}`);
      }
  }
});

test("a small file, whose bytes are in memory, is encoded at once", () => {
  const inMemory = { ...content, readBlock: (offset: number) => FILE.subarray(offset, 100) };
  const attr = create(AttrSchema, { name: "f" });
  const reply = encodeRead(inMemory, { offset: 10, end: 90 }, attr, 0);
  assert.ok(reply instanceof Buffer);
  const wanted = create(ReadFileResponseSchema, { data: FILE.subarray(10, 90), attr });
  assert.deepEqual(reply, Buffer.from(toBinary(ReadFileResponseSchema, wanted)));
});

test("a range that begins behind its end has no bytes", async () => {
  const attr = create(AttrSchema, { name: "f" });
  const reply = await encodeRead(content, { offset: 9, end: 4 }, attr, 0);
  assert.deepEqual(
    [...reply],
    [...toBinary(ReadFileResponseSchema, create(ReadFileResponseSchema, { attr }))],
  );
});
