// Tests that hostile paths and paths of other users are refused, change nothing and reveal nothing.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import {
  CreateDirectoryRequestSchema,
  CreateFileRequestSchema,
  DeleteFileRequestSchema,
  DownloadRequestSchema,
  GetAttrRequestSchema,
  GetQuotaRequestSchema,
  ListDirRequestSchema,
  ReadFileRequestSchema,
  RenameRequestSchema,
  WriteFileRequestSchema,
} from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { bytes, chunk, header, LARGE, SMALL, STATUS, TwoUsers } from "./two-users.ts";
import { type Answer } from "./wire.ts";

let users: TwoUsers;
before(async () => {
  users = await TwoUsers.start();
});
after(() => users.close());

test("names and paths that could escape, hide or break are refused wherever a path is taken (D13)", async () => {
  const names: [path: string, reason: string][] = [
    ["", "BAD_ARGUMENT"],
    ["docs/x", "BAD_ARGUMENT"],
    ["../x", "BAD_ARGUMENT"],
    [`/${"a/".repeat(2_050)}`, "BAD_ARGUMENT"],
    ["/..", "BAD_NAME"],
    ["/../../etc/passwd", "BAD_NAME"],
    ["/docs/../../bob@example.com/private/secret", "BAD_NAME"],
    ["/docs/.", "BAD_NAME"],
    ["/./x", "BAD_NAME"],
    ["//x", "BAD_NAME"],
    ["/docs//x", "BAD_NAME"],
    ["/docs/x//", "BAD_NAME"],
    ["/docs/a\u0000b", "BAD_NAME"],
    ["/docs/\u001b[31mred", "BAD_NAME"],
    ["/docs/a\nb", "BAD_NAME"],
    ["/docs/\u007f", "BAD_NAME"],
    ["/docs/\u0085", "BAD_NAME"],
    ["/docs/\ufffd", "BAD_NAME"],
    [`/docs/${"x".repeat(256)}`, "BAD_NAME"],
    [`/docs/${"ü".repeat(128)}`, "BAD_NAME"],
  ];
  for (const [path, reason] of names) {
    const calls: [string, Uint8Array][] = [
      ["GetAttr", bytes(GetAttrRequestSchema, { path })],
      ["CreateFile", bytes(CreateFileRequestSchema, { path })],
      ["CreateDirectory", bytes(CreateDirectoryRequestSchema, { path })],
      ["UploadFile", header(path)],
      ["Rename", bytes(RenameRequestSchema, { path: "/docs/small", targetPath: path })],
      ["DeleteFile", bytes(DeleteFileRequestSchema, { path, recursive: true })],
    ];
    for (const [method, message] of calls) {
      const title = `${method} ${JSON.stringify(path.slice(0, 60))}`;
      await users.refused(() => users.asAlice(method, [message]), STATUS.invalidArgument, reason, title);
    }
  }
});

test("the longest name is taken and no file on the disk is named by it (D13)", async () => {
  const path = `/docs/${"x".repeat(255)}`;
  const upload = [header(path), chunk(0, LARGE.subarray(0, 100_000))];
  assert.equal((await users.asAlice("UploadFile", upload)).code, STATUS.ok);
  assert.ok((await users.filesOnDisk()).every((name) => !name.includes("xxx")));
  assert.equal(
    (await users.asAlice("DeleteFile", [bytes(DeleteFileRequestSchema, { path })])).code,
    STATUS.ok,
  );
});

test("another user's root answers the same, byte for byte, whether or not there is anything (spec 5.4, D1)", async () => {
  const places = [
    { root: "bob@example.com", path: "/private/secret" },
    { root: "bob@example.com", path: "/private" },
    { root: "bob@example.com", path: "/" },
    { root: "BOB@example.com", path: "/private/secret" },
    { root: "bob@example.com", path: "/nothing/here" },
    { root: "nobody@example.com", path: "/private/secret" },
  ];
  const calls: [string, (place: { root: string; path: string }) => Uint8Array, reason: string][] = [
    ["GetAttr", (place) => bytes(GetAttrRequestSchema, place), "NOT_SHARED"],
    ["ListDir", (place) => bytes(ListDirRequestSchema, place), "NOT_SHARED"],
    ["ChangeDir", (place) => bytes(GetAttrRequestSchema, place), "NOT_SHARED"],
    ["ReadFile", (place) => bytes(ReadFileRequestSchema, place), "NOT_SHARED"],
    ["DownloadFile", (place) => bytes(DownloadRequestSchema, place), "NOT_SHARED"],
    ["CreateFile", (place) => bytes(CreateFileRequestSchema, place), "NOT_SHARED"],
    ["CreateDirectory", (place) => bytes(CreateDirectoryRequestSchema, place), "NOT_SHARED"],
    ["WriteFile", (place) => bytes(WriteFileRequestSchema, { ...place, data: SMALL }), "NOT_SHARED"],
    ["UploadFile", (place) => header(place.path, { root: place.root }), "NOT_SHARED"],
    ["Rename", (place) => bytes(RenameRequestSchema, { ...place, targetPath: "/mine" }), "NOT_SHARED"],
    ["DeleteFile", (place) => bytes(DeleteFileRequestSchema, { ...place, recursive: true }), "NOT_OWNER"],
    ["GetQuota", ({ root }) => bytes(GetQuotaRequestSchema, { root }), "NOT_SHARED"],
  ];
  for (const [method, message, reason] of calls) {
    const answers: Answer[] = [];
    for (const place of places) {
      const title = `${method} ${place.root} ${place.path}`;
      answers.push(
        await users.refused(
          () => users.asAlice(method, [message(place)], { headers: { "x-request-id": "the-same" } }),
          STATUS.permissionDenied,
          reason,
          title,
        ),
      );
    }
    for (const answer of answers) assert.deepEqual(answer, answers[0], method);
  }
});
