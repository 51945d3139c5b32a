// A client that ends an upload in order and then resets the stream has cancelled it: nothing stays.
import assert from "node:assert/strict";
import { test } from "node:test";
import { create, toBinary } from "@bufbuild/protobuf";
import { FrameFlag, FrameType, grpcHeaders, RawHttp2, rawFrame } from "#testing/raw-http2.ts";
import { until } from "#testing/until.ts";
import { UploadRequestSchema } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { chunk, header, refusal, startTestNode, type UploadPart } from "./node.fixture.ts";

const CANCEL = Buffer.from([0, 0, 0, 8]);

function message(part: UploadPart): Buffer {
  const bytes = toBinary(UploadRequestSchema, create(UploadRequestSchema, part));
  const head = Buffer.alloc(5);
  head.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([head, bytes]);
}

test("of an upload of unknown size that is ended and reset at once nothing stays; one that is only ended is whole", async () => {
  const node = await startTestNode();
  const raw = await RawHttp2.connect(node.node.grpcPort);
  try {
    const user = await node.signIn("ada@example.com");
    const start = (streamId: number): Buffer =>
      rawFrame(
        FrameType.HEADERS,
        FrameFlag.END_HEADERS,
        streamId,
        grpcHeaders("/grove.v1.FileServer/UploadFile", [["authorization", `Bearer ${user.token}`]]),
      );
    const body = (streamId: number, path: string): Buffer => {
      const bytes = Buffer.concat([message(header(path)), message(chunk(0, Buffer.from("half of it")))]);
      return rawFrame(FrameType.DATA, FrameFlag.END_STREAM, streamId, bytes);
    };
    for (let round = 0; round < 20; round++) {
      const streamId = 1 + 2 * round;
      const reset = rawFrame(FrameType.RST_STREAM, 0, streamId, CANCEL);
      await raw.write(Buffer.concat([start(streamId), body(streamId, `/cut-${round}`), reset]));
    }
    await raw.write(Buffer.concat([start(101), body(101, "/whole")]));
    await raw.frame(({ streamId, flags }) => streamId === 101 && (flags & FrameFlag.END_STREAM) !== 0);
    assert.equal((await user.call.getAttr({ path: "/whole" })).size, 10n);
    for (let round = 0; round < 20; round++) {
      const answer = await refusal(user.call.getAttr({ path: `/cut-${round}` }));
      assert.equal(answer.reason, "NO_SUCH_PATH");
    }
    assert.equal((await user.call.getQuota({})).usedBytes, 10n);
  } finally {
    raw.close();
    await node.stop();
  }
});

test("an upload whose beginning is cancelled before its answer ends, and does not count until it expires", async () => {
  const node = await startTestNode();
  try {
    const user = await node.signIn("ada@example.com");
    const { uploads } = node.node.storage;
    const create = uploads.create.bind(uploads);
    const gone = new AbortController();
    uploads.create = async (request) => {
      const stored = await create(request);
      gone.abort();
      // On the same connection: the loop has heard of the end by the first answer, the main thread by the second.
      await user.call.getQuota({});
      await user.call.getQuota({});
      return stored;
    };
    const begin = { path: "/cut", size: 40_000_000n };
    await assert.rejects(user.call.beginUpload(begin, { signal: gone.signal }));
    await until(() => uploads.ofUser(user.email, 1).length === 0);
    uploads.create = create;
    const { uploadId } = await user.call.beginUpload(begin);
    assert.equal((await user.call.getUpload({ uploadId })).offset, 0n);
  } finally {
    await node.stop();
  }
});
