// Tests that broken, oversized and boundary messages are refused and change nothing.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { OnConflict, Sort } from "#wire/proto/gen/grove/v1/common_pb.ts";
import {
  CreateFileRequestSchema,
  DeleteFileRequestSchema,
  DownloadRequestSchema,
  GetAttrRequestSchema,
  ListDirRequestSchema,
  ReadFileRequestSchema,
  RenameRequestSchema,
  WriteFileRequestSchema,
} from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { bytes, chunk, header, LARGE, SMALL, STATUS, TwoUsers, U64_MAX } from "./two-users.ts";

let users: TwoUsers;
before(async () => {
  users = await TwoUsers.start();
});
after(() => users.close());

test("broken protobuf and broken UTF-8 are refused, fields of a later version are not (D18)", async () => {
  const text = (field: number, value: Buffer): Buffer =>
    Buffer.concat([Buffer.from([(field << 3) | 2, value.length]), value]);
  const broken: [title: string, message: Buffer][] = [
    ["a lone continuation byte", text(2, Buffer.from([0x2f, 0x80]))],
    ["an overlong slash", text(2, Buffer.from([0x2f, 0xc0, 0xaf]))],
    ["half a surrogate pair", text(2, Buffer.from([0x2f, 0xed, 0xa0, 0x80]))],
    ["Latin-1", text(2, Buffer.from("/f\u00fcr", "latin1"))],
    ["a length beyond the message", Buffer.from([0x12, 0x7f, 0x2f])],
    ["a varint that never ends", Buffer.alloc(16, 0xff)],
    ["field number zero", Buffer.from([0x02, 0x01, 0x61])],
  ];
  for (const [title, message] of broken) {
    for (const method of ["GetAttr", "CreateFile", "CreateDirectory"]) {
      await users.refused(
        () => users.asAlice(method, [message]),
        STATUS.invalidArgument,
        "",
        `${method}: ${title}`,
      );
    }
    const upload = Buffer.concat([Buffer.from([0x0a, message.length]), message]);
    await users.refused(
      () => users.asAlice("UploadFile", [upload]),
      STATUS.invalidArgument,
      "",
      `UploadFile: ${title}`,
    );
  }
  const later = Buffer.concat([
    bytes(GetAttrRequestSchema, { path: "/docs" }),
    Buffer.from([0xc0, 0x3e, 0x01]), // field 1000, a varint
    Buffer.from([0xc3, 0x3e, 0x08, 0x01, 0xc4, 0x3e]), // field 1000, a group
    text(15, Buffer.from("new")),
  ]);
  assert.equal((await users.asAlice("GetAttr", [later])).code, STATUS.ok);
});

test("no message, or one too many, where one is due (gRPC)", async () => {
  const attr = bytes(GetAttrRequestSchema, { path: "/" });
  for (const messages of [[], [attr, attr]]) {
    const answer = await users.refused(
      () => users.asAlice("GetAttr", messages),
      STATUS.unimplemented,
      "",
      `${messages.length} messages`,
    );
    assert.notEqual(answer.message, "");
  }
  await users.refused(
    () => users.asAlice("NoSuchMethod", [attr]),
    STATUS.unimplemented,
    "",
    "unknown method",
  );
});

test("what is too large is refused before it is all there, and is no quota when it is not one (D1, T7)", async () => {
  const payload = Buffer.alloc(4 * 1_048_576 + 1);
  const cases: [title: string, method: string, messages: Uint8Array[], code: number, reason: string][] = [
    [
      "a chunk of 4 MiB and a byte",
      "UploadFile",
      [header("/docs/n"), chunk(0, payload)],
      STATUS.invalidArgument,
      "BAD_ARGUMENT",
    ],
    [
      "a message above 8 MiB",
      "UploadFile",
      [header("/docs/n"), chunk(0, Buffer.alloc(8 * 1_048_576 + 1))],
      STATUS.resourceExhausted,
      "",
    ],
    [
      "a unary message above 8 MiB",
      "CreateFile",
      [Buffer.alloc(8 * 1_048_576 + 1)],
      STATUS.resourceExhausted,
      "",
    ],
    [
      "a small file of 64 KiB and a byte",
      "CreateFile",
      [bytes(CreateFileRequestSchema, { path: "/docs/n", data: Buffer.alloc(65_537) })],
      STATUS.invalidArgument,
      "BAD_ARGUMENT",
    ],
    [
      "a ranged write of 4 MiB and a byte",
      "WriteFile",
      [bytes(WriteFileRequestSchema, { path: "/docs/small", data: payload })],
      STATUS.invalidArgument,
      "BAD_ARGUMENT",
    ],
    [
      "a read of 4 MB and a byte",
      "ReadFile",
      [bytes(ReadFileRequestSchema, { path: "/docs/large", length: 4_000_001 })],
      STATUS.invalidArgument,
      "BAD_ARGUMENT",
    ],
    [
      "a page of 1,001",
      "ListDir",
      [bytes(ListDirRequestSchema, { path: "/", pageSize: 1_001 })],
      STATUS.invalidArgument,
      "BAD_ARGUMENT",
    ],
  ];
  for (const [title, method, messages, code, reason] of cases) {
    await users.refused(() => users.asAlice(method, messages), code, reason, title);
    // The same while the client is still sending.
    if (method === "UploadFile")
      await users.refused(() => users.asAlice(method, messages, { leaveOpen: true }), code, reason, title);
  }
});

test("offsets, lengths, tokens and enumerations at their ends (D13, D15)", async () => {
  const path = "/docs/large";
  const size = BigInt(LARGE.length);
  const download = (rest: object): Uint8Array => bytes(DownloadRequestSchema, { path, ...rest });
  const read = (rest: object): Uint8Array => bytes(ReadFileRequestSchema, { path, ...rest });
  const write = (rest: object): Uint8Array => bytes(WriteFileRequestSchema, { path, data: SMALL, ...rest });
  const cases: [title: string, method: string, message: Uint8Array, code: number, reason: string][] = [
    [
      "behind the end",
      "DownloadFile",
      download({ offset: size + 1n }),
      STATUS.invalidArgument,
      "BAD_ARGUMENT",
    ],
    [
      "the last offset",
      "DownloadFile",
      download({ offset: U64_MAX }),
      STATUS.invalidArgument,
      "BAD_ARGUMENT",
    ],
    [
      "both at their ends",
      "DownloadFile",
      download({ offset: U64_MAX, length: U64_MAX }),
      STATUS.invalidArgument,
      "BAD_ARGUMENT",
    ],
    ["a folder", "DownloadFile", download({ path: "/docs" }), STATUS.failedPrecondition, "IS_DIRECTORY"],
    ["behind the end", "ReadFile", read({ offset: size + 1n }), STATUS.invalidArgument, "BAD_ARGUMENT"],
    ["the last offset", "ReadFile", read({ offset: U64_MAX }), STATUS.invalidArgument, "BAD_ARGUMENT"],
    ["the largest length", "ReadFile", read({ length: 2 ** 32 - 1 }), STATUS.invalidArgument, "BAD_ARGUMENT"],
    ["the last offset", "WriteFile", write({ offset: U64_MAX }), STATUS.invalidArgument, "BAD_ARGUMENT"],
    [
      "beyond what JavaScript counts",
      "WriteFile",
      write({ offset: 2n ** 53n }),
      STATUS.invalidArgument,
      "BAD_ARGUMENT",
    ],
    [
      "beyond the quota",
      "WriteFile",
      write({ offset: 2n ** 35n }),
      STATUS.resourceExhausted,
      "QUOTA_EXCEEDED",
    ],
    [
      "a token of another kind",
      "ListDir",
      bytes(ListDirRequestSchema, { path: "/docs", pageToken: "x" }),
      STATUS.invalidArgument,
      "BAD_ARGUMENT",
    ],
    [
      "an unknown order",
      "ListDir",
      bytes(ListDirRequestSchema, { path: "/docs", sort: 99 as Sort }),
      STATUS.invalidArgument,
      "BAD_ARGUMENT",
    ],
    [
      "an unknown answer to a conflict",
      "Rename",
      bytes(RenameRequestSchema, { path, targetPath: "/x", onConflict: 9 as OnConflict }),
      STATUS.invalidArgument,
      "BAD_ARGUMENT",
    ],
    [
      "a folder into itself",
      "Rename",
      bytes(RenameRequestSchema, { path: "/docs", targetPath: "/docs/in" }),
      STATUS.invalidArgument,
      "BAD_ARGUMENT",
    ],
    [
      "the root itself",
      "DeleteFile",
      bytes(DeleteFileRequestSchema, { path: "/", recursive: true }),
      STATUS.invalidArgument,
      "BAD_ARGUMENT",
    ],
    [
      "a folder that is not empty",
      "DeleteFile",
      bytes(DeleteFileRequestSchema, { path: "/docs" }),
      STATUS.failedPrecondition,
      "NOT_EMPTY",
    ],
  ];
  for (const [title, method, message, code, reason] of cases) {
    await users.refused(() => users.asAlice(method, [message]), code, reason, `${method}: ${title}`);
  }
  for (const length of [U64_MAX, size, size + 1n]) {
    const answer = await users.asAlice("DownloadFile", [download({ length })]);
    assert.equal(answer.code, STATUS.ok);
    assert.equal(answer.messages.length, 3);
  }
});
