// Tests that uploads out of order, of a wrong size or with wrong bytes are dropped and change nothing.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { crc32 } from "node:zlib";
import { chunk, header, LARGE, STATUS, TwoUsers, U64_MAX } from "./two-users.ts";

let users: TwoUsers;
before(async () => {
  users = await TwoUsers.start();
});
after(() => users.close());

test("an upload out of order, of a wrong size or with wrong bytes is dropped whole (spec 3.5, D15)", async () => {
  const data = LARGE.subarray(0, 1_000_000);
  const known = { size: BigInt(data.length), sizeKnown: true };
  const part = (at: number, end: number, rest: object = {}): Uint8Array =>
    chunk(at, data.subarray(at, end), rest);
  const wrong = (crc32(data) ^ 1) >>> 0;
  const cases: [title: string, messages: Uint8Array[], code: number, reason: string][] = [
    ["nothing at all", [], STATUS.invalidArgument, "BAD_ARGUMENT"],
    ["an empty message", [new Uint8Array()], STATUS.invalidArgument, "BAD_ARGUMENT"],
    [
      "a chunk before the header",
      [part(0, 1_000_000), header("/docs/n")],
      STATUS.invalidArgument,
      "BAD_ARGUMENT",
    ],
    ["two headers", [header("/docs/n"), header("/docs/n")], STATUS.invalidArgument, "BAD_ARGUMENT"],
    [
      "a header after a chunk",
      [header("/docs/n"), part(0, 500_000), header("/docs/m")],
      STATUS.invalidArgument,
      "BAD_ARGUMENT",
    ],
    [
      "an empty message later",
      [header("/docs/n"), part(0, 500_000), new Uint8Array()],
      STATUS.invalidArgument,
      "BAD_ARGUMENT",
    ],
    ["a byte too few", [header("/docs/n", known), part(0, 999_999)], STATUS.invalidArgument, "BAD_ARGUMENT"],
    ["no bytes of many", [header("/docs/n", known)], STATUS.invalidArgument, "BAD_ARGUMENT"],
    [
      "a byte too many",
      [header("/docs/n", { size: 999_999n, sizeKnown: true }), part(0, 1_000_000)],
      STATUS.invalidArgument,
      "BAD_ARGUMENT",
    ],
    [
      "bytes of a file said to be empty",
      [header("/docs/n", { size: 0n, sizeKnown: true }), part(0, 1)],
      STATUS.invalidArgument,
      "BAD_ARGUMENT",
    ],
    [
      "a wrong checksum",
      [header("/docs/n", known), part(0, 1_000_000, { crc32: wrong })],
      STATUS.aborted,
      "CHECKSUM_MISMATCH",
    ],
    [
      "a checksum of zero",
      [header("/docs/n", known), part(0, 1_000_000, { crc32: 0 })],
      STATUS.aborted,
      "CHECKSUM_MISMATCH",
    ],
    [
      "a wrong checksum later",
      [header("/docs/n"), part(0, 500_000), part(500_000, 1_000_000, { crc32: wrong })],
      STATUS.aborted,
      "CHECKSUM_MISMATCH",
    ],
    ["a first chunk not at 0", [header("/docs/n"), part(1, 1_000_000)], STATUS.aborted, "OFFSET_MISMATCH"],
    [
      "a gap",
      [header("/docs/n"), part(0, 400_000), part(400_001, 1_000_000)],
      STATUS.aborted,
      "OFFSET_MISMATCH",
    ],
    [
      "an overlap",
      [header("/docs/n"), part(0, 400_000), part(399_999, 1_000_000)],
      STATUS.aborted,
      "OFFSET_MISMATCH",
    ],
    [
      "the same chunk twice",
      [header("/docs/n"), part(0, 400_000), part(0, 400_000)],
      STATUS.aborted,
      "OFFSET_MISMATCH",
    ],
    [
      "the last offset there is",
      [header("/docs/n"), chunk(U64_MAX, data)],
      STATUS.aborted,
      "OFFSET_MISMATCH",
    ],
    [
      "the largest size there is",
      [header("/docs/n", { size: U64_MAX, sizeKnown: true })],
      STATUS.invalidArgument,
      "BAD_ARGUMENT",
    ],
    [
      "more than the quota",
      [header("/docs/n", { size: 2n ** 40n, sizeKnown: true })],
      STATUS.resourceExhausted,
      "QUOTA_EXCEEDED",
    ],
    [
      "a time before all time",
      [header("/docs/n", { mtimeMs: -(2n ** 63n) })],
      STATUS.invalidArgument,
      "BAD_ARGUMENT",
    ],
    [
      "a time after all time",
      [header("/docs/n", { mtimeMs: 2n ** 63n - 1n })],
      STATUS.invalidArgument,
      "BAD_ARGUMENT",
    ],
    [
      "an unknown answer to what exists",
      [header("/docs/small", { onExists: 7 }), part(0, 10)],
      STATUS.invalidArgument,
      "BAD_ARGUMENT",
    ],
    [
      "an upload that nobody began",
      [header("/docs/n", { uploadId: "01J9Z" })],
      STATUS.notFound,
      "NO_SUCH_UPLOAD",
    ],
    ["a folder's name", [header("/docs"), part(0, 10)], STATUS.failedPrecondition, "IS_DIRECTORY"],
    ["the root's name", [header("/"), part(0, 10)], STATUS.failedPrecondition, "IS_DIRECTORY"],
    ["a file on the way", [header("/docs/small/n"), part(0, 10)], STATUS.failedPrecondition, "NOT_DIRECTORY"],
    ["no folder on the way", [header("/nowhere/n"), part(0, 10)], STATUS.notFound, "NO_SUCH_PATH"],
    [
      "another version expected",
      [header("/docs/small", { ifMatch: "x" }), part(0, 10)],
      STATUS.failedPrecondition,
      "ETAG_MISMATCH",
    ],
  ];
  for (const [title, messages, code, reason] of cases) {
    await users.refused(() => users.asAlice("UploadFile", messages), code, reason, title);
  }
  const gap = await users.asAlice("UploadFile", [
    header("/docs/n"),
    part(0, 400_000),
    part(400_001, 1_000_000),
  ]);
  assert.match(
    Buffer.from(gap.trailers["grpc-status-details-bin"] ?? "", "base64").toString("latin1"),
    /400000/,
  );
});
