// The fast encoders of requests write the same bytes as the general one, and leave to it what it refuses.
import assert from "node:assert/strict";
import { test } from "node:test";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { SlicedField } from "#wire/framing/sliced-field.ts";
import {
  CreateFileRequestSchema,
  FileServer,
  ReadFileRequestSchema,
  UploadRequestSchema,
} from "./gen/grove/v1/file_server_pb.ts";
import { encodeChunkHead, encodeCreateFile, encodeReadFile, REQUEST_ENCODERS } from "./request-encoders.ts";

const text = fc.oneof(
  fc.string({ unit: "binary", maxLength: 200 }),
  fc.constantFrom("", "é", "x".repeat(41), "\ud800", `${"x".repeat(60)}\udc00`),
);
const u32 = fc.oneof(fc.nat({ max: 2 ** 32 - 1 }), fc.constantFrom(0, 127, 128, 2 ** 28, 2 ** 32 - 1));
const u64 = fc.oneof(fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }), fc.constantFrom(0n, 2n ** 64n - 1n));
const i64 = fc.oneof(
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
  fc.constantFrom(0n, -1n, -(2n ** 63n), 2n ** 63n - 1n),
);
const data = fc.oneof(
  fc.uint8Array({ maxLength: 300 }),
  fc.constantFrom(4_096, 65_536).map((size) => new Uint8Array(size).fill(7)),
);
const readFile = fc.record(
  { root: text, path: text, offset: u64, length: u32, whole: fc.boolean() },
  { requiredKeys: [] },
);
const createFile = fc.record(
  { root: text, path: text, data, mtimeMs: i64, crc32: u32 },
  { requiredKeys: [] },
);

test("requests about small files are encoded byte by byte as by the general encoder (D13)", () => {
  fc.assert(
    fc.property(readFile, fc.nat({ max: 9 }), (request, headBytes) => {
      const bytes = encodeReadFile(request, headBytes);
      const usual = toBinary(ReadFileRequestSchema, create(ReadFileRequestSchema, request));
      assert.deepEqual(bytes?.subarray(headBytes), Buffer.from(usual));
    }),
    { numRuns: 500 },
  );
  fc.assert(
    fc.property(createFile, fc.nat({ max: 9 }), (request, headBytes) => {
      const bytes = encodeCreateFile(request, headBytes);
      const usual = toBinary(CreateFileRequestSchema, create(CreateFileRequestSchema, request));
      assert.deepEqual(bytes?.subarray(headBytes), Buffer.from(usual));
    }),
    { numRuns: 500 },
  );
});

test("what precedes a chunk's data is encoded byte by byte as by the general encoder, for any chunk", () => {
  const usual = new SlicedField(UploadRequestSchema, "chunk.data");
  const quick = new SlicedField(UploadRequestSchema, "chunk.data", encodeChunkHead);
  const offset = fc.oneof(
    fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
    fc.constantFrom(0n, 127n, 128n, 262_144n, 2n ** 53n - 1n, 2n ** 53n),
  );
  const length = fc.oneof(fc.nat(), fc.constantFrom(0, 1, 127, 128, 262_144));
  fc.assert(
    fc.property(fc.record({ offset, crc32: u32 }, { requiredKeys: [] }), length, (value, bytes) => {
      const init = { part: { case: "chunk" as const, value } };
      assert.deepEqual(quick.encode(init, bytes), usual.encode(init, bytes));
    }),
    { numRuns: 1_000 },
  );
  const header = { part: { case: "header" as const, value: { root: "r", path: "/a" } } };
  assert.deepEqual(quick.encode(header, 0), usual.encode(header, 0));
});

test("a chunk as uploads send it is left to no general encoder, and an odd one is", () => {
  const chunk = (value: object): object => ({ part: { case: "chunk", value } });
  assert.ok(encodeChunkHead(chunk({ offset: 262_144n, crc32: 0 }), 262_144, 5) !== undefined);
  const odd: readonly object[] = [{ offset: -1n }, { offset: 2n ** 64n }, { crc32: -1 }, { crc32: 1.5 }];
  for (const value of odd) assert.equal(encodeChunkHead(chunk(value), 1, 5), undefined);
  const later = { ...chunk({}), $unknown: [] };
  assert.equal(encodeChunkHead(later, 1, 5), undefined);
});

test("what the general encoder refuses, and fields of a later version, are left to it", () => {
  const odd: readonly object[] = [
    { length: -1 },
    { length: 2 ** 32 },
    { length: 1.5 },
    { offset: -1n },
    { offset: 2n ** 64n },
    { path: 7 },
  ];
  for (const request of odd) assert.equal(encodeReadFile(request), undefined);
  const later = new Uint8Array([...(encodeReadFile({ path: "/a" }) ?? []), 0xf8, 0x07, 0x01]);
  assert.equal(encodeReadFile(fromBinary(ReadFileRequestSchema, later)), undefined);
  const oddFiles: readonly object[] = [
    { mtimeMs: 2n ** 63n },
    { mtimeMs: -(2n ** 63n) - 1n },
    { crc32: 2 ** 32 },
    { data: "text" },
    { root: 7 },
  ];
  for (const request of oddFiles) assert.equal(encodeCreateFile(request), undefined);
});

test("the requests of ReadFile and CreateFile have an encoder of their own", () => {
  for (const { input } of [FileServer.method.readFile, FileServer.method.createFile]) {
    const bytes = REQUEST_ENCODERS.get(input)?.(create(input, { path: "/a" }), 5);
    assert.deepEqual(bytes?.subarray(5), Buffer.from([18, 2, 0x2f, 0x61]));
  }
});
