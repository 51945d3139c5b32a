// The fast encoder of Attr writes the same bytes as the general one.
import assert from "node:assert/strict";
import { test } from "node:test";
import { create, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { encodeAttr } from "./attr-encoder.ts";
import { AttrSchema } from "./gen/grove/v1/common_pb.ts";

const text = fc.oneof(
  fc.string({ unit: "binary", maxLength: 200 }),
  fc.string(),
  fc.constantFrom("", "é", "x".repeat(41), "\ud800", `${"x".repeat(60)}\udc00`),
);
const u64 = fc.oneof(
  fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
  fc.constantFrom(0n, 127n, 128n, 2n ** 53n - 1n, 2n ** 53n),
);
const i64 = fc.oneof(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), fc.constantFrom(0n, -1n));
const attr = fc.record({
  id: text,
  name: text,
  path: text,
  kind: fc.constantFrom(0, 1, 2),
  size: u64,
  mtimeMs: i64,
  ctimeMs: i64,
  owner: text,
  shared: fc.array(text, { maxLength: 4 }),
  etag: text,
  crc32: fc.nat({ max: 2 ** 32 - 1 }),
  childCount: u64,
  root: text,
  parentId: text,
  createdBy: text,
  myPermissions: fc.array(fc.constantFrom(0, 1, 2, 3), { maxLength: 4 }),
  damaged: fc.boolean(),
});

test("an Attr is encoded byte by byte as by the general encoder (D13)", () => {
  fc.assert(
    fc.property(attr, (init) => {
      const message = create(AttrSchema, init);
      assert.deepEqual(Buffer.from(encodeAttr(message)), Buffer.from(toBinary(AttrSchema, message)));
    }),
    { numRuns: 2_000 },
  );
});
